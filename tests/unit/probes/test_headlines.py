from dataclasses import replace
from typing import Any

import pytest

from flowos.model import Case, Measurement, Sample
from flowos.probes import Headline, headlines_of, tuning_gain
from flowos.probes._headlines import best_of
from flowos.probes._tables import PROBES


def measured(metric: str, unit: str, value: float, **levels: str) -> Measurement:
    return Measurement(
        case=Case("p", levels=tuple(levels.items())),
        metric=metric,
        unit=unit,
        count=1,
        median=value,
        low=value,
        high=value,
        best=value,
    )


def test_the_highest_rate_and_the_shortest_time_win() -> None:
    rates = [measured("triad", "byte/s", v, stores=f"s{v}") for v in (1.0, 3.0, 2.0)]
    times = [measured("latency", "second", v, mpi=f"m{v}") for v in (2.0, 1.0)]
    assert best_of(Headline("", "triad"), rates) is rates[1]
    assert best_of(Headline("", "latency"), times) is times[1]


def test_only_cases_with_the_levels_of_the_headline_count() -> None:
    at_one = measured("triad", "byte/s", 1.0, threads="1", stores="nt")
    at_two = measured("triad", "byte/s", 2.0, threads="2", stores="nt")
    assert best_of(Headline("", "triad", (("threads", "1"),)), [at_two, at_one]) is at_one
    assert best_of(Headline("", "triad"), []) is None
    assert best_of(Headline("", "copy"), [at_one]) is None


def turn(m: Measurement, number: int, value: float) -> Sample:
    return Sample(run="r", case=m.case, round=number, metric=m.metric, unit=m.unit, values=(value,))


def test_the_headline_is_the_case_that_the_best_setting_names_and_not_the_highest_median() -> None:
    nt = measured("triad", "byte/s", 100.0, stores="nt")
    plain = measured("triad", "byte/s", 142.0, stores="plain")
    both = [turn(m, n, rate) for n in (0, 1) for m, rate in ((nt, 100.0), (plain, 95.0))]
    samples = [*both, *(turn(plain, n, 142.0) for n in (2, 3, 4))]
    found = tuning_gain(samples, "triad")
    assert found is not None
    assert found.best == nt.case
    assert best_of(Headline("", "triad"), [plain, nt], samples) is nt


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "copy"},
        {"values": ()},
        {"values": (0.0,)},
        {"values": (95.0, -1.0)},
        {"case": Case("p", (("stores", "other"),))},
    ],
)
def test_a_sample_that_says_nothing_of_the_number_does_not_change_the_headline(
    change: dict[str, Any],
) -> None:
    nt = measured("triad", "byte/s", 100.0, stores="nt")
    plain = measured("triad", "byte/s", 142.0, stores="plain")
    other = replace(turn(nt, 0, 1.0), **change)
    both = [turn(m, n, rate) for n in (0, 1) for m, rate in ((nt, 100.0), (plain, 95.0))]
    assert best_of(Headline("", "triad"), [plain, nt], [other]) is plain
    assert best_of(Headline("", "triad"), [plain, nt], [*both, other]) is nt


def test_the_shortest_time_is_the_best_by_that_rule_too() -> None:
    slow, fast = (measured("latency", "second", v, mpi=f"m{v}") for v in (2.0, 1.0))
    samples = [turn(m, n, m.median) for n in (1, 2) for m in (slow, fast)]
    assert best_of(Headline("", "latency"), [slow, fast], samples) is fast


def test_of_ceilings_the_one_of_the_highest_best_is_shown() -> None:
    steady, peak = (
        replace(measured("flops", "flop/s", 1.0, isa=isa), best=best, ceiling=True)
        for isa, best in (("avx", 1.1), ("avx2", 1.2))
    )
    steady = replace(steady, median=1.05, case=replace(steady.case, probe="flops"))
    peak = replace(peak, case=replace(peak.case, probe="flops"))
    samples = [turn(m, 1, m.median) for m in (steady, peak)]
    assert best_of(Headline("", "flops"), [steady, peak], samples) is peak


def test_the_headlines_of_each_probe_are_of_its_own_numbers() -> None:
    ours, other = (
        replace(measured("clock", "Hz", hz), case=Case(probe))
        for probe, hz in (("clock", 1.0), ("other", 2.0))
    )
    ((headline, found),) = headlines_of([other, ours], ())
    assert (headline.label, found) == ("Clock", ours)


def test_a_headline_of_stream_names_its_pages_and_is_of_no_other() -> None:
    (found,) = (p.info.headlines for p in PROBES if p.name == "stream")
    assert {dict(h.levels)["pages"] for h in found} == {"system", "huge"}
    assert all(f"{dict(h.levels)['pages']} pages" in h.label for h in found)


def test_the_solver_has_a_headline_that_memory_bounds() -> None:
    (found,) = (p.info.headlines for p in PROBES if p.name == "solve")
    assert {h.metric for h in found} == {"total", "bandwidth"}


def test_every_headline_is_a_metric_that_its_probe_draws_or_a_ceiling() -> None:
    for probe in PROBES:
        drawn = {metric for chart in probe.info.charts for metric in chart.metrics}
        assert {h.metric for h in probe.info.headlines} <= drawn | set(probe.info.ceilings)
