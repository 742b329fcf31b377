"""`flowos measure` from the request to a stored run, its report and its files."""

import secrets
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path, PurePath

from flowos import engine
from flowos._dataclasses import dataclass, field
from flowos.model import (
    Environment,
    Facts,
    MeasurementRequest,
    OnProgress,
    Progress,
    Run,
    Sample,
    StoreError,
)
from flowos.operations._facts import facts, facts_on
from flowos.operations._scratch import OWN_STORAGE, check_out, scratch_in
from flowos.operations.measure._cases import described
from flowos.operations.measure._commands import check_commands
from flowos.operations.measure._prepare import check, described_in
from flowos.operations.measure._report import report_of
from flowos.operations.measure._report_files import written
from flowos.operations.measure._sampler import INTERRUPTED, TIME_WAS_OUT
from flowos.operations.measure._session import DeployedOn, measure
from flowos.operations.measure._time import STOPPED, not_begun
from flowos.probes import deployment_words
from flowos.report import Report, html_cell, text
from flowos.store import Store, open_store

OnSample = Callable[[Sample], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A measured run.

    notes: what could not be stored or written, one line each; the results are complete all the
    same. files: of the report, the page first; none if it could not be written.
    """

    report: Report
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    kept: bool = True

    @property
    def interrupted(self) -> bool:
        """Whether a Ctrl-C ended it early."""
        return self.report.run.ended_early == INTERRUPTED

    @property
    def lost(self) -> str:
        """What became of its nodes, if that ended it early; else ""."""
        early = self.report.run.ended_early
        return "" if early in (INTERRUPTED, TIME_WAS_OUT) else early

    @property
    def failed(self) -> tuple[str, ...]:
        """Why commands of the user failed after some runs, or in an environment."""
        run = self.report.run
        failed = (why for _, why in run.unmeasured if why != STOPPED and not not_begun(why))
        return tuple(w.reason for w in dict.fromkeys(failed)) if run.request.commands else ()

    def __str__(self) -> str:
        return text(self.report)

    def _repr_html_(self) -> str:
        return html_cell(self.report)


def planned(
    request: MeasurementRequest,
    *,
    own_storage: PurePath = OWN_STORAGE,
    check_facts: Callable[[Facts], None] = lambda _: None,
) -> list[dict[str, object]]:
    """What `measured` would run; nothing is measured. own_storage: of each node."""
    asked = _check(request)
    node = facts(request)
    check_facts(node)
    if len(asked) > 1:
        return described_in(request, node, engine.here(), asked)
    return described(node, request, own_storage)


def measured(  # noqa: PLR0913 - the last ones by keyword
    request: MeasurementRequest,
    *,
    out: Path | None,
    url: str | None,
    seconds: float | None,
    on_progress: OnProgress,
    on_sample: OnSample,
    on: DeployedOn | None = None,
    check_facts: Callable[[Facts], None] = lambda _: None,
) -> Result:
    """Measure, keep each sample in the store, write the report.

    out: its folder; None for no report. on: what is measured; this machine by default.
    check_facts: raises for a machine that is not to be measured. If the store or the folder cannot
    be written, a note says so and the results are returned. Raises UsageError if the folder is not
    writable at the start.
    """
    asked = _check(request, out, on)
    started = engine.utc()
    node = facts_of(request, on)
    check_facts(node)
    run = _begun(request, node, started, on)
    notes: list[str] = []
    kept = _SampleRecorder(run=run, store=_opened(url, notes), notes=notes)
    for note in notes:
        on_progress(Progress(doing=note, lasting=True))

    def keep(sample: Sample) -> None:
        kept.keep(sample)
        on_sample(sample)

    done = measure(
        run,
        environments=asked,
        on=on,
        keep=keep,
        on_progress=on_progress,
        seconds=seconds,
    )
    kept.finish(done)
    report = report_of(done, kept.samples)
    files = () if out is None else written(report, out, notes)
    return Result(report=report, files=files, notes=tuple(notes), kept=not kept.lost)


def facts_of(request: MeasurementRequest, on: DeployedOn | None) -> Facts:
    """Of what is measured: this machine, or a node that is held. Raises as `facts`."""
    if on is None:
        return facts(request)
    return facts_on(on.node, request, deployment_words(on.deployment))


def _begun(request: MeasurementRequest, node: Facts, started: str, on: DeployedOn | None) -> Run:
    return Run(
        id=f"{started[:10]}-{secrets.token_hex(3)}",
        started=started,
        host=node.host,
        version=version("flowos-hpc"),
        request=request,
        facts=node,
        deployment=on.deployment if on else None,
    )


def _check(
    request: MeasurementRequest, out: Path | None = None, on: DeployedOn | None = None
) -> tuple[tuple[str, Environment], ...]:
    """Raises UsageError or EnvironmentRefused if it cannot be, before seconds go into facts."""
    if out is not None:
        check_out(out)
    check_commands(request)
    asked = check(request)
    if on is None:
        with scratch_in(request.scratch):
            pass
    return asked


def _opened(url: str | None, notes: list[str]) -> Store | None:
    try:
        store = open_store(url)
        try:
            store.check_writable()
        except BaseException:
            store.close()
            raise
    except StoreError as error:
        notes.append(f"{error}; the results are on the screen and in the report only")
        return None
    if store.is_new:
        notes.append(f"made a new store: {store.place}")
    return store


@dataclass(slots=True, kw_only=True)
class _SampleRecorder:
    """Samples in memory and, until an error, in the store.

    The run is stored with its first sample: a run that was refused leaves no trace.
    """

    run: Run
    store: Store | None
    notes: list[str]
    samples: list[Sample] = field(default_factory=list)
    begun: bool = False
    lost: bool = False
    """Is a sample missing in the store, or is there no store?"""

    def begin(self) -> None:
        if not self.begun:
            self.begun = True
            self._try(lambda store: store.begin(self.run))

    def keep(self, sample: Sample) -> None:
        self.begin()
        self.samples.append(sample)
        self._try(lambda store: store.keep(sample))

    def finish(self, run: Run) -> None:
        self.begin()
        self._try(lambda store: store.finish(run))
        if self.store:
            self.store.close()

    def _try(self, act: Callable[[Store], None]) -> None:
        if self.store is None:
            self.lost = True
            return
        try:
            act(self.store)
        except StoreError as error:
            self.lost = True
            self.notes.append(f"{error}; from here on results are in the report only")
            self.store.close()
            self.store = None
