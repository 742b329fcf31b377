"""Cost of a task, compared with concurrent.futures, multiprocessing, joblib, Parsl, Ray and Dask.

`python benchmarks/engine.py [--json] [--rounds 3] [--seconds 1] [--only flowos,futures]`
for example `python benchmarks/engine.py --rounds 1 --only flowos`

Each engine runs alone, in a process of its own, once in every round. Cases:
two: add, then subtract, from values to result; wide: 1000 independent tasks; deep: a chain of 1000
tasks (FlowOS fuses them); loop: runs of one task, one after the other; map: 10,000 items through
one task, in chunks of 64 if the engine has chunks; hop: a chain of tasks, each sent to a worker by
itself; array: 100 MB written in one process and read in another. Results must be equal: their
checksums are compared. FlowOS checks every value against its port; a test on the timed slices shows
that it refuses wrong ones. Exit 1 when a claim is missed or results differ.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CASES = ("two", "wide", "deep", "loop", "map", "hop", "array")
NOT_HERE = 77
PROGRAM = Path(__file__).with_name("_contestants.py")

CLAIMS = (
    ("flowos inline", "wide", 1e-6),
    ("flowos inline", "deep", 1e-6),
    ("flowos threads", "wide", 2e-6),
    ("flowos threads", "deep", 2e-6),
    ("flowos processes", "hop", 25e-6),
    ("flowos processes", "deep", 1.5e-6),
    ("flowos processes", "array", 20e-3),
)
MAX_PSS_BYTES = 65_000_000
MAX_SECONDS = 300
"""Time limit of a contestant: Ray can hang."""

Answer = dict[str, Any]


def main() -> int:
    options = arguments()
    listed = json.loads(contestant().stdout)
    names = [n for n in listed if any(n.startswith(w) for w in options.only.split(","))]
    answers: dict[str, list[Answer]] = {name: [] for name in names}
    skipped: dict[str, str] = {}
    for turn in range(options.rounds):
        for name in names:
            if name not in skipped:
                print(f"turn {turn + 1} of {options.rounds}: {name}", file=sys.stderr)
                contest(name, options.seconds, answers[name], skipped)
    report = summary({n: a for n, a in answers.items() if a}, skipped, options.rounds)
    print(json.dumps(report, indent=1) if options.json else table(report))
    return 1 if report["missed"] else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    parser.add_argument("--rounds", type=int, default=3, help="turns of all engines (3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case in a turn (1)")
    parser.add_argument("--only", default="", help="engines whose names begin so, by commas")
    return parser.parse_args()


def contestant(*words: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, str(PROGRAM), *words]
    try:
        return subprocess.run(
            line, capture_output=True, text=True, check=False, timeout=MAX_SECONDS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(line, 1, "", f"not done in {MAX_SECONDS} s")


def contest(name: str, seconds: float, answers: list[Answer], skipped: dict[str, str]) -> None:
    done = contestant(name, str(seconds))
    if done.returncode == NOT_HERE:
        skipped[name] = done.stderr.strip().splitlines()[-1]
    elif done.returncode != 0 and name.startswith("flowos"):
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    elif done.returncode != 0:  # the other engines are still measured
        skipped[name] = f"it failed: {done.stderr.strip().splitlines()[-1]}"
    else:
        answers.append(json.loads(done.stdout.splitlines()[-1]))


def summary(
    answers: Mapping[str, list[Answer]], skipped: Mapping[str, str], rounds: int
) -> dict[str, Any]:
    engines = {name: of_engine(turns) for name, turns in answers.items()}
    return {
        "machine": {
            "cpus": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "rounds": rounds,
        "engines": engines,
        "skipped": dict(skipped),
        "missed": [*missed(engines), *different(engines)],
    }


def of_engine(turns: list[Answer]) -> dict[str, Any]:
    return {
        "start_seconds": statistics.median(t["start_seconds"] for t in turns),
        "pss_bytes": max(t["pss_bytes"] for t in turns),
        "processes": turns[0]["processes"],
        "wrong_values_refused": turns[0]["refused"],
        "cases": {
            case: of_case([t["cases"][case] for t in turns], turns[0]["cases"][case]["tasks"])
            for case in turns[0]["cases"]
        },
    }


def of_case(turns: list[Answer], tasks: int) -> dict[str, Any]:
    """Seconds per task: over all repetitions, and the median of each turn as the spread."""
    every = sorted(s / tasks for turn in turns for s in turn["seconds"])
    return {
        "median_seconds": statistics.median(every),
        "p99_seconds": every[min(len(every) - 1, int(0.99 * len(every)))],
        "min_seconds": every[0],
        "median_of_turns": [statistics.median(t["seconds"]) / tasks for t in turns],
        "repetitions": len(every),
        "checksums": sorted({t["checksum"] for t in turns}),
    }


def missed(engines: Mapping[str, Any]) -> Iterable[str]:
    for name, case, most in CLAIMS:
        if name in engines:
            found = engines[name]["cases"][case]["median_seconds"]
            if found > most:
                yield f"{name}, {case}: {found * 1e6:.2f} us, claimed {most * 1e6:g} us"
    if "flowos processes" in engines:
        found = engines["flowos processes"]["pss_bytes"]
        if found > MAX_PSS_BYTES:
            yield f"flowos processes: {found / 1e6:.1f} MB, claimed {MAX_PSS_BYTES / 1e6:g} MB"


def different(engines: Mapping[str, Any]) -> Iterable[str]:
    for case in CASES:
        sums = {s for e in engines.values() for s in e["cases"].get(case, {}).get("checksums", [])}
        if len(sums) > 1:
            yield f"{case}: the results differ, checksums {', '.join(sorted(sums))}"


def table(report: Mapping[str, Any]) -> str:
    lines = [
        f"{report['machine']}",
        "medians in us: a run of two tasks, else per task; array in ms",
    ]
    heads = [*CASES, "PSS MB", "processes", "start s"]
    lines.append(f"{'':18}" + "".join(f"{h:>11}" for h in heads))
    for name, engine in report["engines"].items():
        cells = [cell(engine["cases"].get(case), case) for case in CASES]
        cells.append(f"{engine['pss_bytes'] / 1e6:.1f}")
        cells.append(str(engine["processes"]))
        cells.append(f"{engine['start_seconds']:.2f}")
        lines.append(f"{name:18}" + "".join(f"{c:>11}" for c in cells))
    lines += [f"skipped {name}: {why}" for name, why in report["skipped"].items()]
    lines += [f"MISSED {what}" for what in report["missed"]]
    return "\n".join(lines)


def cell(found: Mapping[str, Any] | None, case: str) -> str:
    if found is None:
        return "-"
    return f"{found['median_seconds'] * (1e3 if case == 'array' else 1e6):.2f}"


if __name__ == "__main__":
    sys.exit(main())
