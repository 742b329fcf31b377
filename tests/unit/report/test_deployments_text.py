"""Deployments of nodes compared, as a table in the terminal."""

from collections.abc import Collection
from dataclasses import replace

from flowos.model import Case, DeployedNode, Deployment, Measurement, Trust
from flowos.plan import Numbers, spreads
from flowos.report import Report, deployments_text

LATENCY = Measurement(
    case=Case("mpi", (("mpi", "openmpi"), ("bytes", "8"))),
    metric="latency",
    unit="second",
    count=8,
    median=2e-6,
    low=1.98e-6,
    high=2.02e-6,
    best=1.9e-6,
)


def latency(median: float) -> Measurement:
    return replace(LATENCY, median=median, low=median * 0.99, high=median * 1.01, best=median)


def table(*medians: float, marked: Collection[int] = ()) -> str:
    """marked: of which deployments, from 1 on, the number cannot be trusted."""
    odd = Trust(marks=("odd",))
    numbers = [
        Numbers(
            run=f"r{n}",
            measurements=(replace(each, trust=odd) if n in marked else each,),
        )
        for n, each in enumerate(map(latency, medians), 1)
    ]
    return deployments_text((), spreads(numbers, margin=0.05, shown=bool))


def test_the_table_says_of_each_number_what_the_place_did_to_it() -> None:
    assert (
        table(2e-6, 3e-6)
        == """
mpi latency, mpi openmpi, bytes 8: the place of the nodes changed it
  median 2.50 us  (1: 2.00 us  2: 3.00 us)
  between deployments 50%, inside one 2.0% (middle half)
  r2 is slower than r1
"""
    )
    assert "mpi latency, mpi openmpi, bytes 8: equal in all of them\n" in table(2e-6, 2e-6)
    marked = table(2e-6, 3e-6, marked=(1, 2))
    assert "bytes 8: inconclusive\n" in marked
    assert "  not to be trusted: r1: odd\n" in marked
    assert table(2e-6).splitlines()[1:] == [
        "mpi latency, mpi openmpi, bytes 8",
        "  median 2.00 us",
    ]


def test_why_one_cannot_be_judged_is_left_out_where_another_differs() -> None:
    shown = table(2e-6, 3e-6, 2e-6, marked=(3,))
    assert "bytes 8: the place of the nodes changed it\n" in shown
    assert shown.endswith("(middle half)\n  r2 is slower than r1\n")


def test_the_table_names_the_machines_of_each_deployment(small: Report) -> None:
    nodes = (DeployedNode(name="c1", instance="i-1"), DeployedNode(name="c2"))
    runs = [
        replace(
            small.run, id=f"r{n}", deployment=Deployment(of="d", number=n, pool="hpc", nodes=nodes)
        )
        for n in (1, 2)
    ]
    assert deployments_text(runs[:1], ()).startswith("pool hpc, 1 deployment of nodes:\n")
    assert deployments_text(runs, ()) == (
        "pool hpc, 2 deployments of nodes, one after the other:\n"
        "  1  c1 (i-1), c2: run r1\n  2  c1 (i-1), c2: run r2\n"
    )
