"""The OSU benchmarks, Intel's IMB and NetPIPE: how each is run with an MPI, and what it prints.

OSU: a folder that holds its programs, built with that MPI. IMB: what `pip install impi-rt
impi-devel` installs, in a virtual environment; its IMB-MPI1 runs with Intel MPI, and with MPICH,
which has the same binary interface. NetPIPE: Debian's, a program for each MPI.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from flowos.model import Exited, Outcome

SIZES = ("8", "1024", "8192", "65536", "1048576")
BASE_UNIT = {
    "latency": 1e-6,
    "bandwidth": 1e6,
    "bidirectional_bandwidth": 1e6,
    "multi_pair_bandwidth": 1e6,
    "message_rate": 1.0,
    "allreduce": 1e-6,
}
"""What they print, in base units."""

OSU = {
    "osu_latency": ("latency",),
    "osu_bw": ("bandwidth",),
    "osu_bibw": ("bidirectional_bandwidth",),
    "osu_mbw_mr": ("multi_pair_bandwidth", "message_rate"),
    "osu_allreduce": ("allreduce",),
}
"""Its columns after the size."""

IMB = {
    "PingPong": ("", "latency"),
    "Uniband": ("", "multi_pair_bandwidth", "message_rate"),
    "Biband": ("", "bidirectional_bandwidth"),
    "Allreduce": ("", "", "", "allreduce"),
}
"""Its columns after the size: repetitions first; of times the least and the most."""

OSU_SECONDS, OSU_LEAST, OSU_MOST = 0.036, 20, 500_000
"""How long its loops last, as all our repetitions. Their times are on its stack, of 8 MiB."""
WINDOW = {"bandwidth": 64, "multi_pair_bandwidth": 64, "bidirectional_bandwidth": 128}
"""Messages of an iteration."""

NETPIPE = {"openmpi": "NPopenmpi", "mpich": "NPmpich2"}
"""Its program for an MPI."""
_NETPIPE_REPEATS = "200"

ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

Numbers = dict[str, float]
"""Metric -> seconds, byte/s or 1/s."""
Statistics = dict[str, Numbers]
"""mean, median or best -> the numbers of a program: what it prints."""


@dataclass(frozen=True)
class Family:
    name: str
    compiler: str
    mpirun: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    def run(self, *words: str, **variables: str) -> Outcome:
        env = {**os.environ, **ROOT_MAY, **self.variables, **variables}
        done = subprocess.run([*self.mpirun, *words], env=env, capture_output=True, check=False)
        return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)


FAMILIES = (
    Family("openmpi", "mpicc.openmpi", ("mpirun.openmpi", "--bind-to", "core", "-n", "2")),
    Family("mpich", "mpicc.mpich", ("mpiexec.mpich", "-bind-to", "core", "-n", "2")),
)


def intel_mpi(imb: Path) -> Family:
    variables = {"I_MPI_ROOT": str(imb), "LD_LIBRARY_PATH": str(imb / "lib")}
    starts = (str(imb / "bin/mpiexec.hydra"), "-n", "2")
    return Family("intel", str(imb / "bin/mpicc"), starts, variables)


def of_osu(family: Family, folder: Path, size: str, ours: Numbers) -> Statistics:
    """Means of about as many iterations as ours were; since 7.3 also medians of iterations."""
    means: Numbers = {}
    medians: Numbers = {}
    for name, metrics in OSU.items():
        program = next((p for p in sorted(folder.rglob(name)) if os.access(p, os.X_OK)), None)
        if program is None or program.is_dir():
            sys.exit(f"mpi: no {name} below {folder}")
        said = _help_of(family, str(program))
        count = _osu_iterations(said, size, metrics[0], ours)
        words = (str(program), *_osu_options(said, size), *count)
        text = family.run(*words).stdout.decode()
        numbers = dict(_columns(text, size, metrics))
        if not numbers:
            sys.exit(f"mpi: {program} printed no numbers of {size} bytes with {family.name}")
        means.update(numbers)
        medians.update(_columns(text, size, (*("",) * len(metrics), metrics[0])))
    return {"mean": means, "median": medians}


@cache
def _help_of(family: Family, program: str) -> str:
    outcome = family.run(program, "--help")
    return (outcome.stdout + outcome.stderr).decode()


def _osu_options(said: str, size: str) -> Iterator[str]:
    """Before 5.4 pairs run all sizes. Since 7.2 what is summed are characters, unless one asks."""
    if "[MIN:]MAX" in said:
        yield from ("-m", f"{size}:{size}")
    if "mpi_float" in said:
        yield from ("-T", "mpi_float")
    if "--tail-lat" in said:
        yield "-z"


def _osu_iterations(said: str, size: str, metric: str, ours: Numbers) -> tuple[str, ...]:
    """So many that they last as long as ours; not where they would be of the largest size too."""
    if "[MIN:]MAX" not in said:
        return ()
    messages = WINDOW.get(metric)
    each = messages * int(size) / ours[metric] if messages else ours[metric]
    return ("-i", str(min(max(int(OSU_SECONDS / each), OSU_LEAST), OSU_MOST)))


def of_imb(family: Family, imb: Path, ours: Path, size: str) -> Numbers:
    """ours: a program that was built with the MPI of the family, whose library IMB then loads."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {} if family.name == "intel" else _as_intel_mpi(ours, Path(folder))
        words = (str(imb / "bin/IMB-MPI1"), *IMB, "-msgsize", size)
        text = family.run(*words, **variables).stdout.decode()
    parts = re.split(r"^# Benchmarking (\w+)", text, flags=re.MULTILINE)
    found: Numbers = {}
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        found.update(_columns(part, size, IMB[name]))
    if not found:
        sys.exit(f"mpi: IMB of {imb} printed no numbers with {family.name}")
    return found


def of_netpipe(family: Family, program: str, size: str) -> Numbers:
    """Its ping-pong's time one way, of which it writes the best of some trials."""
    with tempfile.TemporaryDirectory() as folder:
        file, sizes = Path(folder, "out"), ("-l", size, "-u", size, "-p", "0")
        family.run(program, *sizes, "-n", _NETPIPE_REPEATS, "-o", str(file))
        rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    found = [float(row[2]) for row in rows if row[0] == size]
    if not found:
        sys.exit(f"mpi: {program} wrote no numbers")
    return {"latency": found[0]}


def _as_intel_mpi(program: Path, folder: Path) -> dict[str, str]:
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    library = re.search(r"libmpich\S* => (\S+)", linked)
    if library is None:
        sys.exit(f"mpi: {program} was not built with MPICH")
    (folder / "libmpi.so.12").symlink_to(library[1])
    return {"LD_LIBRARY_PATH": str(folder)}


def _columns(text: str, size: str, metrics: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    """Of the line that begins with the size. IMB puts a sentence there where its time was up."""
    for line in text.splitlines():
        first, *numbers = line.split() or [""]
        if first == size and len(numbers) >= len(metrics):
            for metric, number in zip(metrics, numbers, strict=False):
                if metric and re.fullmatch(r"[\d.]+", number):
                    yield metric, float(number) * BASE_UNIT[metric]
