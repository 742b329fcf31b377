"""From what a person wants to a kept run, its report and its files: `flowos measure` whole."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from flowos import engine
from flowos.model import OnProgress, Progress, Run, Sample, StoreError, Wanted
from flowos.operations._facts import facts
from flowos.operations._files import write_together
from flowos.operations._scratch import check_out, scratch_in
from flowos.operations.measure._cases import described
from flowos.operations.measure._prepare import check, described_in
from flowos.operations.measure._report import book_of
from flowos.operations.measure._sampler import INTERRUPTED
from flowos.operations.measure._session import measure
from flowos.report import Report, csv, html, json, markdown
from flowos.store import Store, open_store

OnSample = Callable[[Sample], None]

RENDERERS: dict[str, Callable[[Report], str]] = {
    "report.html": html,
    "report.json": json,
    "report.csv": csv,
    "report.md": markdown,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A measured run. `notes` say what could not be kept or written, one line each: none is lost.

    files: of the report, the page first; none where it could not be written.
    """

    book: Report
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    kept: bool = True

    @property
    def interrupted(self) -> bool:
        return self.book.run.ended_early == INTERRUPTED


def planned(wanted: Wanted) -> list[dict[str, object]]:
    """What `measured` would run; nothing is measured."""
    _check(wanted)
    node = facts(wanted)
    if len(wanted.environments) > 1:
        return described_in(wanted, node, engine.here(), wanted.environments)
    return described(node, wanted)


def measured(
    wanted: Wanted,
    *,
    out: Path,
    url: str | None,
    seconds: float | None,
    on_progress: OnProgress,
    on_sample: OnSample,
) -> Result:
    """Measure, keep each sample in the store, write the report.

    A store that cannot be written costs a note, never the results; so does a folder that no longer
    can. UsageError: it cannot from the start.
    """
    check_out(out)
    _check(wanted)
    started = engine.utc()
    node = facts(wanted)
    run = Run(
        id=f"{started[:10]}-{secrets.token_hex(3)}",
        started=started,
        host=node.host,
        version=version("flowos-hpc"),
        wanted=wanted,
        facts=node,
    )
    notes: list[str] = []
    kept = _Kept(run=run, store=_opened(url, notes), notes=notes)
    for note in notes:
        on_progress(Progress(doing=note, lasting=True))

    def keep(sample: Sample) -> None:
        kept.keep(sample)
        on_sample(sample)

    places = _environments(wanted)
    done = measure(run, environments=places, keep=keep, on_progress=on_progress, seconds=seconds)
    kept.finish(done)
    book = book_of(done, kept.samples)
    files = written(book, out, notes)
    return Result(book=book, files=files, notes=tuple(notes), kept=not kept.lost)


def _environments(wanted: Wanted) -> tuple[str, ...]:
    return wanted.environments or ("bare",)


def _check(wanted: Wanted) -> None:
    """UsageError or EnvironmentRefused, before this node is looked at: that takes seconds."""
    with scratch_in(wanted.scratch):
        check(wanted, _environments(wanted))


def written(book: Report, out: Path, notes: list[str]) -> tuple[Path, ...]:
    """Write the report in each format, or none; a note where that cannot be."""
    try:
        return write_together(out, {name: render(book) for name, render in RENDERERS.items()})
    except OSError as error:
        notes.append(
            f"the report cannot be written to {out} ({error.strerror}): give another with --out"
        )
        return ()


def _opened(url: str | None, notes: list[str]) -> Store | None:
    try:
        store = open_store(url)
    except StoreError as error:
        notes.append(f"{error}; the results are on the screen and in the report only")
        return None
    if store.is_new:
        notes.append(f"made a new store: {store.place}")
    return store


@dataclass(slots=True, kw_only=True)
class _Kept:
    """Samples in memory and, as long as it takes them, in the store.

    The run begins there with its first sample: a run that was refused leaves no trace.
    """

    run: Run
    store: Store | None
    notes: list[str]
    samples: list[Sample] = field(default_factory=list)
    begun: bool = False
    lost: bool = False
    """Something is not in the store, or there is none."""

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
