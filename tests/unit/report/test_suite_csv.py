"""A suite as a table: the paper's numbers, ours, and why there is none."""

import csv
import io
from dataclasses import replace

import pytest

from flowos.model import Unmeasured
from flowos.report import Report, SuiteFigure, SuiteReport, suite_csv

from .reports import untrusted
from .test_suite import FIGURE, LACKING, PAPER, TRIAD, of_step, stored, suite_of


def rows_of(report: SuiteReport) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(suite_csv(report)))]


def with_text(row: dict[str, str]) -> dict[str, str]:
    return {column: cell for column, cell in row.items() if cell}


def test_a_number_of_the_paper_has_ours_their_ratio_and_where_it_stands(small: Report) -> None:
    first, *_ = rows_of(stored(small))
    assert float(first.pop("ratio")) == pytest.approx(61.2 / 235.1)
    assert first == {
        "figure": "2",
        "title": "STREAM triad",
        "what": "triad <fast>",
        "probe": "stream",
        "metric": "triad",
        "unit": "byte/s",
        "published": "235100000000.0",
        "printed": "235.1GB/s",
        "machine": "HB120rs_v3",
        "source": "section 3.1",
        "nominal": "400000000000.0",
        "measured": "61200000000.0",
        "low": first["low"],
        "high": first["high"],
        "case": "stream: threads 2, stores nt",
        "trusted": "yes",
        "marks": "",
        "not_measured": "",
        "remedy": "",
    }


def test_what_is_not_measured_says_why_and_each_of_ours_is_there_once(small: Report) -> None:
    _, *rest = rows_of(stored(small))
    ours, others = rest[:3], rest[3:]
    assert all(row["measured"] and not row["published"] + row["not_measured"] for row in ours)
    accuracy = {"what": "accuracy", "unit": "1", "published": "0.745", "printed": "74.5 %"}
    accuracy |= {"machine": "ABCI", "source": "section 3.5", "not_measured": "no GPUs"}
    start = {"figure": "3", "title": "Starts"}
    assert [with_text(row) for row in others] == [
        {"figure": "table 2", "title": "Training", **accuracy},
        {**start, "probe": "startup", "not_measured": "the time was out"},
        {**start, "probe": "gpu_copy", "not_measured": "no GPU", "remedy": "apt install one"},
    ]


def test_what_is_measured_in_part_says_so(small: Report) -> None:
    figure = SuiteFigure(figure=FIGURE, reports=(of_step(small),), partly=(("stream", 1, 4),))
    assert rows_of(suite_of(figure))[-1]["not_measured"].startswith("partly measured: 1 of 4 cases")


def test_a_number_that_cannot_be_trusted_says_so(small: Report) -> None:
    rows = tuple(untrusted(m, "others kept 1 cpu busy") for m in small.measurements)
    first, *_ = rows_of(stored(replace(small, measurements=rows)))
    assert (first["trusted"], first["marks"]) == ("no", "others kept 1 cpu busy")


def test_no_cell_is_a_formula_and_a_number_without_a_nominal_has_none(small: Report) -> None:
    number = replace(TRIAD, what="=1+1", nominal=None)
    report = replace(stored(small), paper=replace(PAPER, numbers=(number,)))
    first, *_ = rows_of(report)
    assert (first["what"], first["nominal"]) == ("'=1+1", "")


def test_a_figure_that_lacks_all_has_a_row() -> None:
    lacking = SuiteFigure(figure=LACKING, lacking=(("", Unmeasured(reason="no GPUs")),))
    report = replace(suite_of(lacking), paper=replace(PAPER, numbers=()))
    (row,) = rows_of(report)
    assert with_text(row) == {"figure": "table 2", "title": "Training", "not_measured": "no GPUs"}


def test_each_probe_that_lacks_the_same_has_a_row_once() -> None:
    why = Unmeasured(reason="no GPU")
    lacking = SuiteFigure(
        figure=FIGURE, lacking=(("stream", why), ("gpu_copy", why), ("startup", why), ("", why))
    )
    report = replace(suite_of(lacking), paper=replace(PAPER, numbers=(TRIAD,)))
    rows = [(row["probe"], row["published"], row["not_measured"]) for row in rows_of(report)]
    assert rows == [
        ("stream", "235100000000.0", "no GPU"),
        ("gpu_copy", "", "no GPU"),
        ("startup", "", "no GPU"),
    ]
