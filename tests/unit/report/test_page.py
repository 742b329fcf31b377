"""The page: whole, small, readable in both themes, and safe whatever text it holds."""

import base64
import hashlib
import math
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from flowos.model import Case, Chart, Measurement, Run, Trust, Unmeasured
from flowos.report import ChartStep, Report, Section, html, html_cell, markdown, text
from flowos.report.page._script import SCRIPT
from flowos.report.page._style import DARK, DASHES, LIGHT
from flowos.report.page._ticks import (
    Axis,
    apart,
    binary_ticks,
    decade_ticks,
    even_ticks,
)

from .reports import BARS, CURVE, bounded, hostile, measured, untrusted


class Reader(HTMLParser):
    """Counts elements and keeps what could load, run or hide something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.loads: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            if name in ("src", "href") and not (value or "").startswith(("#", "data:,")):
                self.loads.append(f"{tag} {value}")
            if name.startswith("on"):
                self.handlers.append(name)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def page_of(run: Run, chart: Chart, *rows: Measurement, steps: tuple[ChartStep, ...] = ()) -> str:
    section = Section(probe=rows[0].case.probe, title="Title", charts=(chart,))
    return html(Report(run=run, measurements=rows, sections=(section,), steps=steps))


def test_a_page_loads_nothing_and_runs_one_script_by_its_digest(recorded: Report) -> None:
    page = html(recorded)
    reader = read(page)
    assert reader.loads == []
    assert reader.handlers == []
    assert reader.tags["script"] == 1
    assert "http" not in page.replace("http-equiv", "").replace(SCRIPT, "")
    policy = page.replace("&#x27;", "'")
    assert "default-src 'none'" in policy
    script = page[page.index("<script>") + len("<script>") : page.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in policy
    assert set(re.findall('http[^"]*', SCRIPT)) == {"http://www.w3.org/2000/svg"}, "a namespace"


@pytest.mark.no_cover
def test_a_page_is_small_also_when_very_much_was_measured(recorded: Report) -> None:
    assert len(html(recorded).encode()) < 500_000
    many = tuple(
        replace(m, case=m.case.at(copy=str(i))) for m in recorded.measurements for i in range(5)
    )
    assert len(many) > 3500
    assert len(html(replace(recorded, measurements=many, samples=())).encode()) < 2_000_000


def test_hostile_text_stays_text(small: Report) -> None:
    page = html(hostile(small))
    assert read(page).tags["script"] == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", page)
    assert "alert(&quot;1&quot;)" in page
    page.encode("utf-8")


def test_a_notebook_has_the_page_in_a_frame_of_its_own(small: Report) -> None:
    cell = html_cell(hostile(small))
    assert cell.count("<") == 2  # all of the page is the value of an attribute
    assert 'sandbox="allow-scripts"' in cell
    assert unescape(cell.partition('srcdoc="')[2].partition('"')[0]) == html(hostile(small))


def test_text_cannot_turn_its_direction_around(small: Report) -> None:
    assert "\u202e" not in html(replace(small, findings=("evil\u202etxt", "non\ufffecharacter")))


def test_every_number_is_in_a_table(recorded: Report) -> None:
    page = html(recorded)
    charted = {
        (m.case, m.metric)
        for s in recorded.sections
        for c in s.charts
        for m in recorded.measurements
        if m.case.probe == s.probe and m.metric in c.metrics
    }
    assert page.count('<th scope="row">') >= len(charted)


def test_headings_go_down_one_level_at_a_time(recorded: Report) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])", html(recorded))]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_what_is_missing_or_doubted_is_at_the_top_with_its_remedy(small: Report) -> None:
    page = html(small)
    top = page[: page.index("Memory bandwidth</h2>")]
    assert "1 of them cannot be trusted" in top
    assert "a write cache answers" in top
    assert "<code>apt install mpich</code>" in top
    assert "gemm, 2 cases" in top


def test_an_empty_run_and_a_calm_one_are_said(small: Report) -> None:
    empty = html(Report(run=replace(small.run, unmeasured=())))
    assert "Nothing was measured." in empty
    assert "What not to believe" not in empty
    gone = html(Report(run=small.run))
    assert "no MPI was found" in gone
    assert "Not to be trusted" not in gone
    quiet = tuple(replace(m, trust=Trust()) for m in small.measurements)
    page = html(replace(small, measurements=quiet, run=replace(small.run, ended="", unmeasured=())))
    assert "All of them can be trusted." in page
    assert "Nothing disturbed the measurements." in page
    assert "was ended early" in page


def test_a_long_list_of_gaps_is_folded(small: Report) -> None:
    marked = tuple(untrusted(small.measurements[0], f"reason {c}") for c in "abcdefghi")
    page = html(replace(small, measurements=marked))
    assert "<summary>3 more</summary>" in page


def test_numbers_with_one_reason_stand_together(small: Report) -> None:
    marked = tuple(untrusted(m, "stolen time") for m in small.measurements)
    page = html(replace(small, measurements=marked))
    assert "<summary>6 numbers with this or alike</summary>" in page
    assert "None of them can be trusted" in page
    assert "Measure again when nothing else uses the machine." in page


def test_an_odd_time_stamp_is_shown_as_it_is(small: Report) -> None:
    assert "2026-11-20 at 10:00 UTC" in html(small)
    odd = replace(small.run, started="yesterday")
    assert "measured this machine, yesterday" in html(replace(small, run=odd))


def test_nothing_unknown_leaves_no_empty_table(small: Report) -> None:
    facts = replace(small.run.facts, missing=())
    assert "What could not be found out" in html(small)
    page = html(replace(small, run=replace(small.run, facts=facts)))
    assert "What could not be found out" not in page
    silent = replace(small.run.facts.missing[0], remedy="")
    report = replace(small, run=replace(small.run, facts=replace(facts, missing=(silent,))))
    assert "What could not be found out" in html(report)


def test_findings_or_verdicts_alone_make_the_section(small: Report) -> None:
    for change in ({"findings": ()}, {"verdicts": ()}):
        assert "What to change" in html(replace(small, **change))  # type: ignore[arg-type]
    assert "What to change" not in html(replace(small, findings=(), verdicts=()))


def test_a_verdict_without_an_interval_draws_none(small: Report) -> None:
    assert html(small).count('class="forest"') == 1
    wide = replace(small.verdicts[0], margin=1.5)
    assert html(replace(small, verdicts=(wide,))).count('class="forest"') == 1


def test_a_chart_has_one_unit_in_all_its_panels_legends_and_tables(small: Report) -> None:
    rows = [
        bounded(measured(v, threads=t, stores=s), 65e9, "m")
        for s, t, v in (
            ("nt", "1", 40e6),
            ("nt", "2", 61e9),
            ("plain", "1", 2e9),
            ("plain", "2", 3e9),
        )
    ]
    for chart in (replace(CURVE, facets=("stores",), series=()), CURVE):
        page = page_of(small.run, chart, *rows)
        body = page[page.index("<main") : page.index("</main>")]
        assert set(re.findall(r"\b[kMGT]?B/s", body[body.index("<figure") :])) == {"GB/s"}
        assert "0.0400\u00a0GB/s" in body


def test_the_legends_number_says_that_it_is_the_best_and_a_lone_dot_where_it_is(
    small: Report,
) -> None:
    rows = [
        measured(v, threads=t, stores=s)
        for s, t, v in (("nt", "1", 41e9), ("nt", "2", 30e9), ("plain", "1", 2e9))
    ]
    page = page_of(small.run, CURVE, *rows)
    assert "nt best <b>41.0\u00a0GB/s</b></span>" in page
    assert "plain best <b>2.00\u00a0GB/s</b>, at threads 1 only</span>" in page


def test_the_rule_by_which_numbers_stand_for_cases_is_said(small: Report) -> None:
    for shown in (html(small), markdown(small), " ".join(text(small).split())):
        assert "A number is the median of its repetitions. A ceiling is the best" in shown
        assert "Of several settings the one is shown that comes out best" in shown


def test_gaps_with_one_reason_are_counted_and_named_on_demand(small: Report) -> None:
    page = html(small)
    assert "<summary>Which</summary>" in page
    assert "gemm: isa avx2<" in page


def test_words_that_are_no_command_are_not_set_as_one(small: Report) -> None:
    why = Unmeasured(reason="too late", remedy="give more time, as in `flowos measure --minutes 9`")
    run = replace(small.run, unmeasured=((Case("mpi"), why),))
    page = html(replace(small, run=run, findings=("slow. To mend it: `export A=1`",)))
    assert "To mend it: give more time, as in <code>flowos measure --minutes 9</code>" in page
    assert "To mend it: <code>export A=1</code>" in page


def test_what_cannot_be_drawn_says_so_and_keeps_its_table(small: Report) -> None:
    page = page_of(small.run, CURVE, measured(math.nan, threads="1", stores="nt"))
    assert "could be drawn; see the table" in page
    assert "n/a" in page


@pytest.mark.parametrize("log", [True, False])
def test_a_single_point_is_drawn(log: bool, small: Report) -> None:
    chart = replace(CURVE, log_x=log, log_y=log)
    page = page_of(small.run, chart, measured(2e9, threads="4", stores="nt"))
    assert page.count('class="dot"') == 1
    assert "nan" not in page.lower().replace("nano", "")


def test_only_zeros_are_drawn(small: Report) -> None:
    for chart in (replace(CURVE, series=()), replace(BARS, metrics=("triad",))):
        rows = (measured(0.0, threads="1", workload="w"), measured(0.0, threads="2", workload="v"))
        assert "n/a" not in page_of(small.run, chart, *rows)


def test_a_ceiling_far_off_does_not_flatten_the_plot(small: Report) -> None:
    near, far = (
        page_of(small.run, CURVE, bounded(measured(1e9, threads="1", stores="nt"), c, "x"))
        for c in (2e9, 9e9)
    )
    assert ">ceiling 2.00\u00a0GB/s<" in near
    assert ">ceiling 9.00" not in far


def test_a_ceiling_that_follows_the_curve_is_a_line_of_its_own(small: Report) -> None:
    rows = [
        bounded(measured(1e9, threads=t, stores="nt"), c, f"m cores={t}")
        for t, c in (("1", 2e9), ("2", 3e9))
    ]
    assert re.search(
        r'class="ceiling measured" d="M[\d. ]+L[\d. ]+"', page_of(small.run, CURVE, *rows)
    )


def test_lines_beyond_the_colours_are_grey_and_counted(small: Report) -> None:
    rows = [
        measured(1e9 + 1e8 * i, threads=t, stores=f"s{i}")
        for i in range(10)
        for t in (("1", "2") if i else ("1",))
    ]
    page = page_of(small.run, CURVE, *rows)
    assert "2 more in grey" in page
    assert 'class="context"' in page
    assert 'class="cdot"' in page


def test_bars_beyond_the_colours_are_counted(small: Report) -> None:
    rows = [
        measured(1e3 * i, metric="iops", unit="1/s", workload="w", iodepth=str(i))
        for i in range(1, 12)
    ]
    assert "3 more in the table only" in page_of(small.run, BARS, *rows)


def test_bars_over_decades_become_points(small: Report) -> None:
    rows = [
        measured(v, metric="iops", unit="1/s", workload=w) for w, v in (("a", 10.0), ("b", 1e5))
    ]
    rows[0] = replace(rows[0], low=0.0)
    page = page_of(small.run, replace(BARS, log_y=True), *rows)
    assert page.count('class="dot"') == 2
    assert 'class="bar"' not in page


def test_long_ticks_are_thinned_until_they_do_not_touch(small: Report) -> None:
    rows = [measured(1e9, n=str(n * 10**7)) for n in range(1, 7)]
    page = page_of(small.run, replace(CURVE, x="n", series=()), *rows)
    ticks = re.findall(r'x="([\d.]+)" y="321" text-anchor="middle">([^<]+)', page)
    ends = [(float(x) - 4.8 * len(t), float(x) + 4.8 * len(t)) for x, t in ticks]
    assert len(ticks) >= 3
    assert all(b[0] > a[1] for a, b in pairwise(ends))


def test_bars_show_their_ceiling_only_where_the_chart_says_so(small: Report) -> None:
    row = bounded(measured(1e9, workload="w"), 2e9, "memory")
    for wanted in (True, False):
        page = page_of(small.run, replace(BARS, metrics=("triad",), ceilings=wanted), row)
        assert ('class="ceiling"' in page) is wanted


def test_a_bar_group_without_a_level_takes_the_charts_title(small: Report) -> None:
    page = page_of(small.run, BARS, measured(5.0, metric="iops", unit="1/s"))
    assert ">Rates</text>" in page


def test_a_curve_below_0_is_drawn(small: Report) -> None:
    rows = [measured(-1e9 * n, threads=str(n)) for n in (1, 2)]
    rows = [replace(m, low=m.median, high=m.median) for m in rows]
    assert page_of(small.run, CURVE, *rows).count('class="dot"') >= 2


def test_steps_that_crowd_are_staggered_and_those_outside_are_left_out(small: Report) -> None:
    chart = replace(CURVE, x="bytes", x_label="bytes", log_x=True, series=())
    rows = [measured(1e9, bytes=str(2**i)) for i in range(10, 20)]
    at = [
        ChartStep(probe="stream", axis="bytes", at=a, label=f"L{a}")
        for a in (2**11, 2**11 + 99, 2**18)
    ]
    page = page_of(
        small.run,
        chart,
        *rows,
        steps=(*at, ChartStep(probe="stream", axis="bytes", at=1, label="out")),
    )
    heights = re.findall(r'y="([\d.]+)"[^>]*class="halo"[^>]*>L\d', page)
    assert len(set(heights)) == 3
    assert ">out</text>" not in page


def test_small_times_are_shown_with_the_greek_letter(small: Report) -> None:
    page = page_of(small.run, CURVE, measured(5e-6, unit="second", threads="1", stores="nt"))
    assert "5.00\u00a0\u00b5s" in page


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_contrast_4_5_and_lines_3(colours: dict[str, str]) -> None:
    for paper in ("paper", "card"):
        for ink in ("ink", "muted", "good", "warn", "c0"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
        for i in range(len(DASHES)):
            assert contrast(colours[f"c{i}"], colours[paper]) >= 3, (i, paper)


def test_no_two_lines_have_the_same_dashes() -> None:
    assert len(set(DASHES)) == len(DASHES) == 8


def test_ticks_are_round_and_within() -> None:
    assert even_ticks(0, 100) == (0, 20, 40, 60, 80, 100)
    assert even_ticks(0, 0.7, 4) == pytest.approx((0, 0.2, 0.4, 0.6))
    assert even_ticks(1, 4096) == (1000, 2000, 3000, 4000)
    assert decade_ticks(1e-7, 1e-3) == pytest.approx((1e-7, 1e-6, 1e-5, 1e-4, 1e-3))
    assert decade_ticks(30, 300) == (50, 100, 200)
    assert decade_ticks(1, 1e12, 4) == (1, 1e4, 1e8, 1e12)
    assert binary_ticks(1000, 70000, 3) == (1024, 8192, 65536)


def test_an_axis_maps_its_ends_to_its_ends() -> None:
    for log in (True, False):
        axis = Axis(1, 100, 10, 210, log)
        assert axis.at(1) == pytest.approx(10)
        assert axis.at(100) == pytest.approx(210)
    assert Axis(1, 100, 0, 2, log=True).at(10) == pytest.approx(1)


def test_labels_are_moved_apart_and_stay_within() -> None:
    assert apart([], 10, 0, 100) == []
    assert apart([10, 50], 10, 0, 100) == [10, 50]
    assert apart([10, 12, 14], 10, 0, 100) == [10, 20, 30]
    assert apart([95, 99], 10, 0, 100) == [90, 100]
