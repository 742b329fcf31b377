"""Database of runs, samples, processes, slices, and origins of images.

Guarantees: once `keep` has returned, the sample is on the disk, so that a crash loses nothing;
several programs may write at once; every failure is a StoreError of one line. The store uses no
clock: callers pass time stamps.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import URL, Connection, Engine, delete, func, insert, select, text, update

from flowos.model import Process, Run, Sample, SliceRecord, StoreError, from_plain, to_plain
from flowos.store._errors import place, translated
from flowos.store._image_record import ImageRecord
from flowos.store._migrations import NEWEST, check_not_newer, migrate, schema_number
from flowos.store._place import connect, file_of, lock_schema, make_folder, read_url
from flowos.store._tables import images, old_image_names, processes, runs, samples, slices

T = TypeVar("T")

_KEEP_FIRST_PROCESS = (
    "INSERT INTO flowos_processes (id, started, host, body) VALUES (:id, :started, :host, :body)"
    " ON CONFLICT (id) DO NOTHING"
)

_KEEP_LAST_SLICE = (
    "INSERT INTO flowos_slices (id, process, asked, body) VALUES (:id, :process, :asked, :body)"
    " ON CONFLICT (id) DO UPDATE SET body = excluded.body"
)

_KEEP_FIRST = (
    "INSERT INTO flowos_image_origins (digest, body) VALUES (:digest, :body)"
    " ON CONFLICT (digest) DO NOTHING"
)


def opened(url: str | None, *, make: bool, wait_seconds: float) -> "Store":
    """See `flowos.store.open_store`."""
    where = read_url(url)
    file, new = file_of(where), False
    if file is not None:
        with translated(where, "make the folder of" if make else "look for"):
            new = bool(url) and not file.exists()
            if new and not make:
                raise StoreError(f"there is no store {file}: mend the path given with --store")
            make_folder(file)
    store = Store(connect(where, wait_seconds), where, is_new=new)
    try:
        store._make_ready()
    except BaseException:
        store.close()
        raise
    return store


class Store:
    """An open database; close it, or use it as a context manager.

    is_new: its file was made now, by a path that a person gave, perhaps mistyped.
    """

    def __init__(self, engine: Engine, url: URL, *, is_new: bool = False) -> None:
        self.is_new = is_new
        self._engine = engine
        self._url = url
        self.place = place(url)

    def __repr__(self) -> str:
        return f"Store({self.place!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; closing twice is no error."""
        self._engine.dispose()

    def begin(self, run: Run) -> None:
        """Store a run that starts. Its id must be new."""
        row = {"id": run.id, "started": run.started, "host": run.host, "body": _text(run)}
        with self._writing("keep the run in") as connection:
            connection.execute(insert(runs), row)

    def keep(self, sample: Sample) -> None:
        """Store one sample of a run that has begun; it is on the disk when this returns."""
        row = {
            "run": sample.run,
            "probe": sample.case.probe,
            "metric": sample.metric,
            "body": _text(sample),
        }
        with self._writing("keep a sample in") as connection:
            connection.execute(insert(samples), row)

    def finish(self, run: Run) -> None:
        """Store the final state of a run: `ended`, and what was not measured."""
        with self._writing("finish the run in") as connection:
            done = connection.execute(
                update(runs).where(runs.c.id == run.id).values(body=_text(run))
            )
            if done.rowcount != 1:
                raise StoreError(f"cannot finish run {run.id} in {self.place}: it never began")

    def remove(self, ids: Sequence[str]) -> None:
        """Delete the runs with exactly these ids, with all their samples; all of them or none."""
        with self._writing("delete runs from") as connection:
            connection.execute(delete(samples).where(samples.c.run.in_(ids)))
            gone = connection.execute(delete(runs).where(runs.c.id.in_(ids)))
            if gone.rowcount != len(set(ids)):
                raise StoreError(f"cannot delete runs from {self.place}: not all of them are there")

    def keep_process(self, process: Process) -> None:
        """Store the record of an ended program; an existing record with this id stays."""
        row = {
            "id": process.id,
            "started": process.started,
            "host": process.host,
            "body": _text(process),
        }
        with self._writing("keep a process in") as connection:
            connection.execute(text(_KEEP_FIRST_PROCESS), row)

    def processes(self, limit: int | None = None, skip: int = 0) -> tuple[Process, ...]:
        """The stored processes, newest first: at most `limit` of them, without the first ones."""
        query = select(processes.c.body).order_by(processes.c.started.desc(), processes.c.id.desc())
        rows = self._rows(query.limit(limit).offset(skip))
        return tuple(self._read(Process, body) for (body,) in rows)

    def process(self, id_: str) -> Process | None:
        """The stored process with exactly this id."""
        rows = self._rows(select(processes.c.body).where(processes.c.id == id_))
        return self._read(Process, rows[0][0]) if rows else None

    def keep_slice(self, record: SliceRecord) -> None:
        """Store the record of a slice that is over, or what became known of it later."""
        row = {
            "id": record.id,
            "process": record.process,
            "asked": record.asked,
            "body": _text(record),
        }
        with self._writing("keep a slice in") as connection:
            connection.execute(text(_KEEP_LAST_SLICE), row)

    def slices(
        self, limit: int | None = None, skip: int = 0, *, process: str | None = None
    ) -> tuple[SliceRecord, ...]:
        """The stored slices, newest first: at most `limit` of them, without the first ones.

        process: of this one alone.
        """
        query = select(slices.c.body).order_by(slices.c.asked.desc(), slices.c.id.desc())
        query = query if process is None else query.where(slices.c.process == process)
        rows = self._rows(query.limit(limit).offset(skip))
        return tuple(self._read(SliceRecord, body) for (body,) in rows)

    def keep_image(self, image: ImageRecord) -> ImageRecord:
        """Store the origin of an image unless its digest has one; return the stored origin."""
        row = {"digest": image.digest, "body": _text(image)}
        with self._writing("keep where the image came from in") as connection:
            connection.execute(text(_KEEP_FIRST), row)
        return self.image(image.digest) or image

    def image(self, digest: str) -> ImageRecord | None:
        """The origin of the image of this digest; None if there is none."""
        rows = self._rows(select(images.c.body).where(images.c.digest == digest))
        return self._read(ImageRecord, rows[0][0]) if rows else None

    def old_image_names(self) -> tuple[tuple[str, str], ...]:
        """(name, digest) pairs of schema 3, the newest last. Since then names are links."""
        query = select(old_image_names.c.name, old_image_names.c.digest)
        rows = self._rows(query.order_by(old_image_names.c.number))
        return tuple((name, digest) for name, digest in rows)

    def forget_old_image_names(self) -> None:
        with self._writing("forget the old names of images in") as connection:
            connection.execute(delete(old_image_names))

    def runs(self, limit: int | None = None, skip: int = 0) -> tuple[Run, ...]:
        """The stored runs, newest first: at most `limit` of them, without the first ones."""
        query = select(runs.c.body).order_by(runs.c.number.desc()).limit(limit).offset(skip)
        return tuple(self._read(Run, body) for (body,) in self._rows(query))

    def sizes(self) -> tuple[int, int, int]:
        """Number of stored runs, processes and slices."""
        tables = (runs, processes, slices)
        counted = (self._rows(select(func.count()).select_from(table)) for table in tables)
        many_runs, many_processes, many_slices = (int(row[0]) for (row,) in counted)
        return many_runs, many_processes, many_slices

    def counts(self, ids: Sequence[str] | None = None) -> dict[str, int]:
        """Number of stored samples of each run, by its id. ids: of these runs alone."""
        query = select(samples.c.run, func.count()).group_by(samples.c.run)
        query = query if ids is None else query.where(samples.c.run.in_(ids))
        return {run: number for run, number in self._rows(query)}

    def run(self, ref: str) -> Run:
        """A run by its id, a unique prefix of it, or 'last'.

        Raises StoreError if there is none, or if the prefix is ambiguous.
        """
        query = select(runs.c.id, runs.c.body).order_by(runs.c.number.desc())
        if ref == "last":
            found = self._rows(query.limit(1))
        else:
            found = self._rows(query.where(func.substr(runs.c.id, 1, len(ref)) == ref))
        exact = [row for row in found if row[0] == ref]
        return self._read(Run, self._only(exact or found, ref)[1])

    def samples(self, run: Run | str) -> tuple[Sample, ...]:
        """The samples of a run (or of the run with exactly this id), in the order stored."""
        id_ = run.id if isinstance(run, Run) else run
        query = select(samples.c.body).where(samples.c.run == id_).order_by(samples.c.number)
        return tuple(self._read(Sample, body) for (body,) in self._rows(query))

    def _only(self, found: list[Any], ref: str) -> Any:
        if not found and ref == "last":
            raise StoreError(f"no run is kept in {self.place} yet: measure first (flowos measure)")
        if not ref or not found:
            raise StoreError(f"no run {ref!r} in {self.place}: see them with 'flowos list'")
        if len(found) > 1:
            several = ", ".join(row[0] for row in found[:5])
            raise StoreError(f"run {ref!r} fits {len(found)} runs ({several}): write more of it")
        return found[0]

    def _make_ready(self) -> None:
        with translated(self._url, "open"), self._engine.connect() as connection:
            number = schema_number(connection)
        check_not_newer(number, self.place)
        if number < NEWEST:
            with self._writing("make the tables of") as connection:
                lock_schema(connection)
                migrate(connection, self.place)

    def _rows(self, query: Any) -> list[Any]:
        with translated(self._url, "read"), self._engine.connect() as connection:
            return list(connection.execute(query))

    @contextmanager
    def _writing(self, doing: str) -> Iterator[Connection]:
        with translated(self._url, doing), self._engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def _read(self, noun: type[T], body: str) -> T:
        try:
            return from_plain(noun, json.loads(body))
        except ValueError as error:
            raise StoreError(f"{self.place} holds what cannot be read: {error}") from None


def _text(noun: object) -> str:
    return json.dumps(to_plain(noun), allow_nan=False, separators=(",", ":"))
