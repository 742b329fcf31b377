"""The few numbers by which a machine is known, out of the hundreds that are measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flowos.model import Measurement, Pairs, Sample, lower_is_better
from flowos.plan import NOISE_THRESHOLDS, NoiseThresholds
from flowos.probes._best import case_effects
from flowos.probes.stream import USUAL_PAGES

CEILINGS = (("flops", "flops"), ("working_set", "memory"))
"""Probe and metric of the numbers that bound others."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The best measurement of a probe's metric among the cases with these levels."""

    label: str
    probe: str
    metric: str
    levels: Pairs = ()

    def fits(self, measured: Measurement) -> bool:
        case = measured.case
        return (case.probe, measured.metric) == (self.probe, self.metric) and (
            set(self.levels) <= set(case.levels)
        )


def _fio(label: str, metric: str, workload: str, depth: int) -> Headline:
    return Headline(label, "fio", metric, (("workload", workload), ("iodepth", str(depth))))


def _mpi(label: str, metric: str, size: int) -> Headline:
    return Headline(label, "mpi", metric, (("bytes", str(size)),))


def _stream(label: str, **levels: str) -> Headline:
    return Headline(label, "stream", "triad", tuple(levels.items()))


HEADLINES = (
    Headline("Clock", "clock", "clock"),
    Headline("Arithmetic ceiling, f64", "flops", "flops", (("type", "f64"),)),
    Headline("Arithmetic ceiling, f32", "flops", "flops", (("type", "f32"),)),
    Headline("Matrix product, f64", "gemm", "flops", (("type", "f64"),)),
    Headline("Matrix product, f32", "gemm", "flops", (("type", "f32"),)),
    Headline("Memory ceiling", "working_set", "memory"),
    _stream("STREAM triad, system pages", pages=USUAL_PAGES),
    _stream("STREAM triad, huge pages", pages="huge"),
    _stream("STREAM triad, system pages, one thread", pages=USUAL_PAGES, threads="1"),
    Headline("Sparse solver, Poisson", "solve", "total", (("problem", "poisson"),)),
    Headline("Sparse solver, memory traffic", "solve", "bandwidth", (("problem", "poisson"),)),
    _mpi("MPI latency, 8 B", "latency", 8),
    _mpi("MPI bandwidth, 1 MiB", "bandwidth", 1 << 20),
    _mpi("MPI allreduce, 8 B", "allreduce", 8),
    _mpi("MPI allreduce, 1 MiB", "allreduce", 1 << 20),
    _fio("Sequential read", "bandwidth", "sequential read", 16),
    _fio("Sequential write", "bandwidth", "sequential write", 16),
    _fio("Random 4 KiB read, depth 1", "iops", "random read", 1),
    _fio("Random 4 KiB read, depth 16", "iops", "random read", 16),
    _fio("Random 4 KiB write, depth 16", "iops", "random write", 16),
)


def best_of(
    headline: Headline,
    measured: Iterable[Measurement],
    samples: Sequence[Sample] = (),
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> Measurement | None:
    """Of the settings that fit the best by `_best`'s rule; None where nothing of it was measured.

    Of ceilings, and where there is no sample of positive values, the one of the best value.
    """
    fitting = {m.case: m for m in measured if headline.fits(m)}
    if not fitting:
        return None
    ours = [
        s
        for s in samples
        if s.metric == headline.metric and s.case in fitting and min(s.values, default=0) > 0
    ]
    if (headline.probe, headline.metric) in CEILINGS or not ours:
        return max(fitting.values(), key=_goodness)
    effects = case_effects(ours, limits)
    return fitting[max(effects, key=effects.__getitem__)]


def _goodness(m: Measurement) -> float:
    return -m.value if lower_is_better(m.unit) else m.value
