"""A suite's page and JSON say what the runs found in the numbers of each figure."""

import json
from dataclasses import replace

from flowos.model import Entered, Verdict
from flowos.report import Report, SuiteFigure, suite_html, suite_json

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
