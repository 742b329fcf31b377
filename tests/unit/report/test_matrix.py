"""A chart of kind matrix: rows and columns, as a heat map and as a table of text."""

import math
import re
from dataclasses import replace

import pytest

from flowos.model import Chart, Measurement
from flowos.report import Report, Section, html, markdown, text
from flowos.report._matrix import SHADES, matrices_of, matrix_of
from flowos.report._panels import panels_of
from flowos.report.page._style import DARK, LIGHT, SHADE_STEP

from .conftest import RUN
from .reports import HOSTILE, measured, untrusted
from .test_page import contrast

CHART = Chart(title="A line", kind="matrix", x="to", metrics=("latency",), series=("from",))


def latency(nanoseconds: float, **levels: str) -> Measurement:
    value = nanoseconds * 1e-9
    return measured(value, metric="latency", unit="second", probe="core_latency", **levels)


def pair(a: int, b: int, nanoseconds: float) -> Measurement:
    return latency(nanoseconds, **{"from": str(a), "to": str(b)})


ROWS = (pair(0, 1, 20), pair(0, 10, 80), pair(1, 10, 90), pair(0, 2, 25), latency(9, pair="0-64"))


def report_of(*rows: Measurement, chart: Chart = CHART) -> Report:
    section = Section(probe="core_latency", title="Cores", charts=(chart,))
    return Report(run=RUN, measurements=rows, sections=(section,))


def test_rows_and_columns_are_in_their_natural_order_and_what_has_no_place_is_left_out() -> None:
    (found,) = matrices_of(report_of(*ROWS))
    assert (found.rows, found.columns) == (("0", "1"), ("1", "2", "10"))
    assert tuple(found.lines()) == (("20.0", "25.0", "80.0"), ("", "", "90.0"))
    assert (found.heading, found.corner) == ("A line, in ns", "from, to")


def test_more_rows_than_colours_are_all_there() -> None:
    rows = [pair(a, b, 10 + a + b) for a in range(20) for b in range(a + 1, 20)]
    (found,) = matrices_of(report_of(*rows))
    assert len(found.cells) == 190


def test_shades_go_from_the_smallest_to_the_largest() -> None:
    (found,) = matrices_of(report_of(*ROWS))
    shades = {m.case.level("to"): found.shade(m) for (row, _), m in found.cells.items()}
    assert found.shade(pair(0, 1, 20)) == 0
    assert found.shade(pair(1, 10, 90)) == SHADES - 1
    assert shades["1"] < shades["2"] < shades["10"]
    (equal,) = matrices_of(report_of(pair(0, 1, 20), pair(0, 2, 20)))
    assert {equal.shade(m) for m in equal.cells.values()} == {0}
    (odd,) = matrices_of(report_of(pair(0, 1, 0), pair(0, 2, 20)))
    assert {odd.shade(m) for m in odd.cells.values()} == {0}


def test_a_single_number_is_no_matrix_in_text() -> None:
    assert list(matrices_of(report_of(ROWS[0]))) == []
    assert "A line, in" not in text(report_of(ROWS[0]))
    assert 'class="heat"' in html(report_of(ROWS[0]))


def test_facets_and_other_kinds() -> None:
    faceted = replace(CHART, facets=("compiler",))
    rows = [
        replace(m, case=m.case.at(compiler=name)) for m in ROWS[:2] for name in ("gcc", "clang")
    ]
    titles = [m.heading for m in matrices_of(report_of(*rows, chart=faceted))]
    assert titles == ["A line, compiler gcc, in ns", "A line, compiler clang, in ns"]
    assert list(matrices_of(report_of(*ROWS, chart=replace(CHART, kind="bars")))) == []


def test_a_number_without_a_unit_has_none_in_the_heading() -> None:
    rows = [replace(m, unit="1", median=3.0) for m in ROWS[:2]]
    (found,) = matrices_of(report_of(*rows))
    assert found.heading == "A line"


def test_the_terminal_and_markdown_show_a_table_and_mark_what_cannot_be_trusted() -> None:
    report = report_of(untrusted(ROWS[0], "noise"), *ROWS[1:])
    assert (
        "A line, in ns\n  rows: from, columns: to\n"
        "         1     2    10\n"
        "  0  20.0!  25.0  80.0\n"
        "  1               90.0\n"
    ) in text(report)
    assert (
        "## A line, in ns\n\n| from, to | 1 | 2 | 10 |\n| --- | --- | --- | --- |\n"
        "| 0 | 20.0! | 25.0 | 80.0 |\n| 1 |  |  | 90.0 |\n"
    ) in markdown(report)


def test_a_matrix_wider_than_a_terminal_is_left_to_the_page() -> None:
    rows = [pair(0, b, 50) for b in range(1, 30)]
    assert "1 x 29 numbers: see the page or Markdown" in text(report_of(*rows))
    assert "rows: from" in text(report_of(*rows[:10]))
    assert "see the page or Markdown" not in text(report_of(*rows[:10]))


def test_the_page_has_a_table_with_headings_of_both_axes() -> None:
    page = html(report_of(untrusted(ROWS[0], "noise"), *ROWS[1:]))
    table = re.search(r'<table class="heat">.*?</table>', page, re.DOTALL)
    assert table is not None
    assert '<th scope="col">from, to' in table[0]
    assert '<th scope="row">0' in table[0]
    assert "\N{BLACK UP-POINTING TRIANGLE} 20.0" in table[0]
    assert 'class="n h8"' in table[0]
    assert '<td class="n" title="20.0\N{NO-BREAK SPACE}ns (' in table[0], "the lightest"
    assert "<td><td><td" in table[0]
    assert "From 20.0\N{NO-BREAK SPACE}ns (lightest) to 90.0" in table[0]
    assert "noise" in table[0]
    assert "The numbers: 5 rows" in page


def test_a_matrix_of_many_cores_stays_small() -> None:
    rows = [pair(a, b, 20 + (a ^ b)) for a in range(64) for b in range(a + 1, 64)]
    page = html(report_of(*rows))
    assert len(page) < 300_000
    assert "Spread and trust of each number: see the CSV or JSON." in page
    assert "title=" not in page[page.index('class="heat"') :]


def test_names_of_levels_stay_text() -> None:
    odd = [latency(value, **{"from": HOSTILE, "to": str(value)}) for value in (1, 2)]
    assert "<script>alert" not in html(report_of(*odd))
    assert "\x1b" not in text(report_of(*odd)) + markdown(report_of(*odd))


def test_what_cannot_be_drawn_is_left_to_the_table() -> None:
    page = html(report_of(replace(ROWS[0], median=math.nan)))
    assert "No number of this could be drawn" in page


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_contrast_on_the_darkest_shade(colours: dict[str, str]) -> None:
    share = (SHADES - 1) * SHADE_STEP / 100
    pairs = zip(*(bytes.fromhex(colours[name][1:]) for name in ("c0", "card")), strict=True)
    mixed = "#" + "".join(f"{round(share * c + (1 - share) * p):02x}" for c, p in pairs)
    assert contrast(colours["ink"], mixed) >= 4.5


def test_a_panel_of_one_number_is_a_matrix_too() -> None:
    report = report_of(ROWS[0])
    (panel,) = panels_of(report, report.sections[0], CHART)
    assert matrix_of(panel).shade(ROWS[0]) == 0
