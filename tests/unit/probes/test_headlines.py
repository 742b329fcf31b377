from flowos.model import Case, Measurement
from flowos.probes._headlines import HEADLINES, Headline, best_of
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
    rates = [measured("triad", "byte/s", v) for v in (1.0, 3.0, 2.0)]
    times = [measured("latency", "second", v) for v in (2.0, 1.0)]
    assert best_of(Headline("", "p", "triad"), rates) is rates[1]
    assert best_of(Headline("", "p", "latency"), times) is times[1]


def test_only_cases_with_the_levels_of_the_headline_count() -> None:
    at_one = measured("triad", "byte/s", 1.0, threads="1", stores="nt")
    at_two = measured("triad", "byte/s", 2.0, threads="2", stores="nt")
    assert best_of(Headline("", "p", "triad", (("threads", "1"),)), [at_two, at_one]) is at_one
    assert best_of(Headline("", "other", "triad"), [at_one]) is None
    assert best_of(Headline("", "p", "copy"), [at_one]) is None


def test_every_headline_belongs_to_a_probe_that_measures_it() -> None:
    assert {h.probe for h in HEADLINES} <= {p.name for p in PROBES}
    drawn = {(p.name, metric) for p in PROBES for chart in p.charts for metric in chart.metrics}
    ours = [h for h in HEADLINES if h.probe in ("stream", "mpi", "fio")]
    assert ours
    assert {(h.probe, h.metric) for h in ours} <= drawn
