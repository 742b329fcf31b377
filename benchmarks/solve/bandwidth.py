"""STREAM's triad next to each turn: the memory bandwidth at that time."""

import os
import subprocess
from functools import cache
from pathlib import Path
from statistics import median

from building import NotHere, compiled, on_cores

from flowos.model import Case, Exited, Outcome, Unmeasured
from flowos.probes import stream

SOURCE = Path(stream.__file__).parent / "programs" / "stream.c"
FLAGS = ("-fopenmp", "-fno-builtin", "-fno-tree-loop-distribute-patterns")
ELEMENTS, PASSES, SECONDS = 16 << 20, 12, 5
ALSO_READ = 4 / 3
"""The triad counts 24 bytes per element; 32 move, as a line is read before it is written to."""


@cache
def _program(folder: Path) -> Path:
    return compiled(SOURCE, ("gcc", *FLAGS), folder)


def bytes_per_second(folder: Path, cores: int) -> float:
    """Bandwidth on so many cores, with write-allocate. Raises NotHere without a compiler."""
    words = [str(_program(folder)), str(ELEMENTS), str(cores), str(PASSES), str(SECONDS)]
    done = subprocess.run(
        [*words, "plain", "system"],
        env={**os.environ, **on_cores(cores)},
        capture_output=True,
        check=True,
    )
    case = Case("stream", levels=(("threads", str(cores)),))
    readings = stream.Stream().read(case, Outcome(end=Exited(0), stdout=done.stdout))
    if isinstance(readings, Unmeasured):
        raise NotHere(f"STREAM: {readings.reason}")
    return ALSO_READ * median(next(r for r in readings if r.metric == "triad").values)
