"""The results of one slice's tasks: found by the key of a call, kept once they are computed.

A value is kept as a pickle. A file that a command wrote is copied, and comes back as a copy in a
folder of the slice. A file that a Python task returned stays where the task put it: it is looked at
again, and if its content is another, or it is gone, the task runs again. So are those in a value.
Errors are not kept, nor what a command gave that did not come to its end.
"""

import pickle
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from flowos._user_folders import cache_folder
from flowos.engine._node import Node
from flowos.engine.flow._inside import Surroundings
from flowos.engine.flow._sites import SiteFunction
from flowos.engine.flow._usage import SliceUsage
from flowos.engine.ray._ray_values import InRay
from flowos.engine.results._call_key import CallKey
from flowos.engine.results._file_digest import digest_if_there
from flowos.engine.results._journal import Journal, newest
from flowos.engine.results._notes import taken_note
from flowos.engine.results._record import KeptResult
from flowos.engine.results._runs_again import KeptTask, RunsAgain
from flowos.engine.results._value_digest import NoDigest
from flowos.engine.workers._blobs import Packed
from flowos.model import (
    ChosenEngines,
    Cond,
    Exited,
    File,
    Loop,
    Outcome,
    PortType,
    Python,
    SliceRefused,
    TaskFailed,
    ValueRefused,
    brief_repr,
    counted,
    with_files,
)
from flowos.plan import Schedule, Stage

Values = Sequence[object]
MAX_CACHE_BYTES = 10 << 30


def results_folder() -> Path:
    """Of the user's cache; it need not exist."""
    return cache_folder() / "results"


class SliceResults:
    """journal: keeps the results of all tasks but those with cache=False. fresh: makes a folder for
    files of a task. usage: counts what is found.

    Raises SliceRefused for a task whose code has no stable digest, and for a journal that cannot be
    used. A cache that cannot be used is said in the notes.
    """

    def __init__(
        self,
        schedule: Schedule,
        around: Surroundings,
        fresh: Callable[[str], Path],
        usage: SliceUsage,
        journal: Path | None,
    ) -> None:
        kept = {stage.number: stage for stage in schedule.all_stages if _is_kept(stage, journal)}
        self._keys = {n: CallKey(stage, around) for n, stage in kept.items()}
        self._cached = {n for n, stage in kept.items() if stage.steps[0].task.cache}
        self._notes: list[str] = []
        self._not_kept: dict[str, tuple[int, str]] = {}
        self._journal = None if journal is None else Journal(journal)
        keys = [(kept[n].label, key) for n, key in self._keys.items()]
        tasks = [KeptTask(label, key.code, key.parts) for label, key in keys]
        self._again = RunsAgain(self._journal, tasks, _any_of(around.node))
        self._cache = self._open_cache() if self._cached else None
        self._fresh = fresh
        self._usage = usage
        self.hit = usage.hit

    def keeps(self, stage: Stage) -> bool:
        """Whether results of this task are kept."""
        return stage.number in self._keys

    def key(self, stage: Stage, values: Values) -> bytes:
        """Of a call. Raises ValueRefused for a value without a stable digest."""
        return self._keys[stage.number]([_opened(value) for value in values])

    def find(self, stage: Stage, key: bytes, given: Values) -> Values | None:
        """What the call gave before. given: its inputs."""
        lost: _Unusable | None = None
        for journal in self._journals(stage):
            kept = journal.get(key)
            try:
                if kept is not None:
                    found = self._unpacked(stage, journal, kept)
                    self._again.found(stage.label)
                    return _noted(stage, given, found)
                if key in journal.damaged:
                    journal.damaged.discard(key)
                    raise _Unusable(f"its value in {journal.name} is gone or damaged")
            except _Unusable as error:
                lost = error
                journal.forget(key)
        if lost is not None:
            self._again.lost(stage.label, key, *lost.args)
        return None

    def keep(self, stage: Stage, key: bytes, values: Values) -> None:
        """Raises ValueRefused for what cannot be pickled, TaskFailed for a file that is none.

        Where it cannot be written, as on a full disk, the run goes on: the notes say so.
        """
        if any(isinstance(v, Outcome) and not isinstance(v.end, Exited) for v in values):
            return
        self._again.computed(stage.label, self._keys[stage.number].code, key)
        for journal in self._journals(stage):
            try:
                journal.put(self._packed(stage, journal, key, values))
            except (OSError, NoDigest) as error:
                if journal is not self._journal:
                    self._cache = None
                elif isinstance(error, NoDigest):
                    words = f"its result cannot be kept in {journal.name}: {error}"
                    raise TaskFailed(f"task {stage.label!r}: {words}") from error
                first = f"task {stage.label!r}: {error}"
                count, first = self._not_kept.get(journal.name, (0, first))
                self._not_kept[journal.name] = count + 1, first

    def notes(self) -> tuple[str, ...]:
        """Damage, and how many results were found."""
        used = [each for each in (self._journal, self._cache) if each is not None]
        damage = [note for each in used for note in each.notes]
        places = " and ".join(each.name for each in used)
        hits = self._usage.hits
        found = [taken_note(hits, places)] if hits else []
        lost = [
            f"{counted(count, 'result')} could not be kept in {name} and would be computed again "
            f"({first})"
            for name, (count, first) in tuple(self._not_kept.items())
        ]
        return (*self._notes, *self._again.notes(), *damage, *lost, *found)

    def close(self) -> None:
        for journal in (self._journal, self._cache):
            if journal is not None:
                journal.close()

    def _open_cache(self) -> Journal | None:
        try:
            cache = Journal(results_folder(), "cache")
            if cache.size_bytes > MAX_CACHE_BYTES:
                cache.keep_only(partial(newest, max_bytes=MAX_CACHE_BYTES * 3 // 4))
        except (SliceRefused, OSError) as error:
            self._notes.append(f"no results are cached: {error}")
            return None
        return cache

    def _journals(self, stage: Stage) -> list[Journal]:
        cache = self._cache if stage.number in self._cached else None
        return [each for each in (self._journal, cache) if each is not None]

    def _packed(self, stage: Stage, journal: Journal, key: bytes, values: Values) -> KeptResult:
        parts: list[tuple[object, ...]] = []
        references: list[bytes] = []
        size = 0
        for type_, value in zip(_types(stage), values, strict=True):
            if type_ != File or isinstance(stage.steps[0].task.body, Python):
                parts.append(_value_part(type_, _opened(value)))
                continue
            path = Path(str(value))
            digest, bytes_ = journal.keep_file(path)
            references.append(digest)
            size += bytes_
            parts.append(("file", path.name, digest))
        try:
            body = pickle.dumps(parts, 5)
        except Exception as error:
            raise ValueRefused(
                f"task {stage.label!r}: its result cannot be kept, as it cannot be pickled: {error}"
                "; cache=False leaves the task out"
            ) from error
        return KeptResult(
            key=key,
            code=self._keys[stage.number].code,
            label=stage.label,
            when=time.time(),
            body=body,
            references=tuple(references),
            size_bytes=size,
        )

    def _unpacked(self, stage: Stage, journal: Journal, kept: KeptResult) -> list[object]:
        """Raises _Unusable where it cannot be had again."""
        try:
            parts = pickle.loads(kept.body)
        except Exception as error:  # a class that is gone, or anything that its code raises
            why = brief_repr(error)
            raise _Unusable(f"its result in {journal.name} cannot be read: {why}") from error
        values: list[object] = []
        folder: Path | None = None
        for kind, *rest in parts:
            if kind == "value":
                values.append(rest[0])
            elif kind == "value with files":
                for path, digest in rest[1]:
                    _check_as_it_was(Path(path), digest)
                values.append(rest[0])
            elif kind != "file":
                raise _Unusable(f"its result in {journal.name} is of an older FlowOS")
            else:
                folder = folder or self._fresh(stage.label)
                if not journal.restore_file(rest[1], folder / rest[0]):
                    raise _Unusable(f"a file of it in {journal.name} is gone or damaged", rest[0])
                values.append(folder / rest[0])
        return values


class _Unusable(Exception):  # noqa: N818 - reads as what is so
    """A kept result: (why, which file)."""


def _any_of(node: Node) -> str:
    """What may be another where it is not known which part is."""
    image = "Python or the image" if node.is_here else f"Python, the image or node {node.name}"
    return f"its code, what that names, {image}"


def _is_kept(stage: Stage, journal: Path | None) -> bool:
    task = stage.steps[0].task
    if isinstance(task.body, (Cond, Loop)):  # their tasks' results are
        return False
    return bool(task.cache) or (journal is not None and task.cache is None)


def _opened(value: object) -> object:
    return value.open() if isinstance(value, (Packed, InRay)) else value


def _noted(stage: Stage, given: Values, found: list[object]) -> Values:
    """The same; of a task with several bodies with the note that this run needs."""
    (step,) = stage.steps
    site = getattr(step.task.body, "fun", None)
    if isinstance(site, SiteFunction):
        chosen = _opened(given[step.inputs[-1]])
        assert isinstance(chosen, ChosenEngines)
        found[stage.returns.index(step.outputs[-1])] = site.note_of_kept(chosen)
    return found


def _value_part(type_: PortType, value: object) -> tuple[object, ...]:
    """What is kept of a value: itself, and what its files are, or that they are not there."""
    files = []

    def note(path: object, _: str) -> object:
        files.append((str(path), digest_if_there(Path(str(path)))))
        return path

    with_files(type_, value, note)
    return ("value with files", value, files) if files else ("value", value)


def _types(stage: Stage) -> list[PortType]:
    (step,) = stage.steps
    types = dict(zip(step.outputs, (port.type for port in step.task.outputs), strict=True))
    return [types[register] for register in stage.returns]


def _check_as_it_was(path: Path, digest: bytes | None) -> None:
    try:
        now = digest_if_there(path)
    except NoDigest:
        raise _Unusable("its file cannot be read", str(path)) from None
    if now != digest:
        why = "is gone" if now is None else "has another content"
        raise _Unusable(f"its file {why}", str(path))
