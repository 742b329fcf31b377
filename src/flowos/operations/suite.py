"""`flowos measure --suite`: a paper's measurements, repeated with what is at hand.

Each probe that shows a figure is a run in the store; the runs of a suite share an id. Success: each
figure is shown with numbers, or says why not. Ctrl-C or a crash: runs that ended are kept, and the
same command measures the others. Failure of one probe does not end the others.
"""

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from flowos import engine
from flowos._dataclasses import dataclass, field, replace
from flowos.model import (
    MeasurementRequest,
    OnProgress,
    PaperSuite,
    Progress,
    SuiteStep,
    Unmeasured,
    UsageError,
    did_you_mean,
)
from flowos.operations._files import write_together
from flowos.operations._held_nodes import held_nodes
from flowos.operations._scratch import check_out, scratch_in
from flowos.operations._suite_plan import (
    PlannedStep,
    SuitePlan,
    figures_of,
    in_time,
    plan_suite,
)
from flowos.operations._suite_runs import BegunSuite, begun, cases_left, has_numbers
from flowos.operations._suite_storage import with_storage
from flowos.operations.measure import (
    DeployedOn,
    OnSample,
    check,
    facts_of,
    findings_in,
    lacked_time,
    measured,
)
from flowos.operations.pool_storage import check_folder
from flowos.operations.settings import pool_named
from flowos.probes.suites import SUITES
from flowos.report import (
    Report,
    SuiteFigure,
    SuiteReport,
    figure_name,
    published,
    shown_parts,
    suite_csv,
    suite_html,
    suite_json,
    unmeasured_in,
)

PAGE = "suite.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """Which suite, and which of its figures: () all. again: from its beginning.

    pool: on so many nodes of it, "" for this machine. What is measured between nodes is so between
    all of them, the rest on the first.
    """

    name: str
    figures: tuple[str, ...] = ()
    again: bool = False
    pool: str = ""
    nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """A suite, as far as it was measured. page: None if it could not be written.

    measured: how many runs were made now. kept: is all of it in the store? lost: did nodes of the
    pool end it early?
    """

    report: SuiteReport
    page: Path | None = None
    notes: tuple[str, ...] = ()
    measured: int = 0
    interrupted: bool = False
    kept: bool = True
    lost: bool = False


def suite_named(name: str) -> PaperSuite:
    """Raises UsageError for another name than those of papers."""
    if name not in SUITES:
        known = f"the suites are {', '.join(SUITES)}{did_you_mean(name, SUITES)}"
        raise UsageError(f"no suite is called {name!r}; {known}")
    return SUITES[name]


def planned_suite(
    request: MeasurementRequest, wanted: SuiteRequest, *, url: str | None, seconds: float | None
) -> SuitePlan:
    """What `measured_suite` would run; nothing is measured.

    No node of a pool is held for that: they are taken to be like this machine.
    """
    if wanted.pool:
        check_folder(pool_named(wanted.pool))
    return _planned(replace(request, nodes=wanted.nodes), wanted, url, seconds, None)[1]


def measured_suite(
    request: MeasurementRequest,
    wanted: SuiteRequest,
    *,
    out: Path,
    url: str | None,
    seconds: float | None,
    on_progress: OnProgress,
    on_sample: OnSample,
) -> SuiteResult:
    """Measure what is left of the suite, a run for each probe, and write its page after each.

    seconds: of all that is left; by default what it needs. Raises
    UsageError for an unknown suite or figure, EnvironmentRefused, SliceRefused without nodes, and
    KeyboardInterrupt before there is any number.
    """
    check_out(out)
    request = replace(request, nodes=wanted.nodes)
    with _nodes_of(wanted, on_progress) as on:
        before, plan = _planned(request, wanted, url, seconds, on)
        session = _Session(
            plan=plan,
            of=before.of,
            request=request,
            out=out,
            url=url,
            on=on,
            reports=before.reports,
            earlier=before.earlier,
        )
        _measure_left(session, on_progress, on_sample)
    session.write()
    return session.result()


def _nodes_of(
    wanted: SuiteRequest, on_progress: OnProgress
) -> AbstractContextManager[DeployedOn | None]:
    """Raises UsageError for an unknown suite or figure before there are any."""
    figures_of(suite_named(wanted.name), wanted.figures)
    if not wanted.pool:
        return nullcontext()
    of = f"d-{engine.utc()[:10]}-{secrets.token_hex(3)}"
    return held_nodes(wanted.pool, wanted.nodes, on_progress, of=of)


def _measure_left(session: "_Session", on_progress: OnProgress, on_sample: OnSample) -> None:
    """Raises KeyboardInterrupt if one comes before there is any number."""
    plan = session.plan
    try:
        for number, step in enumerate(plan.left, 1):
            shown = ", ".join(map(figure_name, step.figures))
            words = f"{step.probe}, {number} of {len(plan.left)}, for {shown}"
            after = f"about {step.seconds:.0f} s, building its programs apart"
            on_progress(Progress(doing=f"{words}: {after}", lasting=True))
            session.run(step, on_progress, on_sample)
            session.write()
            if session.interrupted or session.lost:
                break
    except KeyboardInterrupt:
        if not session.reports:
            raise
        session.interrupted = True
    if not plan.left:
        session.notes[_ALL_DONE] = None


_NOT_YET = Unmeasured(reason="it was not measured yet")
_ALL_DONE = "all that can be measured here was measured already; --again begins anew"


def _planned(
    request: MeasurementRequest,
    wanted: SuiteRequest,
    url: str | None,
    seconds: float | None,
    on: DeployedOn | None,
) -> tuple[BegunSuite, SuitePlan]:
    suite = suite_named(wanted.name)
    figures = figures_of(suite, wanted.figures)
    if wanted.nodes > 1:
        figures = tuple(replace(f, instead=f.between or f.instead) for f in figures)
    pool = pool_named(wanted.pool) if wanted.pool else None
    figures = tuple(with_storage(figure, request, pool) for figure in figures)
    check(request)
    if on is None:
        with scratch_in(request.scratch):
            pass
    here = facts_of(request, on)
    before = None if wanted.again else begun(suite.name, request, here, url, wanted.pool)
    before = before or BegunSuite(of=f"s-{engine.utc()[:10]}-{secrets.token_hex(3)}", reports={})
    done = {probe: found.run for probe, found in before.reports.items()}
    plan = plan_suite(suite, figures, here, request, done)
    return before, in_time(plan, request, seconds)


@dataclass(slots=True, kw_only=True)
class _Session:
    """A suite under way: the reports of its runs, by probe; earlier: see `BegunSuite`."""

    plan: SuitePlan
    of: str
    request: MeasurementRequest
    out: Path
    url: str | None
    on: DeployedOn | None
    reports: dict[str, Report]
    earlier: dict[str, tuple[Report, ...]]
    notes: dict[str, None] = field(default_factory=dict)
    page: Path | None = None
    measured: int = 0
    interrupted: bool = False
    kept: bool = True
    lost: bool = False

    def run(self, step: PlannedStep, on_progress: OnProgress, on_sample: OnSample) -> None:
        part = SuiteStep(
            of=self.of, suite=self.plan.suite.name, probe=step.probe, measured=step.measured
        )
        done = measured(
            replace(self.request, probes=step.probes, nodes=step.nodes, suite=part),
            out=self.out / "runs" / step.probe,
            url=self.url,
            seconds=step.limit,
            on_progress=on_progress,
            on_sample=on_sample,
            on=self.on,
        )
        self.earlier[step.probe] = self._of(step.probe) if step.measured else ()
        self.reports[step.probe] = done.report
        self.notes |= dict.fromkeys(done.notes)
        self.kept &= done.kept
        self.measured += 1
        self.interrupted = done.interrupted
        self.lost = bool(done.lost)
        if done.lost:
            self.notes[f"{step.probe}: {done.lost}: the same command measures what is left"] = None

    def _of(self, probe: str) -> tuple[Report, ...]:
        """Reports of the runs that measured it."""
        newest = self.reports.get(probe)
        return (*self.earlier.get(probe, ()), *([newest] if newest else []))

    def _partly(self, probe: str) -> tuple[int, int]:
        """How many of its cases were measured, and how many there are."""
        cases = next(step.cases for step in self.plan.steps if step.probe == probe)
        runs = self._of(probe)
        return len(cases) - len(cases_left(runs[-1].run, cases) if runs else cases), len(cases)

    def report(self) -> SuiteReport:
        figures = tuple(
            with_findings(
                SuiteFigure(
                    figure=each.figure,
                    lacking=each.lacking,
                    reports=tuple(found for name in each.probes for found in self._of(name)),
                    waiting=tuple(
                        (name, why)
                        for name in each.probes
                        if (why := _not_yet(self._of(name), name)) is not None
                    ),
                    partly=tuple((name, *self._partly(name)) for name in each.probes),
                )
            )
            for each in self.plan.figures
        )
        paper = published(self.plan.suite.name)
        return SuiteReport(of=self.of, suite=self.plan.suite, paper=paper, figures=figures)

    def write(self) -> None:
        """The page, and the same as JSON and as a table; a note says if they cannot be written."""
        report = self.report()
        texts = {
            PAGE: suite_html(report),
            "suite.json": suite_json(report),
            "suite.csv": suite_csv(report),
        }
        try:
            self.page, *_ = write_together(self.out, texts)
        except OSError as error:
            self.page = None
            why = f"the page cannot be written to {self.out} ({error.strerror})"
            self.notes[f"{why}: give another with --out"] = None

    def result(self) -> SuiteResult:
        return SuiteResult(
            report=self.report(),
            page=self.page,
            notes=tuple(self.notes),
            measured=self.measured,
            interrupted=self.interrupted,
            kept=self.kept,
            lost=self.lost,
        )


def with_findings(figure: SuiteFigure) -> SuiteFigure:
    """With what the reports of its runs find in its numbers, and why cases gave none.

    How many had no time yet, it says by itself.
    """
    found = (
        (part.section.probe, said)
        for part in shown_parts(figure)
        for said in findings_in(part.report, part.section.probe)
    )
    gaps = tuple((case, why) for case, why in unmeasured_in(figure) if not lacked_time(why))
    return replace(figure, findings=tuple(dict.fromkeys(found)), gaps=gaps)


def _not_yet(found: Sequence[Report], probe: str) -> Unmeasured | None:
    """Why there is no number of the probe yet; None if there is."""
    if not found:
        return _NOT_YET
    if any(has_numbers(each, probe) for each in found):
        return None
    said = (why for case, why in found[-1].run.unmeasured if case.probe == probe)
    return next(said, _NOT_YET)
