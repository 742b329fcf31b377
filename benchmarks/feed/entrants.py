"""The contestants of a case, the storage that each reads from, and one turn of each."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cases import Case
from job import Job
from journal import Journal
from known_index import KnownIndex
from peers import OURS, PEERS, Contestant, Options, converted, python_of
from pictures import DataSet
from places import NotHere, program
from stores import Source, cool, far_files, far_objects, here, link_rate, warm
from turns import taken

BATCH_SIZE = 32
COLD_THREADS, DECODE_THREADS = 32, 2


@dataclass(frozen=True, kw_only=True)
class Setting:
    workers: int
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A contestant that can run here, and the folder of its form of the data set."""

    contestant: Contestant
    python: Path
    form: Path

    @property
    def name(self) -> str:
        return self.contestant.name


@dataclass(frozen=True, kw_only=True)
class Table:
    """The state of a run of the benchmark."""

    data: DataSet
    folder: Path
    entrants: Sequence[Entrant]
    index: KnownIndex
    journal: Journal
    quick: bool = False


def entrants(data: DataSet, folder: Path, names: Sequence[str], retry: bool) -> Any:
    """Contestants that can run, those that cannot with the reason, and seconds of conversions."""
    found: list[Entrant] = []
    missing: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for contestant in (OURS, *PEERS):
        if names and contestant.name not in names and contestant is not OURS:
            continue
        try:
            python = python_of(contestant, folder, retry)
            form, took = data.files, None
            if contestant.form != "files":
                form, took = converted(contestant, data, python)
        except NotHere as reason:
            missing[contestant.name] = str(reason)
            continue
        if took is not None:
            seconds[contestant.name] = took
        found.append(Entrant(contestant=contestant, python=python, form=form))
    return found, missing, seconds


def taking_part(table: Table, case: Case) -> list[Entrant]:
    def joins(contestant: Contestant) -> bool:
        asked = not case.only or contestant.name in ("ours", *case.only)
        able = contestant.decoded if case.decoded else contestant.raw
        return asked and bool(able) and case.store in contestant.stores

    return [entrant for entrant in table.entrants if joins(entrant.contestant)]


@contextmanager
def source_of(table: Table, case: Case) -> Iterator[Source]:
    """New storage for each turn, so that no contestant profits from another's reads."""
    if case.store == "far":
        warm(table.data.files)
        far = (case.round_trip_ms, case.mbit, case.keeps_pages)
        with far_files(table.data, table.folder, *far) as source:
            yield source
    elif case.store == "s3":
        with far_objects(table.data, table.folder, case.round_trip_ms, case.mbit) as source:
            yield source
    else:
        with here(table.data) as source:
            yield source


def job_of(
    table: Table, case: Case, entrant: Entrant, setting: Setting, source: Source, cache: str
) -> Job:
    contestant = entrant.contestant
    batches = case.batches
    if case.scaled_from and not keeps(case, contestant):
        batches = min(batches, case.scaled_from)
    return Job(
        loader=contestant.name,
        root=f"{source.root}/{entrant.form.name}",
        listed=str(table.data.listed),
        decoded=case.decoded,
        workers=setting.workers,
        options=dict(setting.options),
        batches=batches,
        batch_size=BATCH_SIZE,
        cache=cache,
    )


def keeps(case: Case, contestant: Contestant) -> bool:
    """Does its rate change during the case, as it caches samples? Ours is never scaled."""
    return contestant is OURS or (contestant.stages and case.store != "local")


def turn(
    table: Table,
    case: Case,
    entrant: Entrant,
    setting: Setting,
    *,
    listing: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """One turn of an entrant alone, with the case's storage.

    listing: ours must list the folder first. changes: of the Job. Raises TurnFailed.
    """
    with ExitStack() as stack:
        source = stack.enter_context(source_of(table, case))
        cache = ""
        if keeps(case, entrant.contestant) and (case.stages or entrant.contestant is not OURS):
            cache = tempfile.mkdtemp(prefix="cache-", dir=table.folder)
            stack.callback(shutil.rmtree, cache, ignore_errors=True)
        if case.cold:
            cool(Path(table.data.folder))
        elif case.store == "local":
            warm(entrant.form)
        job = replace(job_of(table, case, entrant, setting, source, cache), **changes)
        if cache and entrant.contestant is OURS and not listing:
            table.index.fill(cache, entrant.python, job, source.variables)
        before = source.bytes_sent()
        found = taken(entrant.python, job, source.variables)
        after = source.bytes_sent()
        found["source_bytes"] = None if before is None or after is None else after - before
    return found


def thousand(case: Case, found: Mapping[str, Any]) -> float:
    """Seconds for all batches of the case; scaled by the steady rate if fewer were measured."""
    if found["batches"] >= case.batches:
        return float(found["seconds"])
    return float(first_seconds(found) + steady(found) * (case.batches - 1))


def first_seconds(found: Mapping[str, Any]) -> float:
    return float(found["marks"][0][1])


def steady(found: Mapping[str, Any]) -> float:
    """Seconds per batch, without the first."""
    return float((found["seconds"] - first_seconds(found)) / max(1, found["batches"] - 1))


def limit_seconds(table: Table, case: Case) -> float:
    """The lower bound of the case's time, measured now if it is a measured one."""
    if case.limit == "link once":
        return bytes_needed(table, case) / (case.mbit * 1e6 / 8)
    if case.limit == "link measured":
        with source_of(table, case) as source:
            return bytes_needed(table, case) / link_rate(source)
    if case.cold:
        cool(Path(table.data.folder))
    else:
        warm(table.data.files)
    what = "decode" if case.limit == "decode" else "read"
    threads = COLD_THREADS if case.limit == "pread" else DECODE_THREADS
    return float(run_limit(table, what, threads, case.batches)["seconds"])


def bytes_needed(table: Table, case: Case) -> float:
    """Bytes of each sample once, or of the batches if they contain fewer."""
    samples = min(case.batches * BATCH_SIZE, table.data.count)
    return table.data.bytes * samples / table.data.count


def run_limit(
    table: Table, what: str, threads: int, batches: int, root: str = ""
) -> dict[str, float]:
    """The result of limit.cpp. Raises NotHere if it cannot be compiled."""
    files = f"{root}/files" if root else str(table.data.files)
    options = ("--threads", str(threads), "--batches", str(batches))
    words = [str(program("limit", table.folder)), *options, what, files, str(table.data.listed)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotHere(done.stderr.strip().splitlines()[-1])
    found: dict[str, float] = json.loads(done.stdout)
    return found
