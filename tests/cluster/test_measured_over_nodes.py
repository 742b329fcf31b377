"""What is measured over nodes of a real Slurm: on as many as it says, which nothing else uses."""

from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Provider, SliceOptions
from flowos.model import Ask, Exited, Facts
from flowos.operations.measure._alone import Patience, node_alone
from flowos.operations.measure._environments import bare_on
from flowos.probes import Program
from tests.askers import NoAsker
from tests.contract.test_providers import flow_of
from tests.waiting import comes

from .box import Box
from .tasks import measures
from .test_slurm_gangs import MPIS, hello, provider  # noqa: F401 - fixtures

NOWHERE = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)
POOL = '[pools.c]\nkind = "slurm"\nnodes = 2\nshared = "{shared}"\n'
MEASURES = flow_of(measures, fo.int64)


def test_ranks_are_spread_evenly_over_the_nodes_of_a_case(
    provider: Provider,  # noqa: F811
    hello: Path,  # noqa: F811
) -> None:
    said = {}
    with HeldSlice(provider, Ask(nodes=2), SliceOptions()) as held:
        first, _ = held.held.nodes
        place = bare_on(first, NOWHERE, first.folder(), first.folder(), nodes=2)
        for nodes in (1, 2):
            program = Program(argv=(), ranks=2 * nodes, nodes=nodes, mpi_family="mpich")
            outcome = place.run((str(hello / "mpich"),), program)
            assert outcome.end == Exited(0), outcome
            said[nodes] = sorted(outcome.stdout.decode().splitlines())
    assert said[1] == ["0 of 2 on n1, sum 1", "1 of 2 on n1, sum 1"]
    assert said[2] == [
        f"{rank} of 4 on {node}, sum 6" for rank, node in enumerate(("n1", "n1", "n2", "n2"))
    ]


@pytest.mark.parametrize("mpi", MPIS)
def test_one_rank_is_a_world_of_its_own_in_each_mpi(
    provider: Provider,  # noqa: F811
    hello: Path,  # noqa: F811
    mpi: str,
) -> None:
    with HeldSlice(provider, Ask(nodes=2), SliceOptions()) as held:
        first, _ = held.held.nodes
        place = bare_on(first, NOWHERE, first.folder(), first.folder(), nodes=2)
        outcome = place.run((str(hello / mpi),), Program(argv=(), mpi_family=mpi))
    assert outcome.end == Exited(0), outcome
    assert outcome.stdout == b"0 of 1 on n1, sum 0\n"


def test_fo_measure_holds_nodes_and_gives_them_back(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flowos.toml").write_text(POOL.format(shared=box.shared))
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    for seconds in (12.0, 60.0):  # what a busy machine does not measure is stopped
        result = fo.measure("parallel_io", pool="c", nodes=2, seconds=seconds)
        clients = {m.case.level("clients") for m in result.report.measurements}
        if len(clients) > 1:
            break
    run = result.report.run
    assert run.deployment is not None
    assert [node.name for node in run.deployment.nodes] == ["n1", "n2"]
    assert (run.request.nodes, run.request.scratch) == (2, box.shared)
    assert clients == {"1", "2"}
    assert (result.lost, result.interrupted) == ("", False)
    assert comes(lambda: box.ask("squeue", "--noheader") == "")


def test_a_task_on_nodes_that_measures_is_refused(
    provider: Provider,  # noqa: F811
) -> None:
    with (
        HeldSlice(provider, Ask(nodes=1), SliceOptions()) as held,
        pytest.raises(fo.TaskFailed, match="measure: called by a task of a slice") as caught,
    ):
        held.run(MEASURES, 1)
    assert "\n" not in str(caught.value)


def test_it_waits_for_ranks_on_a_neighbour(
    provider: Provider,  # noqa: F811
) -> None:
    with HeldSlice(provider, Ask(nodes=2), SliceOptions()) as held:
        first, second = held.held.nodes
        grant = second.ledger.acquire(fo.Needs(), NoAsker())
        assert grant is not None
        with (
            pytest.raises(fo.SliceRefused, match=r"on n2 did not end within 0\.1 s"),
            node_alone(first, Patience(0.1), lambda _: None),
        ):
            pytest.fail("its ranks run there")
        second.ledger.release(grant)
        with node_alone(first, Patience(0.1), lambda _: None):
            assert not first.ledger.idle
            assert not second.ledger.idle
