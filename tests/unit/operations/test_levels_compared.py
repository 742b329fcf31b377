"""Levels that a probe compares have verdicts, by the rounds that there were."""

from dataclasses import replace

import pytest

from flowos.model import Case, MeasurementRequest, Sample
from flowos.operations.measure import report_of
from flowos.report import text
from tests.unit.operations.test_case_order import RUN
from tests.unit.probes.test_remote_copy import ENDS, swept
from tests.unit.probes.test_remote_storage import WITH_SERVER, cases

ASKED = MeasurementRequest(effort="quick", probes=("remote_storage",))
OURS = replace(RUN, request=ASKED, facts=WITH_SERVER)
RATES = {"local": 20e3, "remote": 10e3}


def samples(rounds: int) -> list[Sample]:
    found = cases(ASKED)
    return [
        Sample(
            run=OURS.id,
            case=case,
            round=number,
            metric="iops",
            unit="1/s",
            values=(RATES[case.level("attachment")] + number,),
        )
        for number in range(1, rounds + 1)
        for case in (*reversed(found), *found)
    ]


def test_each_is_compared_with_the_first_one_as_planned_all_else_equal() -> None:
    verdicts = report_of(OURS, samples(rounds=4)).verdicts
    assert len(verdicts) == 3
    for verdict in verdicts:
        assert (verdict.axis, verdict.base, verdict.other) == ("attachment", "local", "remote")
        assert verdict.answer == "slower"
        assert verdict.ratio == pytest.approx(0.5, abs=0.001)


def test_it_says_how_more_rounds_are_had_where_these_do_not_tell() -> None:
    shown = text(report_of(OURS, samples(rounds=1)))
    assert "for more rounds: `flowos measure --quick --only remote_storage" in shown


def copied(*cases: Case) -> list[Sample]:
    return [
        Sample(
            run=RUN.id,
            case=case,
            round=number,
            metric="bandwidth",
            unit="byte/s",
            values=((8e9 if case.level("attachment") == "local" else 1e9) + number,),
        )
        for number in range(1, 5)
        for case in (*cases, *reversed(cases))
    ]


def test_remote_is_compared_with_local_where_both_are_alike_and_not_at_each_size() -> None:
    sizes = ("4096", "1048576")
    alike = [swept(end, size=size) for size in sizes for end in ENDS]
    (verdict,) = report_of(RUN, copied(*alike)).verdicts
    assert (verdict.axis, verdict.base, verdict.other) == ("attachment", "local", "remote")
    assert ("bytes", "1048576") in verdict.rest
    assert verdict.answer == "slower"
    assert verdict.ratio == pytest.approx(1 / 8, abs=0.001)
    unlike = [swept("local"), swept("remote", device="cpu")]
    (unjudged,) = report_of(RUN, copied(*unlike)).verdicts
    assert unjudged.answer == "inconclusive", "a GPU and memory are not compared"
