from dataclasses import replace

from flowos.model import Case, Measurement, Sample
from flowos.probes._headlines import CEILINGS, HEADLINES, Headline, best_of
from flowos.probes._tables import PROBES
from flowos.probes._worth import worth


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
    assert best_of(Headline("", "p", "triad"), rates) is rates[1]
    assert best_of(Headline("", "p", "latency"), times) is times[1]


def test_only_cases_with_the_levels_of_the_headline_count() -> None:
    at_one = measured("triad", "byte/s", 1.0, threads="1", stores="nt")
    at_two = measured("triad", "byte/s", 2.0, threads="2", stores="nt")
    assert best_of(Headline("", "p", "triad", (("threads", "1"),)), [at_two, at_one]) is at_one
    assert best_of(Headline("", "other", "triad"), [at_one]) is None
    assert best_of(Headline("", "p", "copy"), [at_one]) is None


def turn(m: Measurement, number: int, value: float) -> Sample:
    return Sample(run="r", case=m.case, round=number, metric=m.metric, unit=m.unit, values=(value,))


def test_the_headline_is_the_case_that_the_best_setting_names_and_not_the_highest_median() -> None:
    nt = measured("triad", "byte/s", 100.0, stores="nt")
    plain = measured("triad", "byte/s", 142.0, stores="plain")
    both = [turn(m, n, rate) for n in (0, 1) for m, rate in ((nt, 100.0), (plain, 95.0))]
    samples = [*both, *(turn(plain, n, 142.0) for n in (2, 3, 4))]
    found = worth(samples, "triad")
    assert found is not None
    assert found.best == nt.case
    assert best_of(Headline("", "p", "triad"), [plain, nt], samples) is nt


def test_the_shortest_time_is_the_best_by_that_rule_too() -> None:
    slow, fast = (measured("latency", "second", v, mpi=f"m{v}") for v in (2.0, 1.0))
    samples = [turn(m, n, m.median) for n in (1, 2) for m in (slow, fast)]
    assert best_of(Headline("", "p", "latency"), [slow, fast], samples) is fast


def test_of_ceilings_the_one_of_the_highest_best_is_shown() -> None:
    steady, peak = (
        replace(measured("flops", "flop/s", 1.0, isa=isa), best=best, ceiling=True)
        for isa, best in (("avx", 1.1), ("avx2", 1.2))
    )
    steady = replace(steady, median=1.05, case=replace(steady.case, probe="flops"))
    peak = replace(peak, case=replace(peak.case, probe="flops"))
    samples = [turn(m, 1, m.median) for m in (steady, peak)]
    assert best_of(Headline("", "flops", "flops"), [steady, peak], samples) is peak


def test_ceilings_are_measured_by_probes() -> None:
    assert {probe for probe, _ in CEILINGS} <= {p.name for p in PROBES}


def test_a_headline_of_stream_names_its_pages_and_is_of_no_other() -> None:
    found = [h for h in HEADLINES if h.probe == "stream"]
    assert {dict(h.levels)["pages"] for h in found} == {"system", "huge"}
    assert all(f"{dict(h.levels)['pages']} pages" in h.label for h in found)


def test_the_solver_has_a_headline_that_memory_bounds() -> None:
    ours = {h.metric for h in HEADLINES if h.probe == "solve"}
    assert ours == {"total", "bandwidth"}


def test_every_headline_belongs_to_a_probe_that_measures_it() -> None:
    assert {h.probe for h in HEADLINES} <= {p.name for p in PROBES}
    drawn = {(p.name, metric) for p in PROBES for chart in p.charts for metric in chart.metrics}
    ours = [h for h in HEADLINES if h.probe in ("stream", "mpi", "fio")]
    assert ours
    assert {(h.probe, h.metric) for h in ours} <= drawn
