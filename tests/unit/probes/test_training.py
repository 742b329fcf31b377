from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    FileSystemFacts,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Tool,
    Unmeasured,
)
from flowos.probes._gpu import NO_TORCH
from flowos.probes._storage import NO_MPI
from flowos.probes.training import LOADERS, SETTINGS, ResNetTraining
from tests.unit.probes.conftest import H200

PROBE = ResNetTraining()
MakeNode = Callable[..., Facts]
MPI = Mpi(
    name="MPICH",
    family="mpich",
    version="4.1",
    compiler=PurePath("/usr/bin/mpicc"),
    mpirun=PurePath("/usr/bin/mpirun"),
)
TORCH = Tool(name="torch", version="2.11.0", path=PurePath("/usr/bin/python3"))


def with_torch(facts: Facts, gpus: int = 0) -> Facts:
    cuda = tuple(replace(H200, number=number) for number in range(gpus))
    return replace(facts, tools=(TORCH,), cuda=cuda)


def asked(facts: Facts, effort: Effort = "quick") -> tuple[Case, ...] | Unmeasured:
    return PROBE.cases(facts, MeasurementRequest(effort=effort, probes=("training",)))


def case_of(facts: Facts, effort: Effort = "quick") -> Case:
    cases = asked(facts, effort)
    assert not isinstance(cases, Unmeasured)
    (case,) = cases
    return case


def test_it_is_measured_only_where_it_is_named_and_python_has_torch(node: MakeNode) -> None:
    assert PROBE.cases(with_torch(node()), MeasurementRequest()) == ()
    assert asked(node()) == NO_TORCH


@pytest.mark.parametrize(
    ("cores", "gpus", "levels"),
    [(1, 0, ("cpu", "1")), (4, 0, ("cpu", "2")), (4, 1, ("cuda", "1")), (4, 4, ("cuda", "4"))],
)
def test_all_gpus_train_or_two_cores(
    cores: int, gpus: int, levels: tuple[str, str], node: MakeNode
) -> None:
    case = case_of(with_torch(node(cores=cores), gpus))
    assert (case.level("device"), case.level("ranks")) == levels
    program = PROBE.program(case)
    assert program.cores == (1 if gpus else int(levels[1]))
    assert program.on_storage
    assert program.argv[1:5] == ("--folder", "{scratch}", "--own", "{own}")
    assert ("--width" in program.argv) == (not gpus), "ResNet-50 itself on GPUs"
    assert program.limit_seconds > 10 * PROBE.seconds(case)


def test_the_paper_s_epochs_are_those_of_full_effort_and_quick_is_half_a_minute(
    node: MakeNode,
) -> None:
    assert SETTINGS["full"].epochs == 10
    for gpus in (0, 8):
        facts = with_torch(node(cores=8), gpus)
        assert PROBE.seconds(case_of(facts)) < 30 < PROBE.seconds(case_of(facts, "full"))


@pytest.mark.parametrize(("cores", "workers"), [(1, "2"), (6, "3"), (64, "8")])
def test_a_loader_has_as_many_workers_as_there_are_cores_for_it(
    cores: int, workers: str, node: MakeNode
) -> None:
    assert case_of(with_torch(node(cores=cores), 2)).detail("workers") == workers


def test_what_has_no_room_is_refused_with_a_remedy(node: MakeNode) -> None:
    full = replace(with_torch(node(), 1), storage=FileSystemFacts(free_bytes=1 << 20))
    why = asked(full)
    assert isinstance(why, Unmeasured)
    assert why.reason == "/tmp has 1 MiB free; 23 are needed"
    assert "--scratch" in why.remedy
    roomy = replace(full, storage=FileSystemFacts(free_bytes=1 << 30))
    assert case_of(roomy).level("device") == "cuda"


def test_images_of_every_number_of_nodes_need_room(node: MakeNode) -> None:
    """They stay for the next case: 44 GB for four nodes with eight GPUs each."""
    facts = replace(with_torch(node(), 8), mpis=(MPI,))
    request = MeasurementRequest(effort="full", probes=("training",), nodes=4)
    small = replace(facts, storage=FileSystemFacts(free_bytes=40_000_000_000))
    assert isinstance(PROBE.cases(small, request), Unmeasured)
    roomy = replace(facts, storage=FileSystemFacts(free_bytes=60_000_000_000))
    assert not isinstance(PROBE.cases(roomy, request), Unmeasured)


def test_a_rank_says_why_it_failed(node: MakeNode) -> None:
    said = b"Traceback\ntrain.py: no space left\ntrain.py: another rank has ended, and says why\n"
    why = PROBE.read(case_of(with_torch(node())), Outcome(end=Exited(1), stdout=b"", stderr=said))
    assert why == Unmeasured(reason="no space left")


def test_a_python_without_flowos_has_no_feed(node: MakeNode) -> None:
    case = case_of(with_torch(node()))
    measured = [number_of(case.at(loader=loader)) for loader in LOADERS]
    assert PROBE.left_out(measured) == ()
    assert PROBE.left_out([]) == ()
    ((left, why),) = PROBE.left_out(measured[:-1])
    assert left.label == "training loader=feed"
    assert why.reason == "/usr/bin/python3, which has PyTorch, has no fo.Feed"


def over_nodes(facts: Facts, nodes: int = 6, effort: Effort = "quick") -> tuple[Case, ...]:
    request = MeasurementRequest(effort=effort, probes=("training",), nodes=nodes)
    cases = PROBE.cases(facts, request)
    assert not isinstance(cases, Unmeasured)
    return cases


def images_of(cases: tuple[Case, ...]) -> list[tuple[str, str, int]]:
    return [(c.level("scaling"), c.level("nodes"), int(c.detail("images"))) for c in cases]


def test_over_nodes_the_same_images_are_trained_or_as_many_on_each(node: MakeNode) -> None:
    facts = replace(with_torch(node(cores=4)), mpis=(MPI,))
    strong = [("strong", nodes, 6 * 2 * 64) for nodes in ("1", "2", "4", "6")]
    assert images_of(over_nodes(facts)) == strong
    normal = images_of(over_nodes(facts, 2, "normal"))
    assert normal[:2] == [("strong", "1", 2 * 2 * 512), ("strong", "2", 2 * 2 * 512)]
    assert normal[2:] == [("weak", "1", 2 * 512), ("weak", "2", 2 * 2 * 512)]
    one, two, *_ = over_nodes(facts)
    assert PROBE.seconds(one) > PROBE.seconds(two)


def test_a_process_is_started_on_each_node_which_forks_its_ranks(node: MakeNode) -> None:
    for gpus, cores in ((0, 2), (2, 8)):
        facts = replace(with_torch(node(cores=8), gpus), mpis=(MPI,))
        one, two, *_ = map(PROBE.program, over_nodes(facts))
        assert (one.ranks, one.mpi_family, one.variables) == (
            1,
            "",
            (("GLOO_SOCKET_IFNAME", "lo"),),
        )
        assert (two.ranks, two.mpi_family, two.mpirun) == (2, "mpich", "/usr/bin/mpirun")
        assert two.variables == (), "which interface is seen by the others, the program finds out"
        assert ("--nodes" in one.argv, two.argv[-2:]) == (False, ("--nodes", "2"))
        assert two.cores == cores, "of a GPU's node all: its ranks share them"


def test_over_nodes_it_needs_something_that_starts_a_process_on_each(node: MakeNode) -> None:
    request = MeasurementRequest(probes=("training",), nodes=2)
    assert PROBE.cases(with_torch(node()), request) == NO_MPI


def test_both_scalings_are_said_for_each_loader(node: MakeNode) -> None:
    case = case_of(with_torch(node()))
    measured = [
        replace(
            number_of(case.at(nodes=nodes, scaling=scaling, loader="feed")),
            metric="training",
            median=seconds,
        )
        for scaling, nodes, seconds in (
            ("strong", "1", 8.0),
            ("strong", "2", 5.0),
            ("weak", "1", 4.0),
            ("weak", "2", 5.0),
        )
    ]
    assert PROBE.findings(measured) == (
        "training strong feed: 1 node 8 s, 2 nodes 5 s (80% efficient)",
        "training weak feed: 1 node 4 s, 2 nodes 5 s (80% efficient)",
    )
    assert PROBE.findings([]) == ()


def number_of(case: Case) -> Measurement:
    return Measurement(
        case=case, metric="reads", unit="byte/s", count=1, median=1.0, low=1.0, high=1.0, best=1.0
    )
