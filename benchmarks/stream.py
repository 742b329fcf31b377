"""Our STREAM triad against likwid-bench's, interleaved A B B A: they agree within 3 %.

`python benchmarks/stream.py [--json] [--rounds N]`; needs Debian's packages likwid and gcc.
likwid's `stream` kernels are STREAM's triad and count 24 bytes per element, as ours does (its
`triad` is Schoenauer's, with 32). Both use vectors of the same width, arrays of the same size, the
system's pages, and threads bound to cores. Our program checks its results.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import harmonic_mean

from _agreement import row_of
from _numbers import whole_number

from flowos.model import Case, Exited, Outcome, Sample, Unmeasured
from flowos.plan._compare import compare
from flowos.probes import stream
from flowos.probes.stream import Stream

MARGIN = 0.03
ELEMENTS = 16 << 20
PASSES, LIKWID_PASSES = 16, 64
"""likwid times its first pass too, with cold caches: among many its weight is small."""
SOURCE = Path(stream.__file__).parent / "programs" / "stream.c"
WIDTHS = (
    ("avx512f", "stream_avx512_fma", "stream_mem_avx512"),
    ("fma", "stream_avx_fma", "stream_mem_avx"),
    ("sse2", "stream", "stream_mem"),
)
"""Flag in /proc/cpuinfo, and likwid's kernels with plain and non-temporal stores."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=16)
    rounds = parser.parse_args().rounds
    if shutil.which("likwid-bench") is None or shutil.which("gcc") is None:
        sys.exit("stream: likwid-bench and gcc are needed: apt install likwid gcc")
    everything = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        binary = built(Path(folder) / "stream")
        samples = [
            taken(binary, program, stores, threads, number)
            for threads in sorted({1, everything})
            for stores in ("plain", "nt")
            for number in range(rounds)
            for program in ("ours", "likwid", "likwid", "ours")
        ]
    verdicts = compare(samples, axis="program", base="likwid", margin=MARGIN, looks=1)
    found = [row_of(samples, v, ("ours", "likwid"), MARGIN) for v in verdicts]
    print(json.dumps({"claim": "triad within 3 % of likwid-bench", "compared": found}, indent=1))
    return 0 if all(f["agrees"] for f in found) else 1


def flags_here() -> set[str]:
    line = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return set(line[1].split()) if line else set()


def built(binary: Path) -> Path:
    wide = ("-mprefer-vector-width=512",) if "avx512f" in flags_here() else ()
    guards = ("-fno-builtin", "-fno-tree-loop-distribute-patterns")
    words = ("gcc", "-O3", "-march=native", *wide, "-fopenmp", *guards, str(SOURCE))
    subprocess.run([*words, "-o", str(binary)], check=True)
    return binary


def taken(binary: Path, program: str, stores: str, threads: int, number: int) -> Sample:
    """One turn, by its mean rate, since likwid-bench reports that."""
    rate = ours(binary, stores, threads) if program == "ours" else likwid(stores, threads)
    levels = (("program", program), ("stores", stores), ("threads", str(threads)))
    return Sample(
        run="benchmark",
        case=Case("stream", levels=levels),
        round=number,
        metric="triad",
        unit="byte/s",
        values=(rate,),
    )


def ours(binary: Path, stores: str, threads: int) -> float:
    bound = {"OMP_PLACES": "cores", "OMP_PROC_BIND": "close", "OMP_NUM_THREADS": str(threads)}
    words = (str(ELEMENTS), str(threads), str(PASSES), "10", stores, "system")
    done = subprocess.run(
        [str(binary), *words], env={**os.environ, **bound}, capture_output=True, check=True
    )
    case = Case("stream", levels=(("threads", str(threads)),))
    readings = Stream().read(case, Outcome(end=Exited(0), stdout=done.stdout))
    if isinstance(readings, Unmeasured):
        sys.exit(f"stream: {readings.reason}")
    triad = next(r for r in readings if r.metric == "triad")
    return harmonic_mean(triad.values)


def likwid(stores: str, threads: int) -> float:
    _, plain, past = next(w for w in WIDTHS if w[0] in flags_here())
    size = f"{3 * 8 * ELEMENTS // 1000}kB"
    kernel, passes = past if stores == "nt" else plain, str(LIKWID_PASSES)
    words = ("-t", kernel, "-w", f"N:{size}:{threads}", "-i", passes)
    done = subprocess.run(["likwid-bench", *words], capture_output=True, check=True, text=True)
    rate = re.search(r"^MByte/s:\s+([\d.]+)", done.stdout, re.MULTILINE)
    each = re.search(r"^Load bytes per element:\s+16\n.*elem\.:\s+8$", done.stdout, re.MULTILINE)
    if rate is None or each is None:
        sys.exit(f"stream: likwid-bench answers in a way unknown here:\n{done.stdout}")
    return float(rate[1]) * 1e6


if __name__ == "__main__":
    sys.exit(main())
