"""Our hpl and hpcg against xhpl and xhpcg, interleaved A B B A: at most 5 % slower, same size.

`python benchmarks/linpack.py [--json] [--rounds N] [--bin DIR] [--library FILE] [--n 4000]
[--size 64] [--mpirun "mpirun --bind-to none"]`. Both are built from source, by make
(github.com/icl-utk-edu/hpl, github.com/hpcg-benchmark/hpcg); --bin is the folder of xhpl and xhpcg,
unless they are on the PATH. --library: the BLAS that xhpl was linked with, so that both use the
same kernels. Both sides have the same system, cores and count of operations; theirs are a rank on
each core, and each checks its own answer. A peer that is not there is left out.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from statistics import median

from _numbers import whole_number

from flowos.model import (
    Blas,
    Case,
    Exited,
    Facts,
    Killed,
    MeasurementRequest,
    Outcome,
    Sample,
    Unmeasured,
    Verdict,
)
from flowos.operations._facts import facts
from flowos.plan._compare import compare
from flowos.probes._base import Probe, Program, with_details
from flowos.probes.hpcg import XHPCG, Hpcg
from flowos.probes.hpl import XHPL, Hpl

MARGIN = 0.05
PEERS = (XHPL, XHPCG)
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=6)
    parser.add_argument("--bin", default="", help="folder of xhpl and xhpcg")
    parser.add_argument("--library", type=Path, help="BLAS of our side, with LAPACK")
    parser.add_argument("--n", type=whole_number(), default="4000", help="N of hpl")
    parser.add_argument(
        "--size",
        type=whole_number(),
        default="64",
        help="rows of a core in each direction, of hpcg",
    )
    parser.add_argument("--mpirun", default="mpirun --bind-to none", help="and its options")
    asked = parser.parse_args()
    os.environ["PATH"] = f"{asked.bin}:{os.environ['PATH']}"
    here = _with_library(facts(), asked.library)
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(Path(name), shlex.split(asked.mpirun))
        for probe, pair in pairs(here, str(asked.n), str(asked.size)):
            for number in range(asked.rounds):
                for case in (*pair, *reversed(pair)):
                    samples += runs.sampled(probe, case, number)
    rows = [row_of(samples, each) for peer in PEERS for each in _verdicts(samples, peer)]
    claim = "at most 5 % slower than HPL and HPCG at the same size on the same cores"
    print(json.dumps({"claim": claim, "compared": rows}, indent=1))
    if not rows:
        sys.exit("neither xhpl nor xhpcg was found: give --bin DIR")
    return 0 if all(row["holds"] for row in rows) else 1


def _with_library(here: Facts, library: Path | None) -> Facts:
    if library is None:
        return here
    given = Blas(
        name=library.name, family="openblas", version="", path=PurePath(library), symbol="{}_"
    )
    return replace(here, blas=(given,))


def pairs(here: Facts, n: str, size: str) -> Iterator[tuple[Probe, tuple[Case, Case]]]:
    """Our case and the peer's, of the same size."""
    for probe in (Hpl(), Hpcg()):
        found = probe.cases(here, MeasurementRequest(effort="quick", probes=(probe.name,)))
        if isinstance(found, Unmeasured):
            sys.exit(f"{probe.name}: {found.reason}: {found.remedy}")
        if len(found) == 2:
            ours, peer = (_sized(case, n, size) for case in found)
            yield probe, (ours, peer)


def _sized(case: Case, n: str, size: str) -> Case:
    if case.probe == "hpl":
        return with_details(case, sizes=n, seconds="0.1")
    return replace(case.at(size=size), details=case.details)


class Runs:
    """Runs programs, each built once."""

    def __init__(self, folder: Path, mpirun: Sequence[str]) -> None:
        self._folder = folder
        self._mpirun = tuple(mpirun)

    def sampled(self, probe: Probe, case: Case, number: int) -> Iterator[Sample]:
        """The rate of one run, of a single system or of its sets."""
        program = probe.program(case)
        done = subprocess.run(
            self._words(program),
            capture_output=True,
            check=False,
            cwd=self._folder,
            env={**os.environ, **ROOT, **dict(program.variables)},
        )
        code = done.returncode
        end = Exited(code) if code >= 0 else Killed(-code)
        found = probe.read(case, Outcome(end=end, stdout=done.stdout, stderr=done.stderr))
        if isinstance(found, Unmeasured):
            sys.exit(f"{case.label}: {found.reason}")
        for reading in found:
            if reading.metric == "flops":
                yield Sample(
                    run="benchmark",
                    case=replace(case.at(**dict(reading.levels)), details=()),
                    round=number,
                    metric="flops",
                    unit="flop/s",
                    values=(median(reading.values),),
                )

    def _words(self, program: Program) -> tuple[str, ...]:
        if program.build is None:
            return (*self._mpirun, "-n", str(program.ranks), *program.argv)
        binary = self._folder / program.build.key
        if not binary.exists():
            source = str(program.build.sources[0])
            words = (program.build.compiler, *program.build.flags, source, "-o", str(binary))
            subprocess.run((*words, *program.build.libraries), check=True)
        return (str(binary), *program.argv)


def _verdicts(samples: list[Sample], peer: str) -> tuple[Verdict, ...]:
    probe = peer.removeprefix("x")
    ours = [s for s in samples if s.case.probe == probe]
    return compare(ours, axis="solver", base=peer, margin=MARGIN, looks=1) if ours else ()


def row_of(samples: list[Sample], verdict: Verdict) -> dict[str, object]:
    of_probe = [s for s in samples if s.case.probe == verdict.probe]
    return {
        "probe": verdict.probe,
        **dict(verdict.rest),
        "ratio": round(verdict.ratio, 4),
        "interval": [round(verdict.low, 4), round(verdict.high, 4)],
        "rounds": verdict.rounds,
        "holds": verdict.ratio >= 1 - MARGIN,
        "why": verdict.why,
        "gflops": {
            name: round(
                median(s.values[0] for s in of_probe if s.case.level("solver") == name) / 1e9, 3
            )
            for name in (verdict.base, verdict.other)
        },
    }


if __name__ == "__main__":
    sys.exit(main())
