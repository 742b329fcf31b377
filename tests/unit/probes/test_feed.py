from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    FileSystemFacts,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.probes.feed import STORAGES, SWEEPS, FeedReads

PROBE = FeedReads()
MakeNode = Callable[..., Facts]


def cases_of(facts: Facts, effort: Effort = "normal") -> tuple[Case, ...]:
    cases = PROBE.cases(facts, MeasurementRequest(effort=effort, probes=("feed",)))
    assert not isinstance(cases, Unmeasured)
    return cases


@pytest.mark.parametrize("effort", ["quick", "normal", "full"])
def test_each_storage_is_read_by_each_number_of_reads(node: MakeNode, effort: Effort) -> None:
    cases = cases_of(node(), effort)
    assert len(cases) == len(STORAGES) * len(SWEEPS[effort].reads)
    assert {case.level("storage") for case in cases} == set(STORAGES)
    assert SWEEPS["full"].batches == 1000  # as the paper


def test_it_is_measured_only_where_it_is_named(node: MakeNode) -> None:
    assert PROBE.cases(node(), MeasurementRequest()) == ()


def test_the_first_case_makes_the_files_and_takes_longer(node: MakeNode) -> None:
    first, second, *_ = cases_of(node())
    assert PROBE.seconds(first) > PROBE.seconds(second) > 1


def test_the_program_is_flowos_itself(node: MakeNode) -> None:
    first, *_ = cases_of(node(), "quick")
    program = PROBE.program(first)
    assert program.argv == (
        *("{python}", "-m", "flowos.feeder.minibatches", "{scratch}", "source", "2", "100"),
    )
    assert program.on_storage


def test_what_has_no_room_is_refused_with_a_remedy(node: MakeNode) -> None:
    full = replace(node(), storage=FileSystemFacts(free_bytes=1 << 30))
    why = PROBE.cases(full, MeasurementRequest(effort="quick", probes=("feed",)))
    assert isinstance(why, Unmeasured)
    assert why.reason == "/tmp has 1024 MiB free; 3464 are needed"
    assert "--scratch" in why.remedy
    roomy = replace(full, storage=FileSystemFacts(free_bytes=1 << 40))
    assert cases_of(roomy, "quick")


def test_the_curve_is_that_of_the_paper_s_two_reads(node: MakeNode) -> None:
    curve = '{"metric": "elapsed", "unit": "second", "values": [1.5], "levels": {"loaded": "35"}}'
    whole = '{"metric": "thousand_minibatches", "unit": "second", "values": [9.0]}'
    answer = f'{{"readings": [{curve}, {whole}]}}'.encode()
    metrics = {"2": ["elapsed", "thousand_minibatches"], "64": ["thousand_minibatches"]}
    for case in cases_of(node(), "quick"):
        found = PROBE.read(case, Outcome(end=Exited(0), stdout=answer, stderr=b""))
        assert not isinstance(found, Unmeasured)
        assert [reading.metric for reading in found] == metrics[case.level("reads")]
    said = Outcome(end=Exited(1), stdout=b"", stderr=b"minibatches: no space left")
    assert isinstance(PROBE.read(cases_of(node())[0], said), Unmeasured)
