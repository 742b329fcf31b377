"""The tables of the page: every number of a chart, with the levels in which the rows differ."""

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from flowos.model import Chart, Measurement
from flowos.report import Report, Section, html

from .reports import CURVE, bounded, measured, untrusted


@dataclass
class Table:
    """classes: of the cells of each row."""

    summary: str = ""
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)
    classes: list[list[str]] = field(default_factory=list)

    @property
    def head(self) -> list[str]:
        return self.rows[0]

    @property
    def body(self) -> list[list[str]]:
        return self.rows[1:]


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.table, self.open = Table(), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.table.rows.append([])
            self.table.classes.append([])
        elif tag in ("td", "th"):
            self.table.rows[-1].append("")
            self.table.classes[-1].append(dict(attrs).get("class") or "")
        if tag in ("summary", "caption", "td", "th"):
            self.open = tag

    def handle_data(self, data: str) -> None:
        if self.open in ("td", "th"):
            self.table.rows[-1][-1] += data.replace("\xa0", " ")
        elif self.open == "summary":
            self.table.summary += data
        elif self.open == "caption":
            self.table.caption += data


def tables(small: Report, *rows: Measurement, chart: Chart = CURVE) -> list[Table]:
    section = Section(probe=rows[0].case.probe, title="Title", charts=(chart,))
    page = html(Report(run=small.run, measurements=rows, sections=(section,)))
    numbers = re.findall(r"<details><summary>The numbers.*?</details>", page, re.DOTALL)
    return [Reader(text).table for text in numbers]


NUMBERS = ["median", "middle half", "best", "count", "of measured ceiling", "of nominal", "trust"]


def test_all_numbers_of_a_curve_are_listed_by_x_with_what_differs(small: Report) -> None:
    rows = [
        measured(40e9, threads="2", stores="nt", compiler="gcc", node=""),
        measured(20e9, threads="10", stores="nt", compiler="gcc", node=""),
        untrusted(measured(30e9, threads="2", stores="plain", compiler="gcc", node=""), "loud"),
    ]
    (table,) = tables(small, *rows)
    assert table.summary == "The numbers: 3 rows"
    assert table.caption == "Triad over threads. All with compiler gcc"
    assert table.head == ["threads", "stores", *NUMBERS]
    assert [row[:2] for row in table.body] == [["2", "nt"], ["2", "plain"], ["10", "nt"]]
    assert [row[-1] for row in table.body] == ["trusted", "not trusted: loud", "trusted"]
    assert table.body[0][2:6] == ["40.0 GB/s", "39.6 to 40.4 GB/s", "40.8 GB/s", "12"]
    assert [classes[-1] for classes in table.classes[1:]] == ["", "warn wrap", ""]


def test_one_number_is_one_row_without_levels_in_common(small: Report) -> None:
    (table,) = tables(small, measured(40e9, threads=""))
    assert (table.summary, table.caption) == ("The numbers: 1 row", "Triad over threads")
    assert table.head == ["threads", *NUMBERS]
    assert table.body[0][0] == "all"
    assert table.classes[0] == ["", *["n"] * 6, ""], "numbers stand on the right"


def test_an_axis_named_n_is_another_column_than_the_count(small: Report) -> None:
    (table,) = tables(small, measured(40e9, n="64"), chart=replace(CURVE, x="n", series=()))
    assert table.head == ["n", *NUMBERS]
    assert table.body[0][0] == "64"
    assert table.body[0][4] == "12"


def test_metrics_are_a_column_where_there_are_two(small: Report) -> None:
    chart = replace(CURVE, metrics=("triad", "copy"))
    rows = [measured(v, metric=m, threads="2") for v, m in ((4e9, "triad"), (3e9, "copy"))]
    (table,) = tables(small, *rows, chart=chart)
    assert table.head == ["threads", "metric", *NUMBERS]
    assert [row[1] for row in table.body] == ["triad", "copy"]
    assert table.caption == "Triad over threads"


def test_each_panel_has_a_table_that_names_it(small: Report) -> None:
    chart = replace(CURVE, facets=("pages",))
    rows = [
        measured(4e9, threads=t, pages=p, stores="nt") for p in ("huge", "system") for t in "12"
    ]
    found = tables(small, *rows, chart=chart)
    assert [table.caption for table in found] == [
        f"Triad over threads, pages {pages}. All with stores nt" for pages in ("huge", "system")
    ]
    assert [table.head for table in found] == [["threads", *NUMBERS]] * 2


def test_shares_stand_under_their_kind_of_ceiling(small: Report) -> None:
    m = bounded(bounded(measured(40e9, threads="2"), 50e9, "memory"), 80e9, "channels", "nominal")
    (table,) = tables(small, m)
    assert table.body[0][5].startswith("80%")
    assert table.body[0][6].startswith("50%")
