"""`flowos serve`: pages of what runs and ran, made of the store and the records of programs.

Nothing runs for them: programs write their records, and a page is drawn when it is asked for and
something changed. Drawing one takes a tenth of a processor at most, however often it is asked for.
"""

import hashlib
import os
import re
import sys
import tempfile
import threading
import time
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from flowos import engine
from flowos._dataclasses import dataclass, field, replace
from flowos.engine import PageAnswer, PageRequest, PageServer
from flowos.model import FlowosError, ListedRun, Process, SliceRecord, StoreError, UsageError
from flowos.operations import processes, slices, stored_runs
from flowos.operations.measure import report_of
from flowos.operations.settings_file import load_settings, settings_files, settings_names
from flowos.operations.task_log import read_log
from flowos.report import html, timeline_html
from flowos.report.site import (
    CURVES_SCRIPT,
    FOLLOWED,
    LIVE_SCRIPT,
    SERVED,
    ListPart,
    Overview,
    ProgramLog,
    overview_html,
    pools_html,
    problem_html,
    program_html,
    programs_html,
    runs_html,
    slices_html,
)
from flowos.store import Store, file_stamp, open_store

T = TypeVar("T")

_SCRIPTS = {"/live.js": LIVE_SCRIPT, "/curves.js": CURVES_SCRIPT}
_ROWS, _FIRST_ROWS = 50, 10
_KEPT_PAGES = 16
_MAX_DRAWN_BYTES = 2_000_000
"""Of a log that is drawn on the page of its program: that takes half a second."""
_MAX_READ_BYTES = 100_000_000
_PAUSES = 9.0
"""Between two drawings of a page, in the processor time of the last one."""


class _NotHereError(FlowosError):
    """No page has this address."""


class _Asked(NamedTuple):
    """words: of the address; part: the number of the part of a list."""

    words: tuple[str, ...]
    part: int


class _Shown(NamedTuple):
    """follows: files that are in it."""

    text: str
    follows: tuple[Path, ...] = ()


class _Page(NamedTuple):
    """stamp: equal as long as `show` would give the same, but for files; None if unknown."""

    path: str
    show: Callable[[_Asked], _Shown]
    stamp: Callable[[], object]


@dataclass(slots=True)
class _Drawn:
    """A page as it was drawn last. again: when it may be drawn again."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    answer: PageAnswer | None = None
    stamp: object = None
    follows: tuple[Path, ...] = ()
    again: float = 0.0


def page_server(url: str | None, port: int) -> PageServer:
    """A server of the pages, which does not answer yet. url: of the store with measurements.

    Raises StoreError if a store that is named cannot be opened, FlowosError if the port cannot.
    """
    if url is not None:
        open_store(url, make=False, wait_seconds=processes.PATIENCE_SECONDS).close()
    processes.take_in()
    return PageServer(Site(url).answer, port)


class Site:
    """The pages. Called by many threads at once."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._drawn: OrderedDict[object, _Drawn] = OrderedDict()
        self._lock = threading.Lock()
        self._pages = (
            _Page("/", self._overview, self._stamp_now),
            _Page("/programs", _programs, self._stamp),
            _Page("/programs/([^/]+)", _program, self._stamp),
            _Page("/programs/([^/]+)/logs/([0-9]{1,3})", _timeline, tuple),
            _Page("/slices", _slices, self._stamp_now),
            _Page("/runs", self._runs, self._stamp),
            _Page("/runs/([^/]+)", self._report, self._stamp),
            _Page("/pools", _pools, _settings_stamp),
        )

    def answer(self, request: PageRequest) -> PageAnswer:
        """What this address shows now; 304 if the client has that."""
        if script := _SCRIPTS.get(request.path):
            return PageAnswer(body=script.encode(), kind="text/javascript; charset=utf-8")
        try:
            answer = self._newest(request.path, _part_of(request))
        except _NotHereError as error:
            return _problem(404, "This is not here", error)
        except FlowosError as error:
            return _problem(503, "This cannot be shown now", error)
        if request.version == answer.version:
            return PageAnswer(status=304, version=answer.version)
        return answer

    def _newest(self, path: str, part: int) -> PageAnswer:
        for page in self._pages:
            if found := re.fullmatch(page.path, path):
                asked = _Asked(tuple(map(unquote, found.groups())), part)
                return _drawn(self._kept((path, part)), page, asked)
        raise _NotHereError("No page has this address.")

    def _kept(self, key: object) -> _Drawn:
        with self._lock:
            drawn = self._drawn.setdefault(key, _Drawn())
            self._drawn.move_to_end(key)
            if len(self._drawn) > _KEPT_PAGES:
                self._drawn.popitem(last=False)
            return drawn

    def _overview(self, _: _Asked) -> _Shown:
        running = processes.running()
        listed = processes.look(len(running) + _FIRST_ROWS)
        over = [each for each in listed.found if each.state != "running"]
        runs, problem = self._listed(1, _FIRST_ROWS)
        seen = Overview(
            host=os.uname().nodename,
            now=time.time(),
            running=running,
            slices=_not_over(),
            over=tuple(over[:_FIRST_ROWS]),
            runs=runs.found,
            problems=_lines(listed.note, problem),
        )
        return _Shown(overview_html(seen))

    def _runs(self, asked: _Asked) -> _Shown:
        listing, problem = self._listed(asked.part, _ROWS)
        return _Shown(runs_html(_checked(listing, problem), _lines(problem)))

    def _listed(self, number: int, size: int) -> tuple[ListPart[ListedRun], str]:
        """A part of the list of measurements, and why it could not be read."""
        part: ListPart[ListedRun] = ListPart(found=(), total=0, number=number, size=size)
        try:
            with self._open() as store:
                found = stored_runs.listed_runs(store, size, (number - 1) * size)
                return replace(part, found=found, total=store.sizes()[0]), ""
        except StoreError as error:
            return part, str(error)

    def _report(self, asked: _Asked) -> _Shown:
        with self._open() as store:
            try:
                run = store.run(asked.words[0])
            except StoreError as error:
                raise _NotHereError(str(error)) from error
            return _Shown(html(report_of(run, store.samples(run)), frame=SERVED))

    def _open(self) -> Store:
        return open_store(self._url, make=False, wait_seconds=processes.PATIENCE_SECONDS)

    def _stamp(self) -> object:
        measured = file_stamp(self._url)
        return measured and (measured, file_stamp(), processes.stamp(), slices.stamp())

    def _stamp_now(self) -> object:
        """Another one each minute too, as costs grow."""
        stamp = self._stamp()
        return stamp and (stamp, int(engine.now() / 60))


def _drawn(kept: _Drawn, page: _Page, asked: _Asked) -> PageAnswer:
    with kept.lock:
        began, stamp = engine.worked(), page.stamp()
        if stamp is not None:
            stamp = (stamp, tuple(map(_state_of, kept.follows)))
        changed = stamp is None or stamp != kept.stamp
        if kept.answer is None or (changed and engine.now() >= kept.again):
            shown = page.show(asked)
            body = shown.text.encode()
            version = hashlib.sha256(body).hexdigest()[:32]
            kept.answer = PageAnswer(body=body, version=version)
            kept.stamp = stamp if shown.follows == kept.follows else None
            kept.follows = shown.follows
            kept.again = engine.now() + _PAUSES * (engine.worked() - began)
        return kept.answer


def _state_of(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _programs(asked: _Asked) -> _Shown:
    listed = processes.look(_ROWS, (asked.part - 1) * _ROWS)
    listing = ListPart(found=listed.found, total=listed.total, number=asked.part, size=_ROWS)
    return _Shown(programs_html(_checked(listing, listed.note), _lines(listed.note)))


def _slices(asked: _Asked) -> _Shown:
    listed = slices.look_at_all(_ROWS, (asked.part - 1) * _ROWS)
    listing = ListPart(found=listed.found, total=listed.total, number=asked.part, size=_ROWS)
    shown = slices_html(_checked(listing, listed.note), time.time(), _lines(listed.note))
    return _Shown(shown)


def _program(asked: _Asked) -> _Shown:
    found, held = _known(asked.words[0])
    paths = _logs_of(found, held)
    drawn = max((n for n, path in enumerate(paths) if _size(path) <= _MAX_DRAWN_BYTES), default=-1)
    logs = [_read_log(path, read=number == drawn) for number, path in enumerate(paths)]
    return _Shown(program_html(found, time.time(), held, logs), paths)


def _timeline(asked: _Asked) -> _Shown:
    paths = _logs_of(*_known(asked.words[0]))
    number = int(asked.words[1])
    if number >= len(paths):
        raise _NotHereError(f"This program has {len(paths)} logs.")
    found = _read_log(paths[number], read=True)
    if found.log is None:
        raise _NotHereError(found.problem)
    return _Shown(timeline_html(found.log, frame=FOLLOWED), (paths[number],))


def _known(id_: str) -> tuple[Process, tuple[SliceRecord, ...]]:
    found = processes.exactly(id_)
    if found is None:
        raise _NotHereError(f"No program {id_!r:.80} is kept.")
    return found, slices.look_at(id_)


def _logs_of(process: Process, held: tuple[SliceRecord, ...]) -> tuple[Path, ...]:
    words = [*(each.log for each in held), *(log for use in process.uses for log in use.logs)]
    return tuple(map(Path, dict.fromkeys(filter(None, words))))


def _read_log(path: Path, *, read: bool) -> ProgramLog:
    """A pipe or a device is none that can be read again."""
    known = ProgramLog(path=str(path))
    if not path.is_file():
        return replace(known, problem=f"{path}: there is no such file now.")
    if _size(path) > _MAX_READ_BYTES:
        return replace(known, problem=f"{path} is too large for a page: flowos show reads it.")
    try:
        return replace(known, log=read_log(path)) if read else known
    except OSError as error:
        return replace(known, problem=f"{path}: {error.strerror}.")
    except UsageError as error:
        return replace(known, problem=str(error))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _pools(_: _Asked) -> _Shown:
    return _Shown(pools_html(load_settings().pools, settings_names(), _not_over()))


def _not_over() -> tuple[SliceRecord, ...]:
    return tuple(each for each in slices.look() if not each.is_over)


def _settings_stamp() -> object:
    files = tuple((file, _state_of(file)) for file in settings_files())
    return files, processes.stamp(), slices.stamp()


def _part_of(request: PageRequest) -> int:
    """The number of the part of a list that is asked for."""
    word = dict(request.query).get("page", "1")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", word):
        raise _NotHereError(f"There is no part {word!r:.40} of a list.")
    return int(word)


def _checked(listing: ListPart[T], problem: str) -> ListPart[T]:
    """problem: why the list is not known."""
    if not problem and listing.number > listing.parts:
        raise _NotHereError(f"Part {listing.number} of a list that has {listing.parts}.")
    return listing


def _problem(status: int, title: str, error: FlowosError) -> PageAnswer:
    return PageAnswer(body=problem_html(title, str(error)).encode(), status=status)


def _lines(*words: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word))


@contextmanager
def opened_in_browser(url: str) -> Iterator[None]:
    """Open an address with a secret: by a file of one's own, as all users see command lines.

    Raises UsageError if there is no browser to be seen.
    """
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & {*os.environ}:
        raise UsageError("--open: this session has no display; open the address that is printed")
    with tempfile.TemporaryDirectory(prefix="flowos-serve-") as folder:
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(f'<meta http-equiv="refresh" content="0; url={url}">')
        if not webbrowser.open(file.as_uri()):
            raise UsageError("--open: no browser is found; open the address that is printed")
        yield
