"""Our metadata and parallel_io against mdtest and IOR, interleaved A B B A: they agree within 5 %.

`python benchmarks/parallel_files.py [--json] [--rounds N] [--folder DIR] [--bin DIR]`. IOR and
mdtest are built by `git clone https://github.com/hpc/ior && cd ior && ./bootstrap && ./configure
&& make`; --bin is their folder (ior/src), unless they are on the PATH. Both sides have the same
processes, items, bytes and transfers, three repetitions, of which the median counts, so that an
interruption of one does not, and no stonewall. Takes some minutes on a disk, and fewer with
--folder /dev/shm, where no device makes it noisy.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

from _agreement import row_of
from _numbers import whole_number

from flowos.model import (
    Case,
    Exited,
    Facts,
    MeasurementRequest,
    Outcome,
    Sample,
    Unmeasured,
)
from flowos.operations._facts import facts
from flowos.plan._compare import compare
from flowos.probes._base import Probe, with_details
from flowos.probes._storage import direct_io
from flowos.probes.metadata import PROCESSES, Metadata
from flowos.probes.parallel_io import TRANSFER_BYTES, ParallelIo

MARGIN = 0.05
MIB = 1 << 20
CLIENTS = 2
REPETITIONS = 3
"""mdtest prints the most, the least and the mean of its: of three the other one is their median."""
OPERATIONS = {
    "File creation": "file create",
    "File stat": "file stat",
    "File read": "file read",
    "File removal": "file remove",
    "Directory creation": "directory create",
    "Directory stat": "directory stat",
    "Directory removal": "directory remove",
}
Rates = Mapping[tuple[str, str], float]
"""(axis, level) of a reading -> its rate."""
Measure = Callable[[Case, Path], Rates]
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=6)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--bin", default=os.environ.get("PATH", ""), help="folder of ior, mdtest")
    parser.add_argument(
        "--mpirun", default="mpirun", help="and its options, such as --bind-to none"
    )
    parser.add_argument(
        "--items", type=whole_number(), default="5000", help="files, and directories, of a process"
    )
    parser.add_argument("--mib", type=whole_number(), default=256, help="MiB of a client")
    args = parser.parse_args()
    node = facts(MeasurementRequest(scratch=args.folder))
    peers = Peers(args.mpirun, args.bin)
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        sides: dict[str, Measure] = {"ours": Ours(folder).measure, "peer": peers.measure}
        for number in range(args.rounds):
            for case in cases(node, str(args.items), args.mib * MIB):
                for side in ("ours", "peer", "peer", "ours"):
                    samples += sampled(side, number, case, sides[side](case, folder))
    verdicts = compare(samples, axis="program", base="peer", margin=MARGIN, looks=1)
    found = [row_of(samples, verdict, ("ours", "peer"), MARGIN) for verdict in verdicts]
    claim = "within 5 % of mdtest and IOR"
    about = {"file_system": node.storage.file_system, "direct": direct_io(node)}
    print(json.dumps({"claim": claim, **about, "compared": found}, indent=1))
    return 0 if all(row["agrees"] for row in found) else 1


def cases(node: Facts, items: str, client_bytes: int) -> Iterator[Case]:
    """Of normal effort, without a stonewall."""
    request = MeasurementRequest()
    for probe in (Metadata(), ParallelIo()):
        found = probe.cases(node, request)
        if isinstance(found, Unmeasured):
            sys.exit(f"{probe.name}: {found.reason}: {found.remedy}")
        for case in found:
            if case.level("clients", str(CLIENTS)) == str(CLIENTS):
                yield with_details(
                    case,
                    items=items,
                    bytes=str(client_bytes),
                    repetitions=str(REPETITIONS),
                    stonewall="1000",
                    seconds="1000",
                )


class Ours:
    """The probes' programs."""

    def __init__(self, folder: Path) -> None:
        self._built: dict[str, Path] = {}
        self._folder = Path(tempfile.mkdtemp(dir=folder))

    def measure(self, case: Case, folder: Path) -> Rates:
        probe = _probe(case)
        program = probe.program(case)
        words = [word.replace("{scratch}", str(folder)) for word in program.argv]
        done = subprocess.run([self._binary(case), *words], capture_output=True, check=False)
        outcome = Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)
        readings = probe.read(case, outcome)
        if isinstance(readings, Unmeasured):
            sys.exit(f"{probe.name}: {readings.reason}")
        return {reading.levels[0]: median(reading.values) for reading in readings}

    def _binary(self, case: Case) -> Path:
        build = _probe(case).program(case).build
        assert build is not None
        if build.key not in self._built:
            binary = self._folder / build.key
            words = (build.compiler, *build.flags, str(build.sources[0]), "-o", str(binary))
            subprocess.run(words, check=True)
            self._built[build.key] = binary
        return self._built[build.key]


class Peers:
    """mdtest and IOR by mpirun."""

    def __init__(self, mpirun: str, folders: str) -> None:
        self._mpirun = shlex.split(mpirun)
        found = {name: shutil.which(name, path=folders) for name in ("mdtest", "ior")}
        if missing := [name for name, path in found.items() if path is None]:
            sys.exit(f"{' and '.join(missing)}: not found; give --bin DIR. {__doc__}")
        self._programs = {name: str(path) for name, path in found.items()}

    def measure(self, case: Case, folder: Path) -> Rates:
        return self._mdtest(case, folder) if case.probe == "metadata" else self._ior(case, folder)

    def _mdtest(self, case: Case, folder: Path) -> Rates:
        own = ("-u",) if case.level("directory") == "unique" else ()
        said = self._run(
            PROCESSES, "mdtest", "-n", case.detail("items"), "-N", "1", *own, "-d", folder / "md"
        )
        row = r"^ *(\w+ \w+) +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+$"
        return {
            ("operation", OPERATIONS[name]): 3 * float(mean) - float(most) - float(least)
            for name, most, least, mean in re.findall(row, said, re.MULTILINE)
            if name in OPERATIONS
        }

    def _ior(self, case: Case, folder: Path) -> Rates:
        client_bytes, transfer = int(case.detail("bytes")), TRANSFER_BYTES
        if case.level("files") == "own":
            layout = ["-F", "-b", str(client_bytes)]
        else:
            layout = ["-b", str(transfer), "-s", str(client_bytes // transfer)]
        direct = ("-O", "useO_DIRECT=1") if case.level("direct") == "yes" else ()
        words = (*layout, "-t", str(transfer), "-e", "-C", *direct, "-o", folder / "ior")
        said = self._run(CLIENTS, "ior", "-a", "POSIX", *words)
        rates = re.findall(r"^(write|read) +([\d.]+) ", said, re.MULTILINE)[: 2 * REPETITIONS]
        return {
            ("workload", f"sequential {way}"): median(float(r) for w, r in rates if w == way) * MIB
            for way in ("write", "read")
        }

    def _run(self, ranks: int, program: str, *words: str | Path) -> str:
        repeated = (self._programs[program], "-i", str(REPETITIONS), *map(str, words))
        argv = (*self._mpirun, "-n", str(ranks), *repeated)
        done = subprocess.run(
            argv, capture_output=True, text=True, check=True, env={**os.environ, **ROOT}
        )
        return done.stdout


def _probe(case: Case) -> Probe:
    return Metadata() if case.probe == "metadata" else ParallelIo()


def sampled(program: str, number: int, case: Case, rates: Rates) -> Iterator[Sample]:
    kind = ("bandwidth", "byte/s") if case.probe == "parallel_io" else ("iops", "1/s")
    for level, rate in rates.items():
        levels = (("program", program), *case.levels, level)
        yield Sample(
            run="benchmark",
            case=replace(case, levels=levels, details=()),
            round=number,
            metric=kind[0],
            unit=kind[1],
            values=(rate,),
        )


if __name__ == "__main__":
    sys.exit(main())
