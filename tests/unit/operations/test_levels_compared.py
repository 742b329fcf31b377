"""Levels that a probe compares have verdicts, by the rounds that there were."""

from dataclasses import replace

import pytest

from flowos.model import MeasurementRequest, Sample
from flowos.operations.measure import report_of
from flowos.report import text
from tests.unit.operations.test_case_order import RUN
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
