"""One cache for several processes, one of which is killed, and a cache smaller than the data set.

Bytes from the source are counted by the source, not by FlowOS.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from entrants import BATCH_SIZE, Table
from job import Job
from peers import BY_ITSELF, OURS, python_of
from pictures import DataSet
from places import say
from stores import Source, far_files, warm
from turns import Turn, taken

PROCESSES = 4
ROUND_TRIP_MS, MBIT = 1.0, 1000.0
KILLED_AFTER_SHARE = 0.3
MAX_IN_FLIGHT = 256
MIN_HIT_RATIO = 0.49
EPOCHS = 4
PAGE_BYTES = 4096
LITTLE_MEMORY = "8000000"
"""Limits what is read ahead of the epoch after the last, which would be counted."""


def shared(table: Table, kill: bool) -> dict[str, Any]:
    """Processes that each read all of the data in an order of their own, with one cache.

    kill: one of them is killed (SIGKILL) midway; its reads in flight may be repeated.
    """
    say(f"sharing: {PROCESSES} processes, one cache{', one of them killed' if kill else ''}")
    batches = -(-table.data.count // BATCH_SIZE)
    with far_and_cache(table) as (source, cache):
        jobs = [ours(table, source, cache, batches, seed) for seed in range(PROCESSES)]
        python = python_of(OURS, table.folder)
        began = time.perf_counter()
        turns = [Turn(python, job, source.variables) for job in jobs]
        try:
            if kill:
                wait_for_bytes(source, KILLED_AFTER_SHARE * table.data.bytes)
                turns.pop().kill()
            answers = [turn.answer() for turn in turns]
        finally:
            for turn in turns:
                turn.end()
        seconds = time.perf_counter() - began
        sent = source.bytes_sent() or 0
    wrong = sum(answer["checks"]["unknown"] for answer in answers)
    incomplete = sum(a["checks"]["checksum"] != table.data.checksum for a in answers)
    in_flight = MAX_IN_FLIGHT * table.data.bytes / table.data.count if kill else 0.0
    ratio = sent / table.data.bytes
    return {
        "killed": int(kill),
        "processes": PROCESSES,
        "seconds": seconds,
        "source_bytes_over_data": ratio,
        "most": 1.0 + in_flight / table.data.bytes,
        "wrong_samples": wrong,
        "holds": sent <= table.data.bytes + in_flight and wrong == 0 and incomplete == 0,
    }


def ours(table: Table, source: Source, cache: str, batches: int, seed: int, **options: str) -> Job:
    return Job(
        loader=OURS.name,
        root=f"{source.root}/files",
        listed=str(table.data.listed),
        workers=BY_ITSELF,
        options=options,
        batches=batches,
        batch_size=BATCH_SIZE,
        cache=cache,
        seed=seed,
        check=True,
    )


def wait_for_bytes(source: Source, wanted: float) -> None:
    while (source.bytes_sent() or 0) < wanted:
        time.sleep(0.01)


@contextmanager
def far_and_cache(table: Table, mbit: float = MBIT) -> Iterator[tuple[Source, str]]:
    warm(table.data.files)
    cache = tempfile.mkdtemp(prefix="cache-", dir=table.folder)
    try:
        with far_files(table.data, table.folder, ROUND_TRIP_MS, mbit) as source:
            yield source, cache
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def slots_bytes(data: DataSet) -> int:
    """Size of all samples in the cache, where each starts at a page."""
    lines = data.listed.read_text().splitlines()
    sizes = (int(line.split("\t")[1]) for line in lines)
    return sum(-(-size // PAGE_BYTES) * PAGE_BYTES for size in sizes)


def half_cache(table: Table) -> dict[str, Any]:
    """Epochs with a cache for half of the samples; hits are computed from the source's bytes."""
    say("a cache of half of the data set")
    per_epoch = -(-table.data.count // BATCH_SIZE)
    with far_and_cache(table, mbit=10_000) as (source, cache):
        half = str(slots_bytes(table.data) // 2)
        few = {"cache_bytes": half, "memory_bytes": LITTLE_MEMORY}
        job = ours(table, source, cache, EPOCHS * per_epoch, 1, **few)
        answer = taken(python_of(OURS, table.folder), job, source.variables)
        sent = source.bytes_sent() or 0
    later = (sent - table.data.bytes) / ((EPOCHS - 1) * table.data.bytes)
    by_epoch = answer["more"]["epochs"]
    return {
        "hit_ratio": 1 - later,
        "hit_ratio_as_we_say": [
            1 - (after["source_samples"] - before["source_samples"]) / table.data.count
            for before, after in pairwise(by_epoch)
        ],
        "least": MIN_HIT_RATIO,
        "holds": 1 - later >= MIN_HIT_RATIO and answer["checks"]["unknown"] == 0,
    }
