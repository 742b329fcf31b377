"""Our storage numbers beside fio called by hand, in turns A B B A: they agree within 5 %.

`python benchmarks/fio.py [--json] [--rounds N] [--folder DIR]`; needs Debian's package fio.
By hand means: a file written by fio, then one command per job with nothing but the job's own
options and fio's own total. It shows that our driver (its layout, its windows, its medians) does
not change what fio measures.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from flowos.model import Case, Exited, Outcome, Sample, Unmeasured, Verdict
from flowos.plan._compare import compare
from flowos.probes import fio
from flowos.probes.fio import Fio

MARGIN = 0.05
BYTES = 2 << 30
SECONDS = 1.5
PROGRAM = Path(fio.__file__).parent / "programs" / "fio_run.py"
JOBS = (
    ("bandwidth", "sequential read", "16", "read", 128 << 10),
    ("bandwidth", "sequential write", "16", "write", 128 << 10),
    ("iops", "random read", "1", "randread", 4 << 10),
    ("iops", "random read", "16", "randread", 4 << 10),
    ("iops", "random write", "16", "randwrite", 4 << 10),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    args = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("fio: fio is needed: apt install fio")
    samples = [
        sample
        for number in range(args.rounds)
        for program in ("ours", "by hand", "by hand", "ours")
        for sample in (ours if program == "ours" else by_hand)(args.folder, number)
    ]
    verdicts = compare(samples, axis="program", base="by hand", margin=MARGIN, looks=1)
    found = [told(samples, v) for v in verdicts]
    print(json.dumps({"claim": "within 5 % of fio by hand", "compared": found}, indent=1))
    return 0 if all(f["agrees"] for f in found) else 1


def ours(folder: Path, number: int) -> list[Sample]:
    words = ["--folder", str(folder), "--bytes", str(BYTES), "--seconds", str(SECONDS)]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words, "--engine", "libaio"],
        capture_output=True,
        check=False,
    )
    outcome = Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)
    readings = Fio().read(Case("fio"), outcome)
    if isinstance(readings, Unmeasured):
        sys.exit(f"fio: {readings.reason}")
    at = {(r.metric, *list(dict(r.levels).values())[:2]): median(r.values) for r in readings}
    return [
        sample("ours", number, metric, workload, depth, at[(metric, workload, depth)])
        for metric, workload, depth, _, _ in JOBS
    ]


def by_hand(folder: Path, number: int) -> list[Sample]:
    found = []
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        file = Path(inside) / "file"
        hand(file, "write", 1 << 20, "16", "--end_fsync=1")
        for metric, workload, depth, rw, block in JOBS:
            timed = ("--time_based", f"--runtime={int(SECONDS * 1000)}ms", "--ramp_time=300ms")
            job = hand(file, rw, block, depth, "--randrepeat=0", *timed)
            told = job["write" if "write" in rw else "read"]
            value = float(told["bw_bytes" if metric == "bandwidth" else "iops"])
            found.append(sample("by hand", number, metric, workload, depth, value))
    return found


def hand(file: Path, rw: str, block: int, depth: str, *more: str) -> dict[str, dict[str, float]]:
    words = ("--name=job", f"--filename={file}", f"--size={BYTES}", f"--rw={rw}", f"--bs={block}")
    way = ("--ioengine=libaio", "--direct=1", f"--iodepth={depth}", "--output-format=json")
    done = subprocess.run(["fio", *words, *way, *more], capture_output=True, check=True)
    job: dict[str, dict[str, float]] = json.loads(done.stdout)["jobs"][0]
    return job


def sample(
    program: str, number: int, metric: str, workload: str, depth: str, value: float
) -> Sample:
    levels = (("program", program), ("workload", workload), ("iodepth", depth))
    return Sample(
        run="benchmark",
        case=Case("fio", levels=levels),
        round=number,
        metric=metric,
        unit="byte/s" if metric == "bandwidth" else "1/s",
        values=(value,),
    )


def told(samples: list[Sample], verdict: Verdict) -> dict[str, object]:
    rest = set(verdict.rest)
    of_job = [s for s in samples if rest < set(s.case.levels)]
    return {
        **dict(verdict.rest),
        "metric": verdict.metric,
        "ratio": round(verdict.ratio, 4),
        "interval": [round(verdict.low, 4), round(verdict.high, 4)],
        "rounds": verdict.rounds,
        "agrees": abs(verdict.ratio - 1) <= MARGIN,
        "why": verdict.why,
        "medians": {
            name: median(s.values[0] for s in of_job if s.case.level("program") == name)
            for name in ("ours", "by hand")
        },
    }


if __name__ == "__main__":
    sys.exit(main())
