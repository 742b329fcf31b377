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

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from _contests import Contest, arguments, different, machine

CASES = ("two", "wide", "deep", "loop", "map", "hop", "array")
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


def main() -> int:
    options = arguments(__doc__, "engines", seconds=1.0)
    contest = Contest(PROGRAM)
    contest.hold(options.only.split(","), options.rounds, options.seconds)
    engines = contest.engines()
    report = {
        "machine": machine(),
        "rounds": options.rounds,
        "engines": engines,
        "skipped": contest.skipped,
        "missed": [*missed(engines), *different(engines, CASES)],
    }
    print(json.dumps(report, indent=1) if options.json else table(report))
    return 1 if report["missed"] else 0


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
