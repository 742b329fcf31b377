"""Other measurements of the paper (paper.py) than 1,000 minibatches, repeated here.

Figure 6: time over reads in flight. Table 3: all files copied, 8 at once. Figures 7 and 8, for one
node and without the training: ten epochs, from remote storage, or copied first.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cases import CASES, Case, named
from contest import Settings
from entrants import BATCH_SIZE, Entrant, Setting, Table, first_seconds, steady, turn
from peers import BY_ITSELF, OURS
from places import say
from sharing import far_and_cache

IN_FLIGHT = (1, 2, 4, 8, 12, 16, 32, 64)
SECONDS_PER_POINT = 4.0
COPIES = 8
EPOCHS = 10


def far_case() -> Case:
    return named("far-1ms")


def first_listing(table: Table) -> dict[str, float]:
    """Seconds to the first batch of a folder that was never listed."""
    say("the first listing")
    ours = next(entrant for entrant in table.entrants if entrant.contestant is OURS)
    found = {}
    for case in CASES:
        if case.stages and case.store == "far":
            turned = turn(table, case, ours, Setting(workers=BY_ITSELF), listing=True, batches=1)
            found[case.name] = first_seconds(turned)
    return found


def in_flight(table: Table) -> list[dict[str, Any]]:
    """Figure 6: ours by number of concurrent reads of the source, each sample once, scaled."""
    say("figure 6: reads in flight")
    ours = next(entrant for entrant in table.entrants if entrant.contestant is OURS)
    case = far_case()
    once = table.data.count // BATCH_SIZE
    points = []
    for count in IN_FLIGHT:
        setting = Setting(workers=count)
        found = turn(table, case, ours, setting, seconds=SECONDS_PER_POINT, batches=once)
        points.append({"in_flight": count, "seconds": steady(found) * case.batches})
    return points


def copies(table: Table, rounds: int) -> dict[str, Any]:
    """Table 3: `cp` per folder, 8 at once, and ours, from remote storage to an empty folder."""
    say("table 3: the whole data set copied")
    ways = {"cp, 8 at once": _copied_by_cp, "flowos feed warm": _copied_by_ours}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, copy in ways.items():
            with far_and_cache(table) as (source, folder):
                began = time.perf_counter()
                copy(f"{source.root}/files", folder)
                taken[way].append(time.perf_counter() - began)
    limit = table.data.bytes / (far_case().mbit * 1e6 / 8)
    return {
        "limit_seconds": limit,
        "seconds": {way: statistics.median(found) for way, found in taken.items()},
        "files_per_second": {
            way: table.data.count / statistics.median(found) for way, found in taken.items()
        },
    }


def _copied_by_cp(files: str, target: str) -> None:
    folders = "\0".join(str(path) for path in sorted(Path(files).iterdir()))
    words = ["xargs", "-0", "-n", "1", "-P", str(COPIES), "cp", "-r", "-t", target]
    subprocess.run(words, input=folders, text=True, check=True)


def _copied_by_ours(files: str, target: str) -> None:
    words = [sys.executable, "-m", "flowos", "feed", "warm", files, "--cache", f"{target}/cache"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ten_epochs(table: Table, settings: Settings) -> dict[str, float]:
    """Figure 8's comparison on one node: seconds for ten epochs of batches, without computing."""
    say("figures 7 and 8: ten epochs")
    far = far_case()
    per_epoch = -(-table.data.count // BATCH_SIZE)
    by_name = {entrant.name: entrant for entrant in table.entrants}
    found = {}
    all_of_it: dict[str, Any] = {"batches": EPOCHS * per_epoch}
    ours = turn(table, far, by_name["ours"], Setting(workers=BY_ITSELF), **all_of_it)
    found["FlowOS, empty cache"] = float(ours["seconds"])
    if "torch" in by_name:
        torch = by_name["torch"]
        one = turn(table, far, torch, settings.best(table, far, torch), batches=per_epoch)
        found["DataLoader from far storage"] = EPOCHS * float(one["seconds"])
        found["DataLoader after a copy"] = _after_copy(table, settings, torch, all_of_it)
    return found


def _after_copy(table: Table, settings: Settings, torch: Entrant, changes: dict[str, Any]) -> float:
    local = named("local-warm")
    with far_and_cache(table) as (source, folder):
        began = time.perf_counter()
        _copied_by_cp(f"{source.root}/files", folder)
        copied = time.perf_counter() - began
    setting = settings.best(table, local, torch)
    return copied + float(turn(table, local, torch, setting, **changes)["seconds"])
