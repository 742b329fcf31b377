"""MPI ranks, for each MPI found: latency, bandwidth, message rate and allreduce over sizes.

Two ranks, then pairs of them at once: all on this node, or half of them on each of two. Between
nodes quick effort takes the sizes of the headlines with the first MPI, as 64 messages of 4 MiB take
half a second on Ethernet; pairs that share a link take few sizes for the same reason. Where there
is a GPU, two ranks also send from its memory. With full effort each MPI's program is compiled by
each compiler too.

The whole curve is shown, since a single size says little: at 8 KiB two MPIs of one machine can
differ eightfold, by their eager protocols.
Source: OSU micro-benchmarks' definitions (osu_latency, osu_bw, osu_bibw, osu_mbw_mr,
osu_allreduce); figures 8 and 9 of seed 001, 5 and 6 of Nagai et al., AXIES 2023.
"""

from collections.abc import Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import (
    Case,
    Chart,
    Compiler,
    Facts,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Reading,
    Sample,
    Unmeasured,
)
from flowos.plan import NoiseThresholds
from flowos.probes._base import (
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    compared_case,
    read_answer,
    with_details,
)
from flowos.probes._build import Build
from flowos.probes._env_charts import env_curve
from flowos.probes._mpi_compilers import best_pairs, compilers_for, wrapper_words
from flowos.probes._mpi_gpu import gpu_variables, gpu_ways
from flowos.probes._storage import NO_MPI
from flowos.probes._suspicious import with_suspicion

RANKS = 2
REPETITIONS = {"quick": ("5", "0.002"), "normal": ("9", "0.004"), "full": ("10", "0.01")}
"""Repetitions of each size, and the approximate seconds of each."""
TESTS, SIZES_OF_ALL_TESTS = 4, 88
ROUNDS_OF_COMPILERS = 4

PAIRS_BYTES = {
    "quick": ("8", "65536"),
    "normal": ("8", "1024", "65536"),
    "full": tuple(str(4**n) for n in range(11)),
}
"""The messages of several pairs at once."""

COMPARED_REPETITIONS = {"quick": "4", "normal": "8", "full": "16"}
KEY_BYTES = ("8", "1048576")
COMPARED_BYTES = ("8", "1024", "65536", "1048576")
"""The messages whose verdicts decide between environments; the curves show all."""


def _curve(
    title: str,
    metric: str,
    y_label: str,
    about: str,
    series: tuple[str, ...],
    facets: tuple[str, ...] = (),
) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x="bytes",
        metrics=(metric,),
        series=series,
        facets=facets,
        x_label="message, bytes",
        y_label=y_label,
        log_x=True,
        log_y=True,
        ceilings=False,
        about=about,
    )


_OF_TWO = (
    ("MPI latency", "latency", "second", "Half a ping-pong round trip."),
    ("MPI bandwidth", "bandwidth", "byte/s", "64 messages in flight, one way."),
    (
        "MPI bidirectional bandwidth",
        "bidirectional_bandwidth",
        "byte/s",
        "64 messages in flight each way, both ways together.",
    ),
    ("MPI allreduce", "allreduce", "second", "Sum of floats over two ranks."),
)
_OF_PAIRS = (
    ("MPI bandwidth of pairs", "multi_pair_bandwidth", "byte/s", "All pairs at once, one way."),
    ("MPI message rate", "message_rate", "1/s", "Messages of all pairs at once, one way."),
)


class MpiPairs(Probe):
    """Metrics latency, allreduce (second), bandwidth and bidirectional_bandwidth (byte/s).

    The program sweeps bytes. multi_pair_bandwidth (byte/s) and message_rate (1/s) have an axis
    pairs. From the memory of GPUs the first four begin with gpu_; the axis buffers says how.
    """

    info = ProbeInfo(
        name="mpi",
        title="MPI between ranks: two, and pairs at once",
        charts=(
            *(_curve(*each, series=("mpi", "compiler")) for each in _OF_TWO),
            *(_curve(*each, series=("pairs",), facets=("mpi",)) for each in _OF_PAIRS),
            *(
                _curve(f"{title}, GPU", f"gpu_{metric}", unit, about, series=("mpi", "buffers"))
                for title, metric, unit, about in _OF_TWO
            ),
        ),
        headlines=(
            Headline("MPI latency, 8 B", "latency", (("bytes", "8"),)),
            Headline("MPI bandwidth, 1 MiB", "bandwidth", (("bytes", "1048576"),)),
            Headline(
                "MPI bidirectional bandwidth, 1 MiB",
                "bidirectional_bandwidth",
                (("bytes", "1048576"),),
            ),
            Headline("MPI message rate, 8 B", "message_rate", (("bytes", "8"),)),
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
        cores = len(facts.one_per_core)
        cpus = min(cores, facts.quota_cpus or cores)
        if cpus < RANKS and request.nodes < RANKS:
            return Unmeasured(reason=f"two ranks that wait busily need two cores, here are {cpus}")
        first = facts.mpis[:1] if request.effort == "quick" else facts.mpis
        short = request.nodes > 1 and request.effort == "quick"
        return (
            *(_of_two(mpi, request, short) for mpi in (first if short else facts.mpis)),
            *(
                _of_pairs(mpi, request, pairs)
                for mpi in first
                for pairs in _pairs(int(cpus) * request.nodes // 2, request)
            ),
            *(
                _by_compiler(mpi, request, compiler)
                for mpi in facts.mpis * (request.effort == "full")
                for compiler in compilers_for(mpi, facts)
            ),
            *(
                _on_gpu(mpi, request, way)
                for mpi in first * bool(facts.cuda)
                for way in gpu_ways(mpi, request.nodes > 1)[: 1 if short else None]
            ),
        )

    def rounds(self, cases: Iterable[Case]) -> int:
        """Compilers are compared by verdicts."""
        return ROUNDS_OF_COMPILERS if any(case.level("compiler") for case in cases) else 1

    def seconds(self, case: Case) -> float:
        """A start takes longer with many ranks, and with CUDA."""
        each = float(case.detail("seconds"))
        tests = 1 if case.level("pairs") else TESTS
        sizes = tests * len(case.detail("sizes").split()) or SIZES_OF_ALL_TESTS
        start = 1.0 + 0.02 * (_ranks(case) - RANKS) + 3.0 * bool(case.level("buffers"))
        return start + sizes * (int(case.detail("repetitions")) + 1) * each * 1.3

    def program(self, case: Case) -> Program:
        on_gpu = bool(case.level("buffers"))
        family = case.detail("family")
        compiler, first = wrapper_words(family, case.detail("compiler"), case.detail("called"))
        versions = (case.detail("version"), case.detail("called_version"))
        return Program(
            argv=(
                *("--gpu",) * on_gpu,
                *(case.detail("repetitions"), case.detail("seconds")),
                *_sizes(case),
            ),
            build=Build(
                source="mpi_pairs.c",
                compiler=compiler,
                compiler_version=" ".join(filter(None, versions)),
                flags=(*first, "-O2"),
                libraries=("-ldl",),
            ),
            variables=gpu_variables(family, case.detail("way")) if on_gpu else (),
            cores=1,
            ranks=_ranks(case),
            mpi_family=family,
            mpirun=case.detail("mpirun"),
            limit_seconds=30.0 + 20 * self.seconds(case),
            takes_turns=True,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome, "mpi_pairs")
        if isinstance(readings, Unmeasured):
            return readings
        unbound = "*" in dict(readings[0].notes).get("cpus", "")
        return with_suspicion(
            readings, ["the ranks were not bound to a core each"] if unbound else []
        )

    def findings_between(
        self, measured: Sequence[Measurement], samples: Sequence[Sample], limits: NoiseThresholds
    ) -> tuple[str, ...]:
        return tuple(best_pairs(measured, samples, limits))

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


def _pairs(max_pairs: int, request: MeasurementRequest) -> tuple[int, ...]:
    """Numbers of pairs, two at least: powers of two and the most; for quick effort the most."""
    doubled = (2**n for n in range(1, max_pairs.bit_length()) if 2**n < max_pairs)
    counts = (*doubled, *(max_pairs,) * (max_pairs > 1))
    return counts[-1:] if request.effort == "quick" else counts


def _ranks(case: Case) -> int:
    return RANKS * int(case.level("pairs", "1"))


def _sizes(case: Case) -> tuple[str, ...]:
    sizes = case.detail("sizes").split()
    return (sizes[-1], *sizes) if sizes else ()


def _of_two(mpi: Mpi, request: MeasurementRequest, short: bool) -> Case:
    case = _case(mpi, request)
    return with_details(case, sizes=" ".join(KEY_BYTES)) if short else case


def _of_pairs(mpi: Mpi, request: MeasurementRequest, pairs: int) -> Case:
    case = _case(mpi, request, ("pairs", str(pairs)))
    return with_details(case, sizes=" ".join(PAIRS_BYTES[request.effort]))


def _by_compiler(mpi: Mpi, request: MeasurementRequest, compiler: Compiler) -> Case:
    case = _case(mpi, request, ("compiler", compiler.name))
    called = {"called": str(compiler.path), "called_version": compiler.version}
    return with_details(case, **called)


def _on_gpu(mpi: Mpi, request: MeasurementRequest, way: str) -> Case:
    case = _case(mpi, request, ("buffers", f"GPU, {way}" if way else "GPU"))
    short = {"sizes": " ".join(KEY_BYTES)} if request.effort == "quick" else {}
    return with_details(case, way=way, **short)


def _case(mpi: Mpi, request: MeasurementRequest, *levels: tuple[str, str]) -> Case:
    repetitions, seconds = REPETITIONS[request.effort]
    return Case(
        "mpi",
        levels=(("mpi", mpi.name), *levels),
        details=(
            ("compiler", str(mpi.compiler)),
            ("version", mpi.version),
            ("family", mpi.family),
            ("mpirun", str(mpi.mpirun)),
            ("repetitions", repetitions),
            ("seconds", seconds),
        ),
    )
