"""Two MPI ranks on this node, for each MPI found: latency, bandwidth, allreduce over sizes.

The whole curve is shown, since a single size says little: at 8 KiB two MPIs of one machine were
seen to differ eightfold, by their eager protocols.
Source: OSU micro-benchmarks' definitions; figures 5 and 6 of Nagai et al., AXIES 2023.
"""

from dataclasses import dataclass
from typing import Literal

from flowos.model import (
    Case,
    Chart,
    Exited,
    Facts,
    Mpi,
    Outcome,
    Reading,
    Unmeasured,
    Wanted,
)
from flowos.probes._base import Build, Program, read_answer
from flowos.probes._suspect import suspected

RANKS = 2
REPETITIONS = {"quick": ("5", "0.002"), "normal": ("9", "0.004"), "full": ("15", "0.02")}
"""Repetitions of each size, and about how long each lasts in seconds."""
SIZES_OF_ALL_TESTS = 65


def _curve(title: str, metric: str, y_label: str, about: str) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x="bytes",
        metrics=(metric,),
        series=("mpi",),
        x_label="message, bytes",
        y_label=y_label,
        log_x=True,
        log_y=True,
        ceilings=False,
        about=about,
    )


@dataclass(frozen=True, slots=True)
class MpiPairs:
    """Metrics latency, allreduce (second) and bandwidth (byte/s); the program sweeps bytes."""

    name: str = "mpi"
    title: str = "MPI between two ranks of this node"
    charts: tuple[Chart, ...] = (
        _curve("MPI latency", "latency", "second", "Half a ping-pong round trip."),
        _curve("MPI bandwidth", "bandwidth", "byte/s", "64 messages in flight, one way."),
        _curve("MPI allreduce", "allreduce", "second", "Sum of floats over two ranks."),
    )
    build: Literal["once", "each"] = "each"
    rounds: int = 1

    def cases(self, facts: Facts, wanted: Wanted) -> tuple[Case, ...] | Unmeasured:
        if not facts.mpis:
            return Unmeasured(
                reason="no MPI with a compiler and a starter was found",
                remedy="apt install openmpi-bin libopenmpi-dev",
            )
        cpus = min(len(facts.one_per_core), facts.quota_cpus or RANKS)
        if cpus < RANKS:
            return Unmeasured(reason=f"two ranks that wait busily need two cores, here are {cpus}")
        return tuple(_case(mpi, wanted) for mpi in facts.mpis)

    def seconds(self, case: Case) -> float:
        each = float(case.detail("seconds"))
        return 1.0 + SIZES_OF_ALL_TESTS * (int(case.detail("repetitions")) + 1) * each * 1.3

    def program(self, case: Case) -> Program:
        return Program(
            argv=(case.detail("repetitions"), case.detail("seconds")),
            build=Build(
                source="mpi_pairs.c",
                compiler=case.detail("compiler"),
                compiler_version=case.detail("version"),
                flags=("-O2",),
            ),
            cores=1,
            ranks=RANKS,
            mpi_family=case.detail("family"),
            starter=case.detail("starter"),
            limit_seconds=30.0 + 20 * self.seconds(case),
            takes_turns=True,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:  # noqa: ARG002
        said = _own_words(outcome)
        if said and outcome.end != Exited(0):
            return Unmeasured(reason=said)
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured):
            return readings
        unbound = "*" in dict(readings[0].notes).get("cpus", "")
        return suspected(readings, ["the ranks were not bound to a core each"] if unbound else [])

    def ceiling(self, case: Case) -> Case | None:  # noqa: ARG002
        return None


def _case(mpi: Mpi, wanted: Wanted) -> Case:
    repetitions, seconds = REPETITIONS[wanted.effort]
    return Case(
        "mpi",
        levels=(("mpi", mpi.name),),
        details=(
            ("compiler", str(mpi.compiler)),
            ("version", mpi.version),
            ("family", mpi.family),
            ("starter", str(mpi.starter)),
            ("repetitions", repetitions),
            ("seconds", seconds),
        ),
    )


def _own_words(outcome: Outcome) -> str:
    """Our program's complaint, which a starter buries under its own."""
    prefix = "mpi_pairs: "
    lines = outcome.stderr.decode(errors="replace").splitlines()
    return next((line.removeprefix(prefix) for line in lines if line.startswith(prefix)), "")
