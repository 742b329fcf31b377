"""What is drawn: which lines, which colours, which ceilings."""

import math
from dataclasses import replace

from flowos.model import Chart, Measurement, Run
from flowos.report import Report, Section
from flowos.report._panels import MAX_COLOURS, Panel, in_order, panels_of

from .reports import BARS, CURVE, bounded, measured


def panels(run: Run, chart: Chart, *rows: Measurement) -> tuple[Panel, ...]:
    report = Report(run=run, measurements=rows)
    return panels_of(report, Section(probe=rows[0].case.probe, title="t", charts=(chart,)), chart)


def test_numbers_are_ordered_by_size_and_words_as_they_came() -> None:
    assert in_order(["16", "2", "16", "1.5"]) == ("1.5", "2", "16")
    assert in_order(["16", "many", "2"]) == ("16", "many", "2")


def test_of_several_settings_at_one_point_the_best_is_drawn_and_all_are_listed(
    small: Report,
) -> None:
    rows = [measured(v, threads="1", pages=p) for p, v in (("huge", 3e9), ("small", 2e9))]
    (panel,) = panels(small.run, replace(CURVE, series=()), *rows)
    assert [m.median for m in panel.drawn] == [3e9]
    assert len(panel.rows) == 2


def test_the_best_of_times_is_the_smallest(small: Report) -> None:
    rows = [
        measured(v, metric="latency", unit="second", threads="1", pages=p)
        for p, v in (("huge", 3e-6), ("small", 2e-6))
    ]
    (panel,) = panels(small.run, replace(CURVE, metrics=("latency",), series=()), *rows)
    assert [m.median for m in panel.drawn] == [2e-6]


def test_every_setting_is_seen_in_colour_and_the_others_in_grey(small: Report) -> None:
    chart = replace(CURVE, series=("compiler", "stores"))
    rows = [
        measured(c * 1e9 + s * 1e8, threads="1", compiler=f"cc{c}", stores=f"s{s}")
        for c in range(4)
        for s in range(3)
    ]
    (panel,) = panels(small.run, chart, *rows)
    assert len(panel.lines) == MAX_COLOURS
    assert len(panel.context) == 12 - MAX_COLOURS
    seen = {pair for line in panel.lines for pair in line.key}
    assert seen == {pair for line in (*panel.lines, *panel.context) for pair in line.key}


def test_a_key_keeps_its_colour_in_every_panel(small: Report) -> None:
    chart = replace(CURVE, facets=("type",))
    rows = [
        measured(v, threads="1", stores=s, type=t)
        for t, s, v in (("f32", "a", 1e9), ("f32", "b", 2e9), ("f64", "a", 9e9), ("f64", "b", 1e9))
    ]
    first, second = panels(small.run, chart, *rows)
    assert {p.label: p.colour for p in first.lines} == {p.label: p.colour for p in second.lines}
    assert [line.label for line in first.lines] == ["b", "a"]
    assert first.title == "type f32"


def test_with_more_keys_than_colours_each_panel_has_its_own(small: Report) -> None:
    chart = replace(CURVE, facets=("type",))
    rows = [
        measured(1e9 + i, threads="1", stores=f"{t}{i}", type=t) for t in "ab" for i in range(6)
    ]
    for panel in panels(small.run, chart, *rows):
        assert sorted(line.colour for line in panel.lines) == list(range(6))


def test_facets_are_in_the_order_that_people_expect(small: Report) -> None:
    chart = replace(CURVE, facets=("cores",))
    rows = [measured(1e9, threads="1", cores=c) for c in ("16", "2", "1")]
    assert [p.title for p in panels(small.run, chart, *rows)] == ["cores 1", "cores 2", "cores 16"]


def test_what_cannot_be_drawn_is_still_listed(small: Report) -> None:
    rows = [
        measured(1e9, threads="many"),
        measured(math.nan, threads="1"),
        measured(1e9, threads="nan"),
        measured(1e9, threads="0"),
        measured(-1e9, threads="2"),
    ]
    chart = replace(CURVE, log_x=True, log_y=True)
    (panel,) = panels(small.run, chart, *rows)
    assert panel.lines == ()
    assert len(panel.rows) == 5


def test_ceilings_are_named_by_what_tells_them_apart(small: Report) -> None:
    rows = [
        bounded(measured(v, threads="1", stores=i), c, f"flops type=f64 isa={i} cores=2")
        for i, v, c in (("avx", 1e9, 2e9), ("avx2", 3e9, 4e9))
    ]
    (panel,) = panels(small.run, CURVE, *rows)
    assert {c.label: c.points for c in panel.ceilings} == {
        "avx": (("1", 2e9),),
        "avx2": (("1", 4e9),),
    }


def test_ceilings_for_different_points_are_one_line(small: Report) -> None:
    rows = [
        bounded(measured(1e9, threads=t, stores="nt"), c, f"working_set cores={t}")
        for t, c in (("1", 2e9), ("2", 3e9))
    ]
    (panel,) = panels(small.run, CURVE, *rows)
    (ceiling,) = panel.ceilings
    assert (ceiling.label, ceiling.points, ceiling.flat) == ("", (("1", 2e9), ("2", 3e9)), False)


def test_equal_ceilings_and_those_that_are_no_number_are_drawn_once_or_not(small: Report) -> None:
    rows = [
        bounded(measured(1e9, threads="1", stores=s), c, s)
        for s, c in (("a", 2e9), ("b", 2e9), ("c", math.inf))
    ]
    (panel,) = panels(small.run, CURVE, *rows)
    assert [c.points for c in panel.ceilings] == [(("1", 2e9),)]
    (without,) = panels(small.run, replace(CURVE, ceilings=False), *rows)
    assert without.ceilings == ()


def test_a_partial_ceiling_name_is_told_in_words(small: Report) -> None:
    rows = [
        bounded(measured(1e9, threads="1", stores=s), c, of)
        for s, c, of in (("a", 2e9, "working_set cores=2"), ("b", 3e9, "flops cores=4"))
    ]
    (panel,) = panels(small.run, CURVE, *rows)
    assert [c.label for c in panel.ceilings] == ["working set cores 2", "flops cores 4"]


def test_too_many_bars_become_the_best_of_each_metric(small: Report) -> None:
    chart = replace(BARS, metrics=("copy", "add"), series=("compiler",))
    rows = [
        measured(1e9 + i, metric=m, workload="w", compiler=f"cc{i}")
        for m in chart.metrics
        for i in range(5)
    ]
    (panel,) = panels(small.run, chart, *rows)
    assert [line.label for line in panel.lines] == ["copy", "add"]
    assert [m.median for m in panel.drawn] == [1e9 + 4, 1e9 + 4]


def test_a_bare_number_is_named_with_its_axis(small: Report) -> None:
    rows = [measured(1e9, threads="1", stores=s) for s in ("1", "nt")]
    (panel,) = panels(small.run, CURVE, *rows)
    assert {line.label for line in panel.lines} == {"stores 1", "nt"}
