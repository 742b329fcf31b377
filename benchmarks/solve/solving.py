"""Solving large sparse systems, compared with other libraries.

`python benchmarks/solve.py [--json] [--only poisson-128,g3like] [--contestants petsc-icc,amgcl]
[--rounds N] [--quick] [--seed N] [--report FOLDER] [--g3-circuit FILE] [--folder DIR]`
Debian: g++ pkg-config openmpi-bin libopenmpi-dev libpetsc-real-dev libhypre-dev libeigen3-dev;
AMGCL's headers are unpacked from Debian's contrib, ilupp and PyAMG installed into a venv.

Turns of all contestants are interleaved, each in a process of its own, on all cores. Right-hand
sides and the circuit are generated from a seed, a new one for each run; each answer's residual is
computed by SciPy, and answers above 1e-7 are rejected. Times are from the matrix in memory to x in
memory (PETSc and hypre: from their own matrix). STREAM runs before each turn of ours. The others
have the best of the settings in contestants.py for each case, ours always its default.
Exit 1 when a claim of promises.py is missed.
"""

import argparse
import fcntl
import json
import os
import platform
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import charts
from _numbers import whole_number
from building import default_folder, say
from contestants import ALL
from equality import equality
from problems import problem
from promises import CASES, Case
from rounds import Table, fight, summary
from shown import table as in_words

QUICK_CELLS = 4
"""A quick run divides the sides of grids by this, and checks no claim."""
PARTS = (*(case.name for case in CASES), "equality")


def main() -> int:
    options = arguments()
    began = time.perf_counter()
    with alone_in(options.folder):
        report = benchmark(options)
    report["seconds"] = time.perf_counter() - began
    report["missed"] = list(missed(report))
    if options.report:
        for path in charts.write(report, options.report):
            say(f"written: {path}")
    print(json.dumps(report, indent=1) if options.json else in_words(report))
    return 1 if report["missed"] else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="solve.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    parser.add_argument(
        "--rounds", type=whole_number(), help="turns of all contestants (2 to 5 by case)"
    )
    parser.add_argument("--only", default="", help=f"parts, by commas: {', '.join(PARTS)}")
    parser.add_argument("--contestants", default="", help=f"by commas: {', '.join(ALL)}")
    parser.add_argument("--quick", action="store_true", help="small grids, 1 round")
    parser.add_argument("--g3-circuit", type=Path, help="the real one's .mtx, instead of g3like")
    parser.add_argument(
        "--seed", type=whole_number(0), default=secrets.randbits(32), help="drawn anew"
    )
    parser.add_argument("--folder", type=Path, default=default_folder(), help="kept things")
    parser.add_argument("--report", type=Path, help="folder for solve.html and solve.md")
    options = parser.parse_args()
    options.only = _chosen(parser, "part", options.only, PARTS)
    options.contestants = _chosen(parser, "contestant", options.contestants, tuple(ALL))
    return options


def _chosen(
    parser: argparse.ArgumentParser, what: str, words: str, known: tuple[str, ...]
) -> tuple[str, ...]:
    chosen = tuple(words.split(",")) if words else known
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        parser.error(f"no {what} {unknown[0]!r}; there are {', '.join(known)}")
    return chosen


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder: two runs would overwrite each other's vectors."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(
                f"solve: another run uses {folder}: wait for it, or name another with --folder"
            ) from None
        yield


def benchmark(options: argparse.Namespace) -> dict[str, Any]:
    here = Table(folder=options.folder, cores=len(os.sched_getaffinity(0)))
    report: dict[str, Any] = {
        "claim": "the fastest solver of its kind on CPUs, the same answer to the bit everywhere",
        "machine": {
            "processor": processor(),
            "cores": here.cores,
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "seed": options.seed,
        "table": [],
        "fought": [],
    }
    for case in CASES:
        if case.name in options.only:
            fought = fight_of(here, sized(case, options), options)
            report["fought"].append(fought)
            report["table"].append(summary(sized(case, options), fought))
    if "equality" in options.only:
        report["equality"] = equality(here, options.seed)
    return report


def fight_of(here: Table, case: Case, options: argparse.Namespace) -> dict[str, Any]:
    made = problem(case.matrix, options.seed, here.folder / "matrices")
    try:
        return fight(here, case, made, options.rounds or (1 if options.quick else case.rounds))
    finally:
        made.forget()


def sized(case: Case, options: argparse.Namespace) -> Case:
    """The case with the requested contestants, and smaller for --quick."""
    wanted = tuple(name for name in case.contestants if name in options.contestants)
    case = replace(case, contestants=wanted)
    if options.g3_circuit and case.matrix == "g3like":
        case = replace(case, matrix=f"file:{options.g3_circuit}", title="G3_circuit")
    if not options.quick:
        return case
    matrix = re.sub(r"\d+(?=x|$)", lambda side: str(int(side[0]) // QUICK_CELLS), case.matrix)
    return replace(
        case,
        title=f"{matrix}, to try the paths",
        matrix=matrix,
        faster=(),
        times_of_limit={},
        setup_seconds=None,
        memory_bytes=None,
    )


def processor() -> str:
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def missed(report: dict[str, Any]) -> Iterator[str]:
    for line in report["table"]:
        for verdict in line["verdicts"]:
            if verdict["holds"] is False:
                yield f"{line['case']}: {verdict['what']}"
        if "ours" in line["failed"]:
            yield f"{line['case']}: ours: {line['failed']['ours']}"
    if (equal := report.get("equality")) and not equal["holds"]:
        yield "equality"


if __name__ == "__main__":
    sys.exit(main())
