"""Database of runs, samples, processes, slices, and origins of images.

Guarantees: once `keep` has returned, the sample is on the disk, so that a crash loses nothing;
several programs may write at once; every failure is a StoreError of one line. The store uses no
clock: callers pass time stamps.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from flowos.model import (
    NoStoreError,
    Process,
    Run,
    Sample,
    SliceRecord,
    StoreError,
    UnknownRecord,
    from_plain,
    to_plain,
)
from flowos.store._database import NO_VALUES, Database, Execute, Row, Values, translated
from flowos.store._image_record import ImageRecord
from flowos.store._migrations import NEWEST, check_not_newer, migrate, schema_number
from flowos.store._place import connect, make_private, read_url

T = TypeVar("T")


def opened(url: str | None, *, make: bool, wait_seconds: float) -> "Store":
    """See `flowos.store.open_store`."""
    where, new = read_url(url), False
    if isinstance(where, Path):
        with translated("make" if make else "look for", str(where), ()):
            new = bool(url) and not where.exists()
            if new and not make:
                raise NoStoreError(f"there is no store {where}: mend the path given with --store")
            make_private(where)
    store = Store(connect(where, wait_seconds), is_new=new)
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

    def __init__(self, database: Database, *, is_new: bool = False) -> None:
        self.is_new = is_new
        self.place = database.place
        self._opened = database
        self._pid = os.getpid()

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
        if os.getpid() == self._pid:  # else it is the parent's
            self._opened.close()

    def check_writable(self) -> None:
        """Raises StoreError if a run cannot be kept, better now than after it was measured."""
        with self._writing("keep runs in") as execute:
            # SQLite lets a transaction begin on a read-only file; only a statement that writes
            # fails. This one needs what `finish` needs, and no right to delete.
            execute("UPDATE flowos_runs SET body = body WHERE id = ''", NO_VALUES)

    def begin(self, run: Run) -> None:
        """Store a run that starts. Its id must be new."""
        with self._writing("keep the run in") as execute:
            execute(
                "INSERT INTO flowos_runs (id, started, host, body)"
                " VALUES (:id, :started, :host, :body)",
                {"id": run.id, "started": run.started, "host": run.host, "body": _text(run)},
            )

    def keep(self, sample: Sample) -> None:
        """Store one sample of a run that has begun; it is on the disk when this returns."""
        row = {
            "run": sample.run,
            "probe": sample.case.probe,
            "metric": sample.metric,
            "body": _text(sample),
        }
        with self._writing("keep a sample in") as execute:
            execute(
                "INSERT INTO flowos_samples (run, probe, metric, body)"
                " VALUES (:run, :probe, :metric, :body)",
                row,
            )

    def finish(self, run: Run) -> None:
        """Store the final state of a run: `ended`, and what was not measured."""
        with self._writing("finish the run in") as execute:
            statement = "UPDATE flowos_runs SET body = :body WHERE id = :id"
            if execute(statement, {"id": run.id, "body": _text(run)}) != 1:
                raise StoreError(f"cannot finish run {run.id} in {self.place}: it never began")

    def remove(self, ids: Sequence[str]) -> None:
        """Delete the runs with exactly these ids, with all their samples; all of them or none."""
        names, values = _listed(ids)
        with self._writing("delete runs from") as execute:
            execute(f"DELETE FROM flowos_samples WHERE run IN ({names})", values)
            gone = execute(f"DELETE FROM flowos_runs WHERE id IN ({names})", values)
            if gone != len(set(ids)):
                raise StoreError(f"cannot delete runs from {self.place}: not all of them are there")

    def keep_process(self, process: Process) -> None:
        """Store the record of an ended program; an existing record with this id stays."""
        row = {
            "id": process.id,
            "started": process.started,
            "host": process.host,
            "body": _text(process),
        }
        with self._writing("keep a process in") as execute:
            execute(
                "INSERT INTO flowos_processes (id, started, host, body)"
                " VALUES (:id, :started, :host, :body) ON CONFLICT (id) DO NOTHING",
                row,
            )

    def processes(self, limit: int | None = None, skip: int = 0) -> tuple[Process, ...]:
        """The stored processes, newest first: at most `limit` of them, without the first ones."""
        query = "SELECT body FROM flowos_processes ORDER BY started DESC, id DESC"
        return self._nouns(Process, *_part(query, limit, skip))

    def process(self, id_: str) -> Process | None:
        """The stored process with exactly this id."""
        query = "SELECT body FROM flowos_processes WHERE id = :id"
        return next(iter(self._nouns(Process, query, {"id": id_})), None)

    def keep_slice(self, record: SliceRecord) -> None:
        """Store the record of a slice that is over, or what became known of it later."""
        row = {
            "id": record.id,
            "process": record.process,
            "asked": record.asked,
            "body": _text(record),
        }
        with self._writing("keep a slice in") as execute:
            execute(
                "INSERT INTO flowos_slices (id, process, asked, body)"
                " VALUES (:id, :process, :asked, :body)"
                " ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                row,
            )

    def slices(
        self, limit: int | None = None, skip: int = 0, *, process: str | None = None
    ) -> tuple[SliceRecord, ...]:
        """The stored slices, newest first: at most `limit` of them, without the first ones.

        process: of this one alone.
        """
        where = "" if process is None else "WHERE process = :process"
        query = f"SELECT body FROM flowos_slices {where} ORDER BY asked DESC, id DESC"
        query, values = _part(query, limit, skip)
        return self._nouns(SliceRecord, query, {**values, "process": process})

    def keep_image(self, image: ImageRecord) -> ImageRecord:
        """Store the origin of an image unless its digest has one; return the stored origin."""
        with self._writing("keep where the image came from in") as execute:
            execute(
                "INSERT INTO flowos_image_origins (digest, body) VALUES (:digest, :body)"
                " ON CONFLICT (digest) DO NOTHING",
                {"digest": image.digest, "body": _text(image)},
            )
        return self.image(image.digest) or image

    def image(self, digest: str) -> ImageRecord | None:
        """The origin of the image of this digest; None if there is none."""
        query = "SELECT body FROM flowos_image_origins WHERE digest = :digest"
        return next(iter(self._nouns(ImageRecord, query, {"digest": digest})), None)

    def old_image_names(self) -> tuple[tuple[str, str], ...]:
        """(name, digest) pairs of schema 3, the newest last. Since then names are links."""
        rows = self._rows("SELECT name, digest FROM flowos_images ORDER BY number")
        return tuple((name, digest) for name, digest in rows)

    def forget_old_image_names(self) -> None:
        with self._writing("forget the old names of images in") as execute:
            execute("DELETE FROM flowos_images")

    def runs(self, limit: int | None = None, skip: int = 0) -> tuple[Run, ...]:
        """The stored runs, newest first: at most `limit` of them, without the first ones."""
        query = "SELECT id, body FROM flowos_runs ORDER BY number DESC"
        found = self._rows(*_part(query, limit, skip))
        return tuple(self._read(Run, body, id_) for id_, body in found)

    def sizes(self) -> tuple[int, int, int]:
        """Number of stored runs, processes and slices."""
        ((many_runs, many_processes, many_slices),) = self._rows(
            "SELECT (SELECT count(*) FROM flowos_runs), (SELECT count(*) FROM flowos_processes),"
            " (SELECT count(*) FROM flowos_slices)"
        )
        return many_runs, many_processes, many_slices

    def counts(self, ids: Sequence[str] | None = None) -> dict[str, int]:
        """Number of stored samples of each run, by its id. ids: of these runs alone."""
        names, values = _listed(ids or ())
        where = "" if ids is None else f"WHERE run IN ({names})"
        query = f"SELECT run, count(*) FROM flowos_samples {where} GROUP BY run"
        return dict(self._rows(query, values))

    def run(self, ref: str) -> Run:
        """A run by its id, a unique prefix of it, or 'last'.

        Raises StoreError if there is none, or if the prefix is ambiguous.
        """
        id_, body = self._named(ref, "id, body")
        return self._read(Run, body, id_)

    def head(self, ref: str) -> tuple[str, str]:
        """The id and the host of such a run, which may be one that cannot be read."""
        id_, host = self._named(ref, "id, host")
        return id_, host

    def _named(self, ref: str, columns: str) -> Row:
        last = ref == "last"
        where = "" if last else "WHERE substr(id, 1, :length) = :ref"
        query = f"SELECT {columns} FROM flowos_runs {where} ORDER BY number DESC"
        found = self._rows(*_part(query, 1 if last else None, 0, ref=ref, length=len(ref)))
        exact = [row for row in found if row[0] == ref]
        return self._only(exact or found, ref)

    def samples(self, run: Run | str) -> tuple[Sample, ...]:
        """The samples of a run (or of the run with exactly this id), in the order stored."""
        id_ = run.id if isinstance(run, Run) else run
        query = "SELECT body FROM flowos_samples WHERE run = :run ORDER BY number"
        return tuple(self._read(Sample, body, id_) for (body,) in self._rows(query, {"run": id_}))

    def _only(self, found: list[Row], ref: str) -> Row:
        if not found and ref == "last":
            raise UnknownRecord(
                f"no run is kept in {self.place} yet: measure first (flowos measure)"
            )
        if not ref or not found:
            raise UnknownRecord(f"no run {ref!r} in {self.place}: see them with 'flowos list'")
        if len(found) > 1:
            several = ", ".join(row[0] for row in found[:5])
            raise UnknownRecord(f"run {ref!r} fits {len(found)} runs ({several}): write more of it")
        return found[0]

    @property
    def _database(self) -> Database:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.place} was opened before this process was forked: open it anew"
            )
        return self._opened

    def _make_ready(self) -> None:
        with self._translated("open"):
            number = schema_number(self._database)
        check_not_newer(number, self.place)
        if number < NEWEST:
            with self._writing("make the tables of") as execute:
                self._database.lock_schema(execute)
                migrate(self._database, execute)

    def _translated(self, doing: str) -> AbstractContextManager[None]:
        return translated(doing, self.place, self._database.errors, self._database.secrets)

    def _rows(self, query: str, values: Values = NO_VALUES) -> list[Row]:
        with self._translated("read"):
            return self._database.rows(query, values)

    @contextmanager
    def _writing(self, doing: str) -> Iterator[Execute]:
        with self._translated(doing), self._database.writing() as execute:
            yield execute

    def _nouns(self, noun: type[T], query: str, values: Values) -> tuple[T, ...]:
        return tuple(self._read(noun, body) for (body,) in self._rows(query, values))

    def _read(self, noun: type[T], body: str, run: str = "") -> T:
        """run: the id of the run that it is or belongs to."""
        try:
            return from_plain(noun, json.loads(body))
        except (ValueError, RecursionError) as error:
            of = f"run {run}: " if run else ""
            remedy = f", or delete it with 'flowos rm {run}'" if run else ""
            raise StoreError(
                f"{self.place} holds what cannot be read: {of}{error}; if a newer FlowOS wrote it,"
                f" upgrade FlowOS{remedy}"
            ) from None


def _text(noun: object) -> str:
    return json.dumps(to_plain(noun), allow_nan=False, separators=(",", ":"))


def _part(query: str, limit: int | None, skip: int, **values: object) -> tuple[str, Values]:
    """Without the first rows, and at most `limit` of the others."""
    every = 2**63 - 1
    query += " LIMIT :limit OFFSET :skip"
    return query, {**values, "limit": every if limit is None else limit, "skip": skip}


def _listed(ids: Sequence[str]) -> tuple[str, Values]:
    """Names for the brackets of an IN, and their values; NULL is equal to nothing."""
    values = {f"id{at}": id_ for at, id_ in enumerate(ids)}
    return ", ".join(f":{name}" for name in values) or "NULL", values
