"""Our storage numbers against fio run directly, interleaved A B B A: they agree within 5 %.

`python benchmarks/fio.py [--json] [--rounds N] [--folder DIR]`; needs Debian's package fio.
Directly means: one command per job with only the job's own options, and fio's own total. Both use
the same file, as two files have different positions on a disk. It shows that our windows and
medians do not change fio's result. Takes about two minutes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from _agreement import row_of
from _numbers import whole_number

from flowos.model import Case, Exited, MeasurementRequest, Outcome, Sample, Unmeasured
from flowos.operations._facts import facts
from flowos.plan._compare import compare
from flowos.probes._fio_job import PATTERNS, SETTINGS
from flowos.probes.fio import Fio

MARGIN = 0.05
SETTING = SETTINGS["normal"]
PROBE = Fio()
JOBS = (
    ("sequential read", "16"),
    ("sequential write", "16"),
    ("random read", "1"),
    ("random read", "16"),
    ("random write", "16"),
)
Measure = Callable[[Case, Path], float]
"""A case and the file's folder -> byte/s or 1/s."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=6)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    args = parser.parse_args()
    cases = jobs(args.folder)
    measure: dict[str, Measure] = {"ours": ours, "by hand": by_hand}
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        ours(cases[0], folder)  # writes the file
        samples = [
            sample(who, number, case, measure[who](case, folder))
            for number in range(args.rounds)
            for case in cases
            for who in ("ours", "by hand", "by hand", "ours")
        ]
    verdicts = compare(samples, axis="program", base="by hand", margin=MARGIN, looks=1)
    found = [row_of(samples, v, ("ours", "by hand"), MARGIN) for v in verdicts]
    print(json.dumps({"claim": "within 5 % of fio by hand", "compared": found}, indent=1))
    return 0 if all(f["agrees"] for f in found) else 1


def jobs(folder: Path) -> list[Case]:
    request = MeasurementRequest(scratch=folder)
    found = PROBE.cases(facts(request), request)
    if isinstance(found, Unmeasured):
        sys.exit(f"fio: {found.reason}: {found.remedy}")
    at = {(case.level("workload"), case.level("iodepth")): case for case in found}
    return [at[job] for job in JOBS]


def ours(case: Case, folder: Path) -> float:
    words = [word.replace("{scratch}", str(folder)) for word in PROBE.program(case).argv]
    done = subprocess.run(words, capture_output=True, check=False)
    outcome = Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)
    readings = PROBE.read(case, outcome)
    if isinstance(readings, Unmeasured):
        sys.exit(f"fio: {readings.reason}")
    return median(readings[0].values)


def by_hand(case: Case, folder: Path) -> float:
    rw, block_bytes = PATTERNS[case.level("workload")]
    options = {
        "name": "job",
        "filename": folder / "flowos-data",
        "size": case.detail("file_bytes"),
        "ioengine": case.level("engine"),
        "direct": int(case.level("direct") == "yes"),
        "iodepth": case.level("iodepth"),
        "rw": rw,
        "bs": block_bytes,
        "randrepeat": 0,
        "runtime": f"{1000 * SETTING.seconds:.0f}ms",
        "ramp_time": f"{1000 * SETTING.ramp_seconds:.0f}ms",
        "output-format": "json",
    }
    words = (f"--{name}={value}" for name, value in options.items())
    done = subprocess.run(
        [case.detail("fio"), *words, "--time_based"], capture_output=True, check=True
    )
    row_of = json.loads(done.stdout)["jobs"][0]["write" if "write" in rw else "read"]
    return float(row_of["bw_bytes" if rw in ("read", "write") else "iops"])


def sample(program: str, number: int, case: Case, value: float) -> Sample:
    sequential = case.level("workload").startswith("sequential")
    return Sample(
        run="benchmark",
        case=Case("fio", levels=(("program", program), *case.levels)),
        round=number,
        metric="bandwidth" if sequential else "iops",
        unit="byte/s" if sequential else "1/s",
        values=(value,),
    )


if __name__ == "__main__":
    sys.exit(main())
