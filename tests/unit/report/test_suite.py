"""A suite as text, JSON and a page: our numbers next to the paper's, and what is lacking."""

import json
from dataclasses import replace

import pytest

from flowos.model import (
    Case,
    Chart,
    DeployedNode,
    Deployment,
    Entered,
    FigurePart,
    LogicalCpu,
    Measurement,
    Paper,
    PaperFigure,
    PaperSuite,
    PublishedMachine,
    PublishedNumber,
    Run,
    SuiteStep,
    Unmeasured,
    Verdict,
)
from flowos.report import (
    Report,
    Section,
    SuiteFigure,
    SuiteReport,
    suite_html,
    suite_json,
    suite_text,
)
from flowos.report._suite import number_rows, shown_parts

from .reports import CURVE, bounded, measured, untrusted
from .test_page import read

TRIAD = PublishedNumber(
    figure="2",
    what="triad <fast>",
    value=235.1e9,
    unit="byte/s",
    printed="235.1GB/s",
    machine="HB120rs_v3",
    where="section 3.1",
    nominal=400e9,
    probe="stream",
    metric="triad",
    levels=(("stores", "nt"),),
)
SHARE = PublishedNumber(
    figure="table 2",
    what="accuracy",
    value=0.745,
    unit="1",
    printed="74.5 %",
    machine="ABCI",
    where="section 3.5",
)
FIGURE = PaperFigure(
    number="2",
    title="STREAM triad",
    caption="STREAM Triad の結果",
    parts=(FigurePart(probe="stream", metrics=("triad",)),),
    instead="this machine, `flowos measure`",
)
LACKING = PaperFigure(number="table 2", title="Training", caption="学習", lacking="no GPUs")
STARTED = PaperFigure(
    number="3", title="Starts", caption="起動", parts=(FigurePart(probe="startup"),)
)
SUITE = PaperSuite(name="s", title="A paper's <measurements>", figures=(FIGURE, LACKING, STARTED))
PAPER = Paper(
    suite="s",
    citation="A. Author: A paper, 2023",
    missing="Figure 3 has no number.",
    machines=(PublishedMachine(name="HB120rs_v3", hardware="2 x EPYC", where="table 1"),),
    numbers=(TRIAD, SHARE),
)


def of_step(run_report: Report, probe: str = "stream") -> Report:
    step = SuiteStep(of="s-1", suite="s", probe=probe)
    run = replace(
        run_report.run, id=f"run-{probe}", request=replace(run_report.run.request, suite=step)
    )
    return replace(run_report, run=run)


def suite_of(*figures: SuiteFigure) -> SuiteReport:
    return SuiteReport(of="s-1", suite=SUITE, paper=PAPER, figures=figures)


def stored(small: Report) -> SuiteReport:
    return suite_of(
        SuiteFigure(figure=FIGURE, reports=(of_step(small),)),
        SuiteFigure(figure=LACKING, lacking=(("", Unmeasured(reason="no GPUs")),)),
        SuiteFigure(
            figure=STARTED,
            lacking=(("gpu_copy", Unmeasured(reason="no GPU", remedy="apt install one")),),
            waiting=(("startup", Unmeasured(reason="the time was out")),),
        ),
    )


def test_the_text_has_each_figure_with_both_numbers_or_why_not(small: Report) -> None:
    assert suite_text(stored(small)).splitlines() == [
        "s: A paper's <measurements>",
        "after: A. Author: A paper, 2023",
        "1 of 3 figures have numbers of this machine; 1 cannot be measured here; 1 is still to be"
        " measured.",
        "",
        "Figure 2: STREAM triad",
        "    stream: 4 numbers, run run-stream",
        "    instead: this machine, `flowos measure`",
        "    triad <fast>, HB120rs_v3: 235 GB/s (59% of nominal); here 61.2 GB/s (99% of measured"
        " ceiling),",
        "      0.260 of it",
        "",
        "Table 2: Training",
        "    not here: no GPUs",
        "    accuracy, ABCI: 74.5%; not measured: no GPUs",
        "",
        "Figure 3: Starts",
        "    startup: no number yet: the time was out",
        "    gpu_copy: not here: no GPU (to mend it: `apt install one`)",
        "",
        "In the paper: Figure 3 has no number.",
    ]
    many = replace(stored(small), figures=stored(small).figures[2:] * 2)
    assert "; 2 are still to be measured." in suite_text(many)


@pytest.mark.parametrize(("nodes", "words"), [(1, ", on n1"), (2, ", between n1, n2")])
def test_a_run_on_nodes_of_a_pool_names_them(small: Report, nodes: int, words: str) -> None:
    run_report = of_step(small)
    named = (DeployedNode(name="n1"), DeployedNode(name="n2"))
    run = replace(
        run_report.run,
        request=replace(run_report.run.request, nodes=nodes),
        deployment=Deployment(of="d-1", number=1, pool="p", nodes=named),
    )
    report = suite_of(SuiteFigure(figure=FIGURE, reports=(replace(run_report, run=run),)))
    assert f"    stream: 4 numbers, run run-stream{words}" in suite_text(report).splitlines()
    assert f"runs run-stream{words}." in suite_html(report)


def test_the_page_is_whole_and_loads_nothing(small: Report) -> None:
    page = suite_html(stored(small))
    reader = read(page)
    assert reader.loads == []
    assert reader.handlers == []
    assert "script" not in reader.tags
    assert "A paper&#x27;s &lt;measurements&gt;" in page
    assert "triad &lt;fast&gt;" in page
    assert "STREAM Triad の結果" in page
    assert "<svg" in page
    assert "What each setting is worth" in page
    for said in ("235", "61.2", "0.260", "no GPUs", "No number yet (startup): ", "74.5%"):
        assert said in page
    assert "The paper&#x27;s text has no number for it." in page
    assert "Suite s-1, runs run-stream." in page
    nothing = suite_html(suite_of(SuiteFigure(figure=LACKING)))
    assert "Suite s-1, no run yet." in nothing


def test_the_json_has_all_of_it_in_si_units(small: Report) -> None:
    whole = json.loads(suite_json(stored(small)))
    assert (whole["format"], whole["suite"], whole["of"]) == ("flowos-suite", "s", "s-1")
    assert [run["id"] for run in whole["runs"]] == ["run-stream"]
    first, second, third = whole["figures"]
    (row,) = first["published"]
    assert (row["value"], row["ours"]["median"]) == (235.1e9, 61.2e9)
    assert row["ratio"] == pytest.approx(61.2 / 235.1)
    assert len(first["measurements"]) == 4
    assert second["published"][0]["ours"] is None
    assert second["published"][0]["ratio"] is None
    assert (row["unmeasured"], second["published"][0]["unmeasured"]) == (
        None,
        {"reason": "no GPUs", "remedy": ""},
    )
    assert third["lacking"] == [
        {"probe": "gpu_copy", "reason": "no GPU", "remedy": "apt install one"}
    ]
    assert third["waiting"][0]["reason"] == "the time was out"


def test_a_number_that_cannot_be_trusted_says_so(small: Report) -> None:
    rows = tuple(untrusted(m, "others kept 1 cpu busy") for m in small.measurements)
    report = stored(replace(small, measurements=rows))
    assert "0.260 of it, NOT TRUSTED" in " ".join(suite_text(report).split())
    assert 'class="warn wrap"' in suite_html(report)


def test_a_number_without_ceiling_or_nominal_has_no_share(small: Report) -> None:
    bare = tuple(replace(m, shares=()) for m in small.measurements)
    report = stored(replace(small, measurements=bare))
    assert "here 61.2 GB/s, 0.260 of it" in suite_text(report)
    with_shares, without = (
        suite_html(each).count(">of measured ceiling<") for each in (stored(small), report)
    )
    assert with_shares == without + 1  # the tables of charts always have it


def test_between_environments_the_base_counts_and_verdicts_are_shown(small: Report) -> None:
    rows = (
        measured(40e9, env="bare", stores="nt", threads="2"),
        measured(60e9, env="mine", stores="nt", threads="2"),
    )
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
    run: Run = replace(small.run, environments=(Entered(label="bare"), Entered(label="mine")))
    run_report = replace(small, run=run, measurements=rows, verdicts=(verdict,))
    report = suite_of(SuiteFigure(figure=FIGURE, reports=(of_step(run_report),)))
    (row,) = number_rows(report, report.figures[0])
    assert row.ours is not None
    assert row.ours.value == 40e9
    said = "      between environments: 1 comparison: 0 slower, 0 inconclusive, 0 equal, 1 faster"
    assert said in suite_text(report).splitlines()
    page = suite_html(report)
    assert "faster" in page
    assert "What each setting is worth" not in page


def part_of(part: FigurePart, run_report: Report) -> list[Measurement]:
    figure = replace(FIGURE, parts=(part,))
    found = shown_parts(SuiteFigure(figure=figure, reports=(run_report,)))
    return [m for shown in found for m in shown.report.measurements]


def test_a_part_takes_numbers_by_metric_and_levels(small: Report) -> None:
    run_report = of_step(small)
    stream = FigurePart(probe="stream")
    assert len(part_of(stream, run_report)) == 4
    assert len(part_of(replace(stream, levels=(("stores", "nt"),)), run_report)) == 2
    assert len(part_of(replace(stream, without=(("threads", "1"),)), run_report)) == 2
    assert part_of(replace(stream, metrics=("copy",)), run_report) == []
    assert part_of(FigurePart(probe="fio"), run_report) == []  # of another run
    assert part_of(stream, small) == []  # of no suite
    assert part_of(stream, replace(run_report, sections=())) == []


@pytest.mark.parametrize(
    ("quota", "socket", "all_"), [(None, [2.0], [4.0]), (2.5, [2.0], [2.0]), (0.5, [1.0], [1.0])]
)
def test_a_part_takes_the_numbers_of_one_socket_or_of_all_cores(
    small: Report, quota: float | None, socket: list[float], all_: list[float]
) -> None:
    cpus = tuple(LogicalCpu(number=n, core=n, socket=n // 2, node=0) for n in range(4))
    facts = replace(small.run.facts, cpus=cpus, allowed=(0, 1, 2, 3), quota_cpus=quota)
    rows = tuple(measured(float(n), cores=str(n)) for n in (1, 2, 4))
    run_report = replace(small, run=replace(small.run, facts=facts), measurements=rows)
    found = [
        [m.value for m in part_of(FigurePart(probe="stream", cores=cores), of_step(run_report))]
        for cores in ("socket", "all")
    ]
    assert found == [socket, all_]


def test_numbers_without_a_chart_are_listed(small: Report) -> None:
    start = Case("startup")
    rows = (replace(measured(0.001, metric="startup", unit="second"), case=start),)
    run_report = replace(
        small, measurements=rows, sections=(Section(probe="startup", title="Start"),)
    )
    report = suite_of(SuiteFigure(figure=STARTED, reports=(of_step(run_report, "startup"),)))
    assert "startup: startup 1.00 ms" in suite_html(report)
    drawn = replace(CURVE, metrics=("other",))
    assert isinstance(drawn, Chart)
    charted = replace(
        run_report, sections=(Section(probe="startup", title="Start", charts=(drawn,)),)
    )
    report = suite_of(SuiteFigure(figure=STARTED, reports=(of_step(charted, "startup"),)))
    assert "startup: startup 1.00 ms" in suite_html(report)
    assert bounded(rows[0], 1.0, "x").shares


def test_a_number_of_a_gpu_is_not_set_against_one_of_processors(small: Report) -> None:
    rows = (measured(40e9, device="cpu", stores="nt"),)
    figure = SuiteFigure(figure=FIGURE, reports=(of_step(replace(small, measurements=rows)),))
    (row,) = number_rows(suite_of(figure), figure)
    assert row.ours is None
    reason, said = row_of(TRIAD, reports=figure.reports)
    assert reason == "ours was measured on processors, the paper's on GPUs"
    assert said == f"not set against ours: {reason}"


def test_a_figure_of_which_some_cases_were_measured_says_so_everywhere(small: Report) -> None:
    parts = (("stream", 1, 4), ("startup", 2, 2), ("fio", 0, 3))
    waiting = (("fio", Unmeasured(reason="it was not measured yet")),)
    figure = SuiteFigure(figure=FIGURE, reports=(of_step(small),), partly=parts, waiting=waiting)
    report = suite_of(figure)
    words = "partly measured: 1 of 4 cases; the same command goes on"
    assert f"    stream: {words}" in suite_text(report).splitlines()
    assert "1 of 1 figures have numbers of this machine, 1 of them in part." in suite_text(report)
    assert f"<b>stream: </b>{words}." in suite_html(report)
    assert suite_text(report).count("partly") == 1
    (one,) = json.loads(suite_json(report))["figures"]
    assert one["partly"] == [
        {"probe": "stream", "measured": 1, "cases": 4},
        {"probe": "fio", "measured": 0, "cases": 3},
    ]


def test_a_share_of_a_ceiling_that_was_not_reached_is_left_out(small: Report) -> None:
    above = bounded(measured(61e9, stores="nt"), 40e9, "memory")
    figure = SuiteFigure(figure=FIGURE, reports=(of_step(replace(small, measurements=(above,))),))
    assert "here 61.0 GB/s, 0.259 of it" in " ".join(suite_text(suite_of(figure)).split())


def row_of(number: PublishedNumber, **figure: object) -> tuple[str, str]:
    """The reason that JSON has for a number without one of ours, and the row of the text."""
    paper = replace(PAPER, numbers=(number,))
    shown = replace(SuiteFigure(figure=FIGURE), **figure)  # type: ignore[arg-type]
    report = replace(suite_of(shown), paper=paper)
    (one,) = json.loads(suite_json(report))["figures"]
    (published,) = one["published"]
    assert published["ours"] is None
    (_, row) = " ".join(suite_text(report).split()).split("(59% of nominal); ")
    return published["unmeasured"]["reason"], row.removesuffix(
        " In the paper: Figure 3 has no number."
    )


def test_a_row_without_a_number_says_why(small: Report) -> None:
    no_gpu = Unmeasured(reason="no GPU", remedy="apt install one")
    late = Unmeasured(reason="the time was out")
    run = replace(
        small.run,
        unmeasured=(
            (Case("stream", (("stores", "plain"),)), no_gpu),
            (Case("stream", (("stores", "nt"), ("device", "cpu"))), no_gpu),
            (Case("stream", (("stores", "nt"),)), late),
        ),
    )
    of_cases = (of_step(replace(small, run=run, measurements=())),)
    assert row_of(TRIAD, reports=of_cases) == (late.reason, f"not measured: {late.reason}")
    said = (("stream", no_gpu), ("", late))
    assert row_of(TRIAD, lacking=said, reports=of_cases)[0] == late.reason
    assert row_of(TRIAD, lacking=said) == ("no GPU", "not measured: no GPU")
    assert row_of(TRIAD, waiting=(("stream", late),))[0] == late.reason
    assert row_of(TRIAD, lacking=said[1:])[0] == late.reason
    assert row_of(replace(TRIAD, levels=()), reports=of_cases)[0] == (
        "no case that was measured is like it"
    )
    partly = "partly measured: 1 of 4 cases; the same command goes on"
    assert row_of(TRIAD, partly=(("stream", 1, 4),))[0] == partly


def test_a_remedy_is_in_the_row_unless_it_stands_above(small: Report) -> None:
    why = Unmeasured(reason="no compiler", remedy="apt install gcc")
    run = replace(small.run, unmeasured=((Case("stream", (("stores", "nt"),)), why),))
    of_cases = (of_step(replace(small, run=run, measurements=())),)
    _, row = row_of(TRIAD, reports=of_cases)
    assert row == "not measured: no compiler (to mend it: `apt install gcc`)"


def test_the_page_has_the_reason_in_the_row_of_the_number(small: Report) -> None:
    above = Unmeasured(reason="no <b>GPU</b> here", remedy="apt install one")
    beside = Unmeasured(reason="the time was out", remedy="apt install gcc")
    case = ((Case("stream", (("stores", "nt"),)), beside),)
    number = replace(SHARE, figure="2", probe="fio")
    waiting = SuiteFigure(figure=FIGURE, waiting=(("fio", above),))
    report = replace(suite_of(waiting), paper=replace(PAPER, numbers=(number,)))
    (cell,) = cells_of(report, 3)
    assert cell == "not measured: no &lt;b&gt;GPU&lt;/b&gt; here"
    run_report = of_step(replace(small, run=replace(small.run, unmeasured=case), measurements=()))
    figure = SuiteFigure(figure=FIGURE, reports=(run_report,))
    (cell,) = cells_of(suite_of(figure), 4)
    assert cell == ("not measured: the time was out (to mend it: <code>apt install gcc</code>)")


def cells_of(report: SuiteReport, column: int) -> list[str]:
    """The cells of a column of the paper's numbers, as they are written."""
    _, *rows = suite_html(report).split("<tbody>")[1].split("</table>")[0].split("<tr>")
    return [row.split("<td")[column].partition(">")[2] for row in rows]


def test_a_number_that_nothing_here_is_like_says_so(small: Report) -> None:
    reports = (of_step(replace(small, measurements=())),)
    reason, _ = row_of(TRIAD, reports=reports)
    assert reason == "no case that was measured is like it"
    reason, _ = row_of(replace(TRIAD, probe=""), reports=reports)
    assert reason == "no probe of FlowOS measures it"
