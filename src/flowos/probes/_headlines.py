"""The few numbers by which a machine is known, out of the hundreds that are measured."""

from collections.abc import Iterable
from dataclasses import dataclass

from flowos.model import Measurement, Pairs, lower_is_better


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


HEADLINES = (
    Headline("Clock", "clock", "clock"),
    Headline("Arithmetic ceiling, f64", "flops", "flops", (("type", "f64"),)),
    Headline("Arithmetic ceiling, f32", "flops", "flops", (("type", "f32"),)),
    Headline("Matrix product, f64", "gemm", "flops", (("type", "f64"),)),
    Headline("Matrix product, f32", "gemm", "flops", (("type", "f32"),)),
    Headline("Memory ceiling", "working_set", "memory"),
    Headline("STREAM triad", "stream", "triad"),
    Headline("STREAM triad, one thread", "stream", "triad", (("threads", "1"),)),
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


def best_of(headline: Headline, measured: Iterable[Measurement]) -> Measurement | None:
    """The best median that fits; None where nothing of it was measured."""
    fitting = [m for m in measured if headline.fits(m)]
    if not fitting:
        return None
    if lower_is_better(fitting[0].unit):
        return min(fitting, key=lambda m: m.median)
    return max(fitting, key=lambda m: m.median)
