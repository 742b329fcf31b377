"""Runs side by side: headlines and charts with a series for each run."""

import json
from dataclasses import replace

import pytest

from flowos.model import (
    Case,
    Chart,
    Entered,
    Measurement,
    MeasurementRequest,
    Unmeasured,
    Verdict,
)
from flowos.plan import Numbers, side_by_side
from flowos.report import (
    HeadlineNumber,
    Report,
    ReportedRun,
    Section,
    SideBySide,
    side_by_side_html,
    side_by_side_json,
    side_by_side_text,
)
from flowos.report._side_by_side import combined_charts, headline_rows
from flowos.report._side_by_side_text import NOTHING_IN_COMMON

from .reports import HOSTILE, hostile, measured, untrusted


def runs_of(
    *reports: Report, unlike: tuple[str, ...] = (), verdicts: tuple[Verdict, ...] = ()
) -> SideBySide:
    """The first is not judged against itself."""
    reported = [
        ReportedRun(
            label=f"{n}: node{n}, 2026-11-2{n}",
            machine=f"node{n}",
            report=report,
            unlike=unlike if n > 1 else (),
            verdicts=verdicts if n > 1 else (),
        )
        for n, report in enumerate(reports, start=1)
    ]
    return SideBySide(runs=tuple(reported), differences=(("host", ("node1", "")),))


def judged(first: Report, other: Report) -> tuple[Verdict, ...]:
    numbers = [Numbers(run=r, measurements=b.measurements) for r, b in (("a", first), ("b", other))]
    return side_by_side(*numbers, margin=0.05)


def faster(report: Report, factor: float) -> Report:
    def scaled(m: Measurement) -> Measurement:
        values = {n: getattr(m, n) * factor for n in ("median", "low", "high", "best")}
        return replace(m, **values)

    return replace(
        report,
        measurements=tuple(map(scaled, report.measurements)),
        headlines=tuple(replace(h, measured=scaled(h.measured)) for h in report.headlines),
    )


def test_alike_runs_are_judged_and_marked_numbers_are_inconclusive(small: Report) -> None:
    slow = faster(small, 0.8)
    shown = runs_of(small, slow, verdicts=judged(small, slow))
    triad, read = headline_rows(shown)
    assert [cell.answer for cell in triad.cells] == ["", "slower"]
    assert triad.cells[1].ratio == pytest.approx(0.8)
    assert read.cells[1].answer == "inconclusive"
    text = side_by_side_text(shown)
    assert "0.800 of the first, slower" in text
    assert "NOT TRUSTED: a write cache answers" in text
    assert "\nThe runs were not interleaved: what else changed between them is" in text
    assert "host: node1 | none" in text


def test_the_terminal_has_the_runs_and_below_each_headline_its_numbers(small: Report) -> None:
    slow = faster(small, 0.8)
    first, other = runs_of(small, slow, verdicts=judged(small, slow)).runs
    early = replace(slow, run=replace(slow.run, id="r2", ended=""))
    shown = runs_of(small, small)
    lines = side_by_side_text(
        replace(shown, runs=(first, replace(other, source="b.json", report=early)))
    ).splitlines()
    assert lines[:3] == [
        "2 runs of 2 machines side by side",
        "  1: node1, 2026-11-21: run 2026-11-20-abc of Example CPU 9000, normal",
        "  2: node2, 2026-11-22: run r2 of Example CPU 9000, normal, from b.json; it ended early",
    ]
    at = lines.index("STREAM triad")
    assert lines[at : at + 7] == [
        "STREAM triad",
        "  1: node1, 2026-11-21  61.2 GB/s; 99% of 62.0 GB/s",
        "  2: node2, 2026-11-22  49.0 GB/s; 99% of 62.0 GB/s; 0.800 of the first, slower",
        "",
        "Random read, depth 16",
        "  1: node1, 2026-11-21  70.5 k IOPS; NOT TRUSTED: a write cache answers",
        "  2: node2, 2026-11-22  56.4 k IOPS; 0.800 of the first, inconclusive; NOT TRUSTED: a"
        " write cache",
    ]
    assert NOTHING_IN_COMMON not in lines


def test_an_answer_says_why_it_is_inconclusive(small: Report) -> None:
    near = faster(small, 0.96)
    wide = replace(near, measurements=tuple(replace(m, low=m.low / 2) for m in near.measurements))
    text = side_by_side_text(runs_of(small, wide, verdicts=judged(small, wide)))
    assert "inconclusive (the middle halves are wider" in " ".join(text.split())


def test_another_kind_of_machine_has_a_ratio_and_no_answer(small: Report) -> None:
    other = faster(small, 2.0)
    shown = runs_of(small, other, other, unlike=("kind of machine",), verdicts=judged(small, other))
    row = headline_rows(shown)[0]
    assert row.cells[1].ratio == pytest.approx(2.0)
    assert row.cells[1].answer == ""
    text = side_by_side_text(shown)
    assert "Not judged against the first: 2, 3, as they differ in kind of machine" in text
    assert "interleaved" not in text
    assert "faster" not in text.partition("Not judged")[0]
    assert "Not judged against the first" in side_by_side_html(shown)


def test_another_best_setting_is_not_judged(small: Report) -> None:
    headline = replace(small.headlines[0], measured=small.measurements[0])
    other = replace(small, headlines=(headline,))
    row = headline_rows(runs_of(small, other, verdicts=judged(small, other)))[0]
    assert (row.cells[1].answer, row.cells[1].why[:15]) == ("", "another setting")
    lone = headline_rows(runs_of(small, small))[0]
    assert (lone.cells[1].answer, lone.cells[1].why) == ("", "")


def test_a_run_without_a_number_says_why(small: Report) -> None:
    unmeasured = ((Case("fio"), Unmeasured(reason="fio was not found")),)
    bare = replace(
        small,
        headlines=small.headlines[:1],
        measurements=small.measurements[:4],
        run=replace(small.run, unmeasured=unmeasured, ended=""),
    )
    for reports in ((small, bare), (bare, small)):
        text = side_by_side_text(runs_of(*reports))
        assert "-  (fio was not found)" in text
        assert "it ended early" in text
        assert "fio was not found" in side_by_side_html(runs_of(*reports))
    assert headline_rows(runs_of(bare, small))[1].cells[1].ratio != 1.0
    fewer = replace(small, headlines=small.headlines[:1])
    assert "-  (not measured)" in side_by_side_text(runs_of(small, fewer))
    gone = replace(bare, run=replace(bare.run, unmeasured=()))
    assert "-  (not measured)" in side_by_side_text(runs_of(small, gone))


def test_a_number_that_is_not_above_0_has_no_ratio(small: Report) -> None:
    zero = faster(small, 0.0)
    assert "of the first" not in side_by_side_text(runs_of(small, zero))
    row = json.loads(side_by_side_json(runs_of(small, zero)))["headlines"][0]
    assert row["runs"][1]["ratio"] is None


@pytest.mark.parametrize(
    ("seconds", "ratio"), [(0.01, "100"), (0.1, "10.0"), (1 / 9.5, "9.500"), (2.0, "0.500")]
)
def test_a_large_ratio_has_three_digits_and_less_time_is_better(
    seconds: float, ratio: str, small: Report
) -> None:
    times = [measured(t, metric="total", unit="second", probe="solve") for t in (1.0, seconds)]
    reports = [
        replace(small, headlines=(HeadlineNumber(label="Solve", measured=m),), measurements=(m,))
        for m in times
    ]
    assert f" {ratio} of the first" in side_by_side_text(runs_of(*reports))


def test_runs_without_anything_in_common_are_said(small: Report) -> None:
    empty = Report(run=small.run)
    text = side_by_side_text(runs_of(small, empty))
    assert "No headline is in two of them." in text
    page = side_by_side_html(runs_of(small, empty))
    assert "No headline is in two of them." in page
    nothing = side_by_side_html(replace(runs_of(empty, empty), differences=()))
    assert "What is not the same" not in nothing
    alike = side_by_side_text(replace(runs_of(small, small), differences=()))
    assert "They differ in" not in alike
    assert "<svg" not in nothing


def test_commands_of_the_user_are_the_same_headline_only_if_they_are_the_same(
    small: Report,
) -> None:
    def timed(*argv: str) -> Report:
        request = MeasurementRequest(commands=(argv,))
        return replace(small, run=replace(small.run, request=request))

    rows = headline_rows(runs_of(timed("gzip", "a"), timed("zstd", "a")))
    assert [len(row.measured) for row in rows] == [1, 1, 1, 1]
    assert rows[0].label == "STREAM triad: `gzip a`"
    same = headline_rows(runs_of(timed("gzip", "a"), timed("gzip", "a")))
    assert [len(row.measured) for row in same] == [2, 2]


def test_each_run_is_a_series_with_its_best_setting(small: Report) -> None:
    ((title, (chart,)), _) = combined_charts(runs_of(small, faster(small, 0.5)))
    assert title == "Memory bandwidth"
    found = {
        (m.case.level("run")[0], m.case.level("threads")): m for m in chart.report.measurements
    }
    assert found["1", "2"].value == 61.2e9
    assert found["2", "2"].value == 30.6e9
    assert len(found) == 4
    page = side_by_side_html(runs_of(small, faster(small, 0.5)))
    assert "best setting at each point" in page
    assert "1: node1, 2026-11-21" in page


def test_metrics_of_one_chart_become_a_chart_each(small: Report) -> None:
    rows = [measured(v, metric=m, stores="nt") for m, v in (("copy", 1e9), ("triad_nt", 2e9))]
    bars = Chart(title="Kernels", kind="bars", x="stores", metrics=("copy", "triad_nt"))
    report = replace(
        small,
        measurements=tuple(rows),
        sections=(Section(probe="stream", title="Memory", charts=(bars,)),),
    )
    ((_, charts),) = combined_charts(runs_of(report, report))
    assert [each.chart.title for each in charts] == ["Kernels, copy", "Kernels, triad nt"]


def test_all_cores_are_one_panel_whatever_their_number(small: Report) -> None:
    chart = Chart(title="T", kind="bars", x="isa", metrics=("flops",), facets=("cores",))

    def of(*counts: str) -> Report:
        rows = [
            measured(1e9 * int(n), metric="flops", unit="flop/s", probe="flops", isa="avx", cores=n)
            for n in counts
        ]
        section = Section(probe="flops", title="Arithmetic", charts=(chart,))
        return replace(small, measurements=tuple(rows), sections=(section,))

    def panels(*reports: Report) -> set[str]:
        ((_, (combined,)),) = combined_charts(runs_of(*reports))
        return {m.case.level("cores") for m in combined.report.measurements}

    assert panels(of("1", "2"), of("1", "96")) == {"1", "all"}
    assert panels(of("1", "2"), of("1", "2")) == {"1", "2"}
    assert panels(of("1", "2"), replace(of("1"), measurements=())) == {"1", "2"}


def test_environments_of_a_run_are_series_of_their_own(small: Report) -> None:
    rows = [replace(m, case=m.case.at(env=e)) for m in small.measurements for e in ("bare", "pod")]
    run = replace(small.run, environments=(Entered(label="bare"), Entered(label="pod")))
    report = replace(small, run=run, measurements=tuple(rows), headlines=())
    (_, (chart,)), _ = combined_charts(runs_of(small, report))
    series = {m.case.level("run") for m in chart.report.measurements}
    assert {s.partition(", 2026-11-2")[2] for s in series} == {"1", "2, bare", "2, pod"}


def test_twenty_runs_are_all_in_the_headlines(small: Report) -> None:
    shown = runs_of(*(faster(small, 1 + n / 100) for n in range(20)))
    page = side_by_side_html(shown)
    assert all(f"{n}: node{n}, " in page for n in range(1, 21))
    assert "12 more in grey" in page


def test_json_names_runs_by_place(small: Report) -> None:
    found = json.loads(side_by_side_json(runs_of(small, small, unlike=("effort",))))
    assert (found["format"], found["schema"]) == ("flowos-side-by-side", 1)
    assert [run["unlike"] for run in found["runs"]] == [[], ["effort"]]
    assert [cell["run"] for cell in found["headlines"][0]["runs"]] == [0, 1]
    assert {m["case"]["levels"][-1][1][0] for m in found["charts"][0]["numbers"]} == {"1", "2"}
    assert found["differences"] == {"host": ["node1", ""]}


def test_hostile_text_stays_text(small: Report) -> None:
    shown = runs_of(hostile(small), doubted_headline(small))
    shown = replace(
        shown, runs=tuple(replace(r, label=HOSTILE, source=HOSTILE) for r in shown.runs)
    )
    page = side_by_side_html(shown)
    assert page.count("<script") == 1
    assert "\x1b" not in side_by_side_text(shown)
    side_by_side_json(shown).encode()


def doubted_headline(report: Report) -> Report:
    first, *rest = report.headlines
    return replace(
        report, headlines=(replace(first, measured=untrusted(first.measured, "two regimes")), *rest)
    )
