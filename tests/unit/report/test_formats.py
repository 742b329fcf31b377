"""Text, Markdown and CSV are compared whole with tests/golden/report.

After an intended change: FLOWOS_UPDATE_GOLDEN=1 pytest tests/unit/report/test_formats.py, then read
the difference before it is committed. A missing golden file is a failure.
"""

import csv as table
import io
import json as text_of
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowos.model import Case, Measurement, Trust, UsageError
from flowos.report import (
    HeadlineNumber,
    Report,
    csv,
    folded,
    json,
    markdown,
    openmetrics,
    read_json,
    text,
)

from .reports import HOSTILE, hostile, untrusted

GOLDEN = Path(__file__).parents[2] / "golden/report"


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("small.txt", text),
        ("small.md", markdown),
        ("small.csv", csv),
        ("small.prom", openmetrics),
    ],
)
def test_the_format_is_as_it_was(name: str, render: Callable[[Report], str], small: Report) -> None:
    file = GOLDEN / name
    if os.environ.get("FLOWOS_UPDATE_GOLDEN") == "1":
        file.write_text(render(small))
    assert file.exists(), f"{file} is missing: see this test's first lines"
    assert render(small) == file.read_text()


def test_an_empty_report_renders(small: Report) -> None:
    empty = Report(run=replace(small.run, unmeasured=(), ended=""))
    assert "0 numbers\n" in text(empty)
    assert "## The machine" in markdown(empty)
    assert csv(empty).startswith("probe,metric,unit")
    assert read_json(json(empty)) == empty


def test_all_trusted_is_said(small: Report) -> None:
    trusted = tuple(replace(m, trust=Trust()) for m in small.measurements)
    assert "6 numbers; all can be trusted" in text(replace(small, measurements=trusted))


def test_more_reasons_than_a_terminal_holds_are_counted(small: Report) -> None:
    marked = tuple(untrusted(small.measurements[0], f"reason {c}") for c in "abcdefghijklm")
    assert "and 3 more reasons" in text(replace(small, measurements=marked))
    assert "more reasons" not in text(replace(small, measurements=marked[:10]))


def test_reasons_that_differ_in_figures_only_stand_together(small: Report) -> None:
    marks = ("kept 1.5 cpus busy (in 2 of 2 samples)", "kept 0.9 cpus busy", "a cache answers")
    marked = tuple(untrusted(small.measurements[0], mark) for mark in marks)
    shown = text(replace(small, measurements=marked))
    assert "triad 56.0 GB/s and 1 other: kept 1.5 cpus busy\n" in shown
    assert "triad 56.0 GB/s: a cache answers\n" in shown
    slow = replace(marked[1], median=1e9)
    shown = text(replace(small, measurements=(marked[0], slow)))
    assert "triad 56.0 GB/s and 1 other: kept 1.5 cpus busy\n" in shown


def test_json_comes_back_whole_with_its_raw_samples(recorded: Report) -> None:
    assert recorded.samples
    assert json(read_json(json(recorded))) == json(recorded)  # null is nan, which equals nothing


def test_a_report_of_schema_4_is_read_by_its_names(recorded: Report) -> None:
    now = json(recorded)
    assert '"interleaved"' in now
    old = now.replace('"schema":5,"report":', '"schema":4,"book":', 1)
    old = old.replace('"interleaved"', '"in_turns"')
    assert old != now
    assert json(read_json(old)) == now


def test_hostile_text_stays_text(small: Report) -> None:
    report = hostile(small)
    shown = text(report)
    assert "\x1b" not in shown
    assert "\0" not in shown
    written = markdown(report)
    assert "<script>" not in written.replace("\\<script\\>", "")
    assert len({line.count(" | ") for line in written.splitlines() if "| stream: " in line}) == 1
    rows = list(table.reader(io.StringIO(csv(report))))
    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "@"))]
    for rendered in (shown, written, csv(report), json(report)):
        rendered.encode("utf-8")
    back = read_json(json(report))
    assert back.run.host == HOSTILE
    assert back.measurements[0].case == report.measurements[0].case


def test_no_spreadsheet_takes_a_level_for_a_formula_and_numbers_stay_numbers(small: Report) -> None:
    levels = (("flags", "-O3"), ("offset", "-5"), ("unit", "=A1"))
    odd = replace(small.measurements[0], case=Case("stream", levels))
    names, row = list(table.reader(io.StringIO(csv(replace(small, measurements=(odd,))))))
    assert dict(zip(names, row, strict=True))["unit_level"] == "'=A1"
    assert row[-3:-1] == ["'-O3", "-5"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "no FlowOS report"),
        ("[]", "no FlowOS report: it does not say"),
        ('{"format": "flowos-report", "schema": 99}', "reads 1, 2, 3, 4, 5: upgrade FlowOS$"),
        ('{"format": "flowos-report", "schema": 0}', "schema 0, .* damaged, write it again$"),
        ('{"format": "flowos-report", "schema": [4]}', r"schema \[4\], .* damaged, write it"),
        ('{"format": "flowos-report", "schema": NaN}', "schema nan, .* damaged, write it again$"),
        (f'{{"format": "flowos-report", "schema": "{"x" * 5000}"}}', "schema 'xxx"),
        ('{"format": "flowos-report", "schema": 1}', "cannot be read: report: Report expected"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(given: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        read_json(given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_json_says_what_it_is(small: Report) -> None:
    whole = text_of.loads(json(small))
    assert (whole["format"], whole["schema"]) == ("flowos-report", 5)
    assert whole["report"]["samples"][0]["values"] == [56e9, 55e9]


def test_a_ceiling_is_called_one_and_its_best_is_shown_and_shared(small: Report) -> None:
    ceiling = replace(small.measurements[0], ceiling=True, shares=())
    report = replace(small, headlines=(HeadlineNumber(label="Memory", measured=ceiling),))
    row = next(line for line in text(report).splitlines() if line.startswith("  Memory"))
    assert "57.1 GB/s" in row
    assert "it is the ceiling" in row
    assert "| it is the ceiling |" in markdown(report)
    assert ",yes," in csv(replace(report, measurements=(ceiling,)))


def test_a_column_of_the_terminal_in_which_nothing_is_known_is_left_out(small: Report) -> None:
    bare = tuple(replace(h, measured=replace(h.measured, shares=())) for h in small.headlines)
    assert "of nominal" in text(small)
    assert "of nominal" not in text(replace(small, headlines=bare))


def test_without_headlines_the_best_of_each_panel_is_shown(small: Report) -> None:
    shown = text(replace(small, headlines=()))
    assert "Triad over threads" in shown
    assert "61.2 GB/s" in shown.split("Not to be trusted")[0]
    assert "45.7 GB/s" not in shown.split("Not to be trusted")[0]


def test_headlines_of_one_probe_stand_under_its_title_once(small: Report) -> None:
    twice = (*small.headlines[:1], *small.headlines)
    assert text(replace(small, headlines=twice)).count("\nMemory bandwidth\n") == 1


def test_a_probe_without_a_section_is_shown_by_its_name(small: Report) -> None:
    lone: Measurement = replace(small.measurements[0], case=Case("odd"))
    report = replace(small, measurements=(lone,), sections=())
    assert "\n## odd\n" in markdown(report)


def test_each_axis_has_a_column_of_its_own(small: Report) -> None:
    levels = (("count", "1"), ("count_level", "2"), ("=a", "3"), ("'=a", "4"))
    odd = replace(small.measurements[0], case=Case("stream", levels))
    names, row = list(table.reader(io.StringIO(csv(replace(small, measurements=(odd,))))))
    assert len(set(names)) == len(names)
    assert row[-4:] == ["1", "2", "3", "4"]


def test_each_axis_is_a_label_that_prometheus_takes(small: Report) -> None:
    from prometheus_client.openmetrics import parser

    read: Callable[[str], Any] = parser.text_string_to_metric_families
    names = ("a-b", "a_b", "", "é", "日本", "__name__", "level_1", "\x1b")
    cases = [Case("stream", levels=tuple((name, name) for name in names[at:])) for at in (0, 1)]
    odd = tuple(replace(small.measurements[0], case=case, unit="") for case in cases)
    said = openmetrics(replace(small, measurements=odd))
    assert "\x1b" not in said
    (family,) = read(said)
    assert (family.name, family.unit) == ("flowos_stream_triad", "")
    first, second = (set(sample.labels.values()) for sample in family.samples)
    assert first - second == {"a-b"}
    assert {*names[1:-1], "?"} <= second


def test_metrics_whose_names_become_one_are_two_families(small: Report) -> None:
    from prometheus_client.openmetrics import parser

    read: Callable[[str], Any] = parser.text_string_to_metric_families
    first = replace(small.measurements[0], unit="byte/s")
    odd = tuple(replace(first, metric=name) for name in ("a-b", "a_b", "a b"))
    names = [family.name for family in read(openmetrics(replace(small, measurements=odd)))]
    assert names == [f"flowos_stream_a_b{n}_bytes_per_second" for n in ("", "_2", "_3")]


def test_metrics_are_read_by_prometheus(small: Report) -> None:
    from prometheus_client.openmetrics import parser

    read: Callable[[str], Any] = parser.text_string_to_metric_families
    families = list(read(openmetrics(small)))
    found = {sample.value for family in families for sample in family.samples}
    assert found == {m.value for m in small.measurements}
    assert all(family.name.startswith("flowos_") for family in families)
    odd = Case("stream", levels=(("1 axis/é", 'a"b\\c\nd'), ("host", "level")))
    one = replace(small, measurements=(replace(small.measurements[0], case=odd),))
    ((sample,),) = (f.samples for f in read(openmetrics(one)))
    assert sample.labels["level_1_axis_per__"] == 'a"b\\c\nd'
    assert (sample.labels["host"], sample.labels["level_host"]) == (small.run.host, "level")
    forged = replace(small.measurements[0], metric="a\nevil 1\nb", ceiling=True)
    (family,) = read(openmetrics(replace(small, measurements=(forged,))))
    assert family.documentation == "a\nevil 1\nb of probe stream, the best."


@pytest.mark.parametrize("width", [60, 40])
def test_on_a_narrow_terminal_all_is_there_and_no_line_is_wider(small: Report, width: int) -> None:
    shown = text(small, width)
    wide = [line for line in shown.splitlines() if len(line) > width]
    assert [line for line in wide if " " in line.strip() and "`" not in line] == []
    assert sorted(shown.split()) == sorted(text(small).split())


def test_a_row_of_a_table_goes_on_below_cell_by_cell() -> None:
    row = "  a kernel of a name    12.5 GB/s  12.1 .. 12.9 GB/s  ok, for all that is known of it"
    assert folded(f"{row}\nshort", 40).split("\n") == [
        "  a kernel of a name  12.5 GB/s",
        "      12.1 .. 12.9 GB/s",
        "      ok, for all that is known of it",
        "short",
    ]
    assert folded("one two three four", 10).split("\n") == ["one two", "    three", "    four"]
    assert folded(row, len(row)) == row, "it is as wide as the terminal"


def test_a_cell_stays_whole_where_it_fits_into_a_line_of_its_own() -> None:
    """Below a row that begins with 2 spaces, cells have 6 columns less than the terminal."""
    fits = "a cell of a few words, all together"
    assert folded(f"  a kernel of a name  {fits}", 6 + len(fits)).split("\n") == [
        "  a kernel of a name",
        f"      {fits}",
    ]
    assert folded(f"  a kernel of a name  {fits}", 5 + len(fits)).split("\n") == [
        "  a kernel of a name  a cell of a few",
        "      words, all together",
    ]


def test_names_of_columns_far_on_the_right_begin_at_a_third_of_the_width() -> None:
    assert folded(f"{' ' * 30}number  middle half", 24).split("\n") == [
        "        number",
        "            middle half",
    ]
