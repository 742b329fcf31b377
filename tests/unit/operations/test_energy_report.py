"""Headlines say what a joule does where energy was counted, and nothing where it was not."""

from dataclasses import replace

import pytest

from flowos.model import Case, MachineState, Sample
from flowos.operations.measure import report_of
from flowos.report import text
from tests.unit.operations.test_case_order import RUN

COPY = Case("gpu_copy", levels=(("device", "0"), ("to", "device"), ("pages", "pinned")))
CASE = Case("stream", levels=(("compiler", "gcc"), ("pages", "system"), ("threads", "2")))


def sample(watts: float | None, case: Case = CASE, metric: str = "triad") -> Sample:
    state = MachineState(joules=watts, watts=watts)
    return Sample(
        run=RUN.id,
        case=case,
        round=1,
        metric=metric,
        unit="byte/s",
        values=(40e9, 42e9, 44e9),
        state=state,
    )


def test_a_headline_is_followed_by_what_it_does_with_a_joule() -> None:
    report = report_of(replace(RUN, ended="2026-11-20T10:01:00Z"), [sample(100.0)])
    labels = [headline.label for headline in report.headlines]
    assert labels == ["STREAM triad, system pages", "STREAM triad, system pages, per joule"]
    energy = report.headlines[1].measured
    assert energy.unit == "byte/J"
    assert energy.median == pytest.approx(0.42e9)
    assert energy in report.measurements
    assert "420 MB/J" in text(report)


def test_without_a_counter_nothing_is_said() -> None:
    report = report_of(RUN, [sample(None)])
    assert [headline.label for headline in report.headlines] == ["STREAM triad, system pages"]
    assert "joule" not in text(report)


def test_the_energy_of_the_processors_is_not_that_of_a_gpu() -> None:
    report = report_of(RUN, [sample(100.0, COPY, "bandwidth")])
    assert [headline.label for headline in report.headlines] == ["Host to GPU"]
