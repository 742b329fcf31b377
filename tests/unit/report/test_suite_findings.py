"""A suite says what its runs found in the numbers of each figure, and which cases failed."""

import csv
import io
import json
from dataclasses import replace

import pytest

from flowos.model import Case, Entered, FigurePart, Pairs, Unmeasured, Verdict
from flowos.report import (
    Report,
    SuiteFigure,
    suite_csv,
    suite_html,
    suite_json,
    suite_text,
    unmeasured_in,
)

from .reports import measured, untrusted
from .test_suite import FIGURE, STARTED, of_step, suite_of

FOUND = (
    ("stream", "best triad: 61.2 GB/s with stores <nt>"),
    ("stream", "placed alike. To mend it: `export A=1`"),
    ("fio", "it wrote less"),
)


def test_findings_stand_below_the_figure_of_their_probe_alone(small: Report) -> None:
    report = suite_of(
        SuiteFigure(figure=FIGURE, reports=(of_step(small),), findings=FOUND),
        SuiteFigure(figure=STARTED),
    )
    first, second = suite_html(report).split("<section")[1:3]
    stream, fio = first.split("<h3>Findings of ")[1:]
    assert "best triad: 61.2 GB/s with stores &lt;nt&gt;" in stream
    assert "<code>export A=1</code>" in stream
    assert fio.startswith("fio</h3>")
    assert "it wrote less" in fio
    assert "wrote less" not in stream
    assert "Findings" not in second
    one, other = json.loads(suite_json(report))["figures"]
    assert [(each["probe"], each["finding"]) for each in one["findings"]] == [*FOUND]
    assert (other["findings"], other["verdicts"]) == ([], [])


def test_numbers_that_cannot_be_trusted_are_listed_with_the_reason(small: Report) -> None:
    title = "Not to be trusted"
    assert title not in suite_html(
        suite_of(SuiteFigure(figure=FIGURE, reports=(of_step(small),)))
    ), "nothing disturbed them"
    first, *others = small.measurements
    busy = replace(small, measurements=(untrusted(first, "others kept 1 cpu busy"), *others))
    page = suite_html(suite_of(SuiteFigure(figure=FIGURE, reports=(of_step(busy),))))
    _, listed = page.split(title)
    assert "others kept 1 cpu busy" in listed.split("</ul>")[0]


def test_how_environments_compare_is_said_in_short_and_each_verdict_kept(small: Report) -> None:
    rows = (measured(40e9, env="bare", threads="2"), measured(60e9, env="mine", threads="2"))
    verdict = Verdict(
        probe="stream",
        axis="env",
        base="bare",
        other="mine",
        rest=(),
        metric="triad",
        ratio=1.5,
        low=1.4,
        high=1.6,
        margin=0.03,
        rounds=8,
        answer="faster",
    )
    of_others = replace(verdict, metric="copy")
    run = replace(small.run, environments=(Entered(label="bare"), Entered(label="mine")))
    run_report = replace(small, run=run, measurements=rows, verdicts=(verdict, of_others))
    report = suite_of(SuiteFigure(figure=FIGURE, reports=(of_step(run_report),)))
    said = "Between environments: 1 comparison: 0 slower, 0 inconclusive, 0 equal, 1 faster."
    assert said in suite_html(report)
    (figure,) = json.loads(suite_json(report))["figures"]
    assert [(v["metric"], v["answer"]) for v in figure["verdicts"]] == [("triad", "faster")]


FAILED = Unmeasured(reason="it ended with <exit 3>", remedy="export A=1")


def test_cases_that_failed_stand_below_their_figure_by_reason_with_the_remedy(
    small: Report,
) -> None:
    gaps = tuple((Case("stream", (("threads", n),)), FAILED) for n in ("1", "2"))
    other = (Case("stream", (("threads", "4"),)), Unmeasured(reason="it printed no number"))
    report = suite_of(
        SuiteFigure(figure=FIGURE, reports=(of_step(small),), gaps=(*gaps, other)),
        SuiteFigure(figure=STARTED),
    )
    first, second = suite_html(report).split("<section")[1:3]
    _, listed = first.split("<h3>Not measured</h3>")
    assert "<strong>stream, 2 cases</strong> - it ended with &lt;exit 3&gt;" in listed
    assert "To mend it: <code>export A=1</code>" in listed
    assert (
        '<summary>Which</summary><ul class="plain"><li>stream: threads 1<li>stream: threads 2</ul>'
        in listed
    )
    assert "<strong>stream: threads 4</strong> - it printed no number" in listed
    assert "Not measured" not in second
    one, two = json.loads(suite_json(report))["figures"]
    assert one["gaps"] == [
        {"probe": "stream", "case": case.label, "reason": why.reason, "remedy": why.remedy}
        for case, why in (*gaps, other)
    ]
    assert two["gaps"] == []
    said = suite_text(report)
    assert (
        "    stream, 2 cases: not measured: it ended with <exit 3> (to mend it: `export A=1`)\n"
        in said
    )
    assert "    stream: threads 4: not measured: it printed no number\n" in said
    rows = [*csv.DictReader(io.StringIO(suite_csv(report)))]
    failed = [(r["figure"], r["probe"], r["case"], r["not_measured"], r["remedy"]) for r in rows]
    of = (FIGURE.number, "stream")
    assert [row for row in failed if row[2] and row[3]] == [
        (*of, "stream: threads 1", FAILED.reason, FAILED.remedy),
        (*of, "stream: threads 2", FAILED.reason, FAILED.remedy),
        (*of, "stream: threads 4", "it printed no number", ""),
    ]


@pytest.mark.parametrize(
    ("part", "of_it"),
    [
        (FigurePart(probe="stream"), "abcd"),
        (FigurePart(probe="stream", levels=(("stores", "nt"),)), "acd"),
        (FigurePart(probe="stream", without=(("stores", "nt"),)), "bcd"),
        (FigurePart(probe="stream", cores="socket"), "abc"),
        (FigurePart(probe="startup"), ""),
    ],
)
def test_a_figure_lacks_cases_that_could_have_been_of_it(
    small: Report, part: FigurePart, of_it: str
) -> None:
    levels: dict[str, Pairs] = {
        "a": (("stores", "nt"), ("cores", "1")),
        "b": (("stores", "plain"), ("cores", "1")),
        "c": (),  # its program sweeps stores and cores
        "d": (("cores", "7"),),
    }
    cases = {Case("stream", found): (name, FAILED) for name, found in levels.items()}
    ceiling = Case("startup")
    unmeasured = ((ceiling, FAILED), *((case, why) for case, (_, why) in cases.items()))
    run_report = of_step(replace(small, run=replace(small.run, unmeasured=unmeasured)))
    alone = replace(run_report, run=replace(run_report.run, request=small.run.request))
    figure = replace(FIGURE, parts=(part, part))
    found = unmeasured_in(SuiteFigure(figure=figure, reports=(run_report, run_report, alone)))
    assert "".join(cases[case][0] for case, _ in found) == of_it
    assert {why for _, why in found} <= {FAILED}
