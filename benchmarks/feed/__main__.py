"""Training data from remote storage and from this node, compared with other loaders.

`python benchmarks/feed.py [--json] [--only far-1ms,local-warm] [--peers torch,spdl]
[--rounds N] [--quick] [--kib 41|110] [--folder DIR] [--sweep] [--install] [--resume]
[--report FOLDER [--from FILE]]`
Debian: g++ libjpeg62-turbo-dev fuse3 iproute2. Pillow makes the pictures.

Remote storage is a folder behind a modelled round trip and one shared link (slowfs.cpp), and an S3
server behind a shaped link (s3server.cpp). The time for 1,000 minibatches of 32 includes creating a
contestant's objects. Each contestant runs alone, in a process and a venv of its own, with the best
settings of a sweep; its samples are checked against the data set's checksums. Turns of all are
interleaved. The limit is the link's rate, or the time of limit.cpp. Data, peers and settings are
created once and kept in --folder, outside of the repository. Results are saved there as they come:
--resume continues a run that was stopped. --from FILE prints the results of an earlier run with
--json. Exit 1 when a claim is missed.
"""

import argparse
import atexit
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _numbers import whole_number
from cases import CASES, PYTHON_SECONDS_PER_BATCH, Case
from contest import Settings, fight, sized, summary
from entrants import Table, entrants, run_limit
from journal import Journal, code_of
from known_index import KnownIndex
from paper_cases import copies, first_listing, in_flight, ten_epochs
from peers import LEFT_OUT, PEERS
from pictures import KINDS, data_set
from places import HERE, NotHere, default_folder, say
from sharing import half_cache, shared
from stores import far_files, warm
from text_table import table as in_words
from turns import TurnFailed

OTHER_PARTS = ("python", "listing", "sharing", "half", "paper")
PARTS = ("store", *(case.name for case in CASES), *OTHER_PARTS)
COUNT, QUICK_COUNT = 20_000, 2_000
CHECKED_LINKS = ((1.0, 1000.0), (1.0, 200.0), (5.0, 1000.0))
CHECKED_READERS = (1, 32)
CHECK_SECONDS = 2.0


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is cleaned up
    try:
        report = (
            json.loads(options.report_file.read_text())
            if options.report_file
            else benchmark(options)
        )
    except (NotHere, OSError, ValueError) as reason:
        sys.exit(f"feed: {reason}")
    report["missed"] = list(missed(report))
    if options.report:
        import plots

        for path in plots.write(report, options.report):
            say(f"written: {path}")
    print(json.dumps(report, indent=1) if options.json else in_words(report))
    return 1 if report["missed"] else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="feed.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    parser.add_argument(
        "--rounds", type=whole_number(), help="turns of all contestants (2 to 5 by case)"
    )
    parser.add_argument("--only", default="", help=f"parts, by commas: {', '.join(PARTS)}")
    names = ", ".join(peer.name for peer in PEERS)
    parser.add_argument("--peers", default="", help=f"by commas; none: all of {names}")
    parser.add_argument("--quick", action="store_true", help="2,000 files, 1 round, 100 batches")
    parser.add_argument("--sweep", action="store_true", help="sweep the peers' settings anew")
    parser.add_argument("--install", action="store_true", help="try refused peers again")
    parser.add_argument("--kib", choices=KINDS, default="41", help="mean size of a file (41)")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="kept things")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--report", type=Path, help="folder for feed.html, feed.md, figures.md")
    parser.add_argument(
        "--from", type=Path, dest="report_file", help="no run: what --json said of one"
    )
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else PARTS
    unknown = sorted(set(options.only) - set(PARTS))
    if unknown:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    options.peers = [] if not options.peers else options.peers.split(",")
    unknown = sorted(set(options.peers) - {peer.name for peer in PEERS})
    if unknown:
        parser.error(f"no peer {unknown[0]!r}; there are {names}")
    return options


def benchmark(options: argparse.Namespace) -> dict[str, Any]:
    began = time.time()
    options.folder.mkdir(parents=True, exist_ok=True)
    data = data_set(options.kib, QUICK_COUNT if options.quick else COUNT, options.folder)
    found, missing, conversions = entrants(data, options.folder, options.peers, options.install)
    index = KnownIndex(options.folder)
    atexit.register(index.forget)
    quick = "-quick" if options.quick else ""
    journal = journal_of(options, Path(data.folder).name)
    table = Table(
        data=data,
        folder=options.folder,
        entrants=found,
        index=index,
        journal=journal,
        quick=options.quick,
    )
    kept = options.folder / f"settings{quick}.json"
    settings = Settings(kept, Path(data.folder).name, options.sweep)
    report: dict[str, Any] = {
        "claim": "training data at the speed of the link, then of the local disk",
        "began": began,
        "machine": machine(),
        "data": {"count": data.count, "bytes": data.bytes, "checksum": data.checksum},
        "conversion_seconds": journal.once("conversions", lambda: conversions),
        "missing": {**LEFT_OUT, **missing},
        "fought": [],
        "table": [],
    }
    if "store" in options.only:
        report["store_check"] = journal.once("store", lambda: list(store_check(table)))
    for case in CASES:
        if case.name in options.only:
            fought = fight(table, sized(case, table), rounds_of(case, options), settings)
            report["fought"].append(fought)
            report["table"].append(summary(sized(case, table), fought))
    for part, name, run in others(table, settings, options):
        if part in options.only:
            try:
                report[name] = journal.once(name, run)
            except (TurnFailed, NotHere) as reason:
                report["missing"][name] = str(reason)
    report["seconds"] = time.time() - began
    journal.end()
    return report


def machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def journal_of(options: argparse.Namespace, data: str) -> Journal:
    """The journal of this code and these contestants; results of others are not reused."""
    native = find_spec("flowos._native")
    folders = {
        Path(one.origin).parent for one in (find_spec("flowos"), native) if one and one.origin
    }
    words = [code_of(*sorted(folders)), *map(str, (options.quick, options.rounds, options.peers))]
    return Journal(options.folder / f"run-{data}.jsonl", " ".join(words), options.resume)


def others(
    table: Table, settings: Settings, options: argparse.Namespace
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    yield "python", "python_cost", lambda: python_cost(table)
    yield "listing", "first_listing", lambda: first_listing(table)
    yield "sharing", "shared", lambda: shared(table, kill=False)
    yield "sharing", "shared_killed", lambda: shared(table, kill=True)
    yield "half", "half_cache", lambda: half_cache(table)
    yield "paper", "figure_6", lambda: in_flight(table)
    yield "paper", "table_3", lambda: copies(table, options.rounds or (1 if table.quick else 3))
    yield "paper", "figure_8", lambda: ten_epochs(table, settings)


def python_cost(table: Table) -> dict[str, Any]:
    """CPU time of Python for a batch that is ready; see python_cost.py."""
    warm(table.data.files)
    words = [sys.executable, str(HERE / "python_cost.py"), str(table.data.files)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotHere(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout)
    most = PYTHON_SECONDS_PER_BATCH
    return {**found, "most": most, "holds": found["seconds_per_batch"] <= most}


def rounds_of(case: Case, options: argparse.Namespace) -> int:
    return options.rounds or (1 if options.quick else case.rounds)


def store_check(table: Table) -> Iterator[dict[str, float]]:
    """Remote storage measured by itself: the rate of so many readers on its link."""
    warm(table.data.files)
    mean = table.data.bytes / table.data.count
    for round_trip_ms, mbit in CHECKED_LINKS:
        for readers in CHECKED_READERS:
            rate = mbit * 1e6 / 8
            alone = mean / (2e-3 * round_trip_ms + mean / rate)
            batches = max(1, int(CHECK_SECONDS * min(rate, readers * alone) / (32 * mean)))
            with far_files(table.data, table.folder, round_trip_ms, mbit) as far:
                found = run_limit(table, "read", readers, batches, far.root)
                counts = far.server.counts() if far.server else {}
            yield {
                "round_trip_ms": round_trip_ms,
                "mbit": mbit,
                "readers": readers,
                "bytes_per_second": found["bytes"] / found["seconds"],
                "share_of_link": found["bytes"] / found["seconds"] / rate,
                "round_trips_per_file": (counts["requests"] + counts["reads"]) / (32 * batches),
                "counted_over_read": counts["bytes"] / found["bytes"],
            }


def missed(report: dict[str, Any]) -> Iterator[str]:
    for line in report["table"]:
        for what in ("holds", "first_batch_holds"):
            if not line.get(what, True):
                yield f"{line['case']}: {what.replace('_', ' ')} not"
        if "ratio" not in line:
            why = line["failed"].get("ours", report["missing"].get("ours", "it took no part"))
            yield f"{line['case']}: ours: {why}"
    for name in ("python_cost", "shared", "shared_killed", "half_cache"):
        if not report.get(name, {}).get("holds", True):
            yield name


if __name__ == "__main__":
    sys.exit(main())
