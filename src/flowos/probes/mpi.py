"""Two MPI ranks, for each MPI found: latency, bandwidth, allreduce over sizes.

They are on this node, or each on one of two: then quick effort takes the sizes of the headlines
with the first MPI, as 64 messages of 4 MiB take half a second on Ethernet.

The whole curve is shown, since a single size says little: at 8 KiB two MPIs of one machine can
differ eightfold, by their eager protocols.
Source: OSU micro-benchmarks' definitions; figures 5 and 6 of Nagai et al., AXIES 2023.
"""

from dataclasses import replace

from flowos.model import (
    Case,
    Chart,
    Facts,
    MeasurementRequest,
    Mpi,
    Outcome,
    Reading,
    Sample,
    Unmeasured,
)
from flowos.probes._base import (
    Build,
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    compared_case,
    read_answer,
    with_details,
)
from flowos.probes._env_charts import env_curve
from flowos.probes._storage import NO_MPI
from flowos.probes._suspect import suspected

RANKS = 2
REPETITIONS = {"quick": ("5", "0.002"), "normal": ("9", "0.004"), "full": ("15", "0.02")}
"""Repetitions of each size, and the approximate seconds of each."""
TESTS, SIZES_OF_ALL_TESTS = 3, 65

COMPARED_REPETITIONS = {"quick": "4", "normal": "8", "full": "16"}
KEY_BYTES = ("8", "1048576")
COMPARED_BYTES = ("8", "1024", "65536", "1048576")
"""The messages whose verdicts decide between environments; the curves show all."""


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


class MpiPairs(Probe):
    """Metrics latency, allreduce (second) and bandwidth (byte/s); the program sweeps bytes."""

    info = ProbeInfo(
        name="mpi",
        title="MPI between two ranks of this node",
        charts=(
            _curve("MPI latency", "latency", "second", "Half a ping-pong round trip."),
            _curve("MPI bandwidth", "bandwidth", "byte/s", "64 messages in flight, one way."),
            _curve("MPI allreduce", "allreduce", "second", "Sum of floats over two ranks."),
        ),
        headlines=(
            Headline("MPI latency, 8 B", "latency", (("bytes", "8"),)),
            Headline("MPI bandwidth, 1 MiB", "bandwidth", (("bytes", "1048576"),)),
            Headline("MPI allreduce, 8 B", "allreduce", (("bytes", "8"),)),
            Headline("MPI allreduce, 1 MiB", "allreduce", (("bytes", "1048576"),)),
        ),
        deciding=("latency", "bandwidth", "allreduce"),
        between_nodes=True,
        env_charts=(
            env_curve("MPI latency", "bytes", "latency", "mpi", "Half a ping-pong.", "second"),
            env_curve(
                "MPI bandwidth", "bytes", "bandwidth", "mpi", "64 messages in flight.", "byte/s"
            ),
            env_curve(
                "MPI allreduce", "bytes", "allreduce", "mpi", "Sum over two ranks.", "second"
            ),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        if not facts.mpis:
            return NO_MPI
        cpus = min(len(facts.one_per_core), facts.quota_cpus or RANKS)
        if cpus < RANKS and request.nodes < RANKS:
            return Unmeasured(reason=f"two ranks that wait busily need two cores, here are {cpus}")
        short = request.nodes > 1 and request.effort == "quick"
        cases = tuple(_case(mpi, request) for mpi in facts.mpis)
        return (with_details(cases[0], sizes=" ".join(KEY_BYTES)),) if short else cases

    def seconds(self, case: Case) -> float:
        each = float(case.detail("seconds"))
        sizes = TESTS * len(case.detail("sizes").split()) or SIZES_OF_ALL_TESTS
        return 1.0 + sizes * (int(case.detail("repetitions")) + 1) * each * 1.3

    def program(self, case: Case) -> Program:
        return Program(
            argv=(case.detail("repetitions"), case.detail("seconds"), *_sizes(case)),
            build=Build(
                source="mpi_pairs.c",
                compiler=case.detail("compiler"),
                compiler_version=case.detail("version"),
                flags=("-O2",),
            ),
            cores=1,
            ranks=RANKS,
            mpi_family=case.detail("family"),
            mpirun=case.detail("mpirun"),
            limit_seconds=30.0 + 20 * self.seconds(case),
            takes_turns=True,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome, "mpi_pairs")
        if isinstance(readings, Unmeasured):
            return readings
        unbound = "*" in dict(readings[0].notes).get("cpus", "")
        return suspected(readings, ["the ranks were not bound to a core each"] if unbound else [])

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """Cases of the first MPI; with full effort of the first of each family."""
        cases = self.cases(facts, replace(request, effort="quick"))
        if isinstance(cases, Unmeasured):
            return cases
        of_family: dict[str, Case] = {}
        for case in cases if request.effort == "full" else cases[:1]:
            of_family.setdefault(case.detail("family"), case)
        repetitions = COMPARED_REPETITIONS[request.effort]
        return tuple(
            compared_case(
                self,
                with_details(case, repetitions=repetitions),
                (),
                case.level("mpi"),
                mpi=family,
            )
            for family, case in of_family.items()
        )

    def decides(self, sample: Sample) -> bool:
        messages = sample.case.level("bytes", COMPARED_BYTES[0])
        return sample.metric in self.info.deciding and messages in COMPARED_BYTES


def _sizes(case: Case) -> tuple[str, ...]:
    sizes = case.detail("sizes").split()
    return (sizes[-1], *sizes) if sizes else ()


def _case(mpi: Mpi, request: MeasurementRequest) -> Case:
    repetitions, seconds = REPETITIONS[request.effort]
    return Case(
        "mpi",
        levels=(("mpi", mpi.name),),
        details=(
            ("compiler", str(mpi.compiler)),
            ("version", mpi.version),
            ("family", mpi.family),
            ("mpirun", str(mpi.mpirun)),
            ("repetitions", repetitions),
            ("seconds", seconds),
        ),
    )
