"""What tests of many runs build their runs from."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from flowos.model import Case, Measurement, Trust
from flowos.plan import MachineRun, Numbers

RATE = Measurement(
    case=Case("stream", (("threads", "2"),)),
    metric="triad",
    unit="byte/s",
    count=8,
    median=40e9,
    low=40e9,
    high=40e9,
    best=43e9,
)
TIME = replace(RATE, case=Case("mpi"), metric="latency", unit="second", median=1e-6)
MARKED = Trust(marks=("the clock went away",))


def at(m: Measurement, value: float, *, marked: bool = False, spread: float = 0.0) -> Measurement:
    """The same number with this median. spread: half of the range between its quartiles."""
    return replace(
        m,
        median=value,
        low=value * (1 - spread),
        high=value * (1 + spread),
        best=value,
        trust=MARKED if marked else Trust(),
    )


def run(name: str, *measured: Measurement, machine: str = "n1") -> MachineRun:
    return MachineRun(machine=machine, numbers=Numbers(run=name, measurements=measured))


def runs_of(m: Measurement, *values: float, machines: Sequence[str] = ()) -> list[MachineRun]:
    """A run for each value, on these machines or on one."""
    names = machines or ["n1"] * len(values)
    return [
        run(f"r{n}", at(m, value), machine=name)
        for n, (value, name) in enumerate(zip(values, names, strict=True))
    ]


def normal(draw: random.Random) -> float:
    return draw.gauss(0.0, 1.0)


def heavy(draw: random.Random) -> float:
    """Student's t with 4 degrees of freedom, with a standard deviation of 1."""
    return draw.gauss(0.0, 1.0) / math.sqrt(draw.gammavariate(2.0, 0.5)) / math.sqrt(2)
