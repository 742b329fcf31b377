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
    Outcome,
    Tool,
    Unmeasured,
)
from flowos.probes._gpu import NO_TORCH
from flowos.probes.training import LOADERS, SETTINGS, ResNetTraining
from tests.unit.probes.conftest import H200

PROBE = ResNetTraining()
MakeNode = Callable[..., Facts]
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
    assert why.reason == "/tmp has 1 MiB free; 21 are needed"
    assert "--scratch" in why.remedy
    roomy = replace(full, storage=FileSystemFacts(free_bytes=1 << 30))
    assert case_of(roomy).level("device") == "cuda"


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


def number_of(case: Case) -> Measurement:
    return Measurement(
        case=case, metric="reads", unit="byte/s", count=1, median=1.0, low=1.0, high=1.0, best=1.0
    )
