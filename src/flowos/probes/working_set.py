"""The memory ceiling: bandwidth over the size of the working set."""

from collections.abc import Iterable, Sequence

from flowos._dataclasses import dataclass
from flowos.model import (
    Case,
    Chart,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.plan import find_steps, memory_plateau
from flowos.probes._arrays import elements_for, last_cache_bytes
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler, read_answer
from flowos.probes._cores import NO_COMPILER, build_for, core_sets, counted, on_cores, options_of
from flowos.probes._nominal import nominal_memory
from flowos.probes._suspicious import with_suspicion

KERNELS = ("read", "triad", "triad_nt")
MEMORY = "memory"
"""The metric of bandwidth beyond the last cache, which bounds STREAM."""

CACHES_END_AT = "caches_end_at"
"""The note of MEMORY that holds the steps found: bytes, rising, between commas."""

MIN_BYTES_PER_CORE = 16 << 10
MEMORY_SHARE = 0.5
BEYOND_CACHES = 3
"""Multiple of the last-level caches from which on hardly any access hits them."""

FARTHEST_BYTES = 8 << 30
"""Maximum size of a curve that still falls: one core would take minutes."""

FLAT = 0.9
"""The curve is flat if the best rate is at least this share of that at half the bytes. The program
has the same number: it continues to larger sizes until then, or to the limit."""


@dataclass(frozen=True, slots=True)
class WorkingSetEffort:
    """How far the curve goes: to so many bytes, and beyond STREAM's size, which is many times that
    of the caches. farther: so many times that, if it is not flat yet.
    """

    bytes: int
    farther: int
    per_octave: int
    repetitions: int


EFFORTS = {
    "quick": WorkingSetEffort(128 << 20, 2, 2, 2),
    "normal": WorkingSetEffort(256 << 20, 4, 3, 3),
    "full": WorkingSetEffort(2 << 30, 4, 4, 8),
}


class WorkingSet(Probe):
    """Metrics read, triad, triad_nt (byte/s) over bytes, and memory: the rate beyond the caches.

    `bytes` is the working set of all cores together. Memory is the best rate of the last plateau,
    at sizes from STREAM's own on, as it bounds STREAM. Its reading has notes on where the caches
    end by the curve itself, and on a curve that still falls at its end.
    """

    info = ProbeInfo(
        name="working_set",
        title="Memory ceiling over the working set",
        charts=(
            Chart(
                title="Bandwidth over the working set",
                kind="curve",
                x="bytes",
                metrics=KERNELS,
                series=("cores",),
                x_label="working set of all cores, bytes",
                y_label="byte/s",
                log_x=True,
                log_y=True,
                ceilings=False,
                about="Each step is the end of a cache; the last plateau is memory. triad_nt stores"
                " past the caches.",
            ),
        ),
        headlines=(Headline("Memory ceiling", MEMORY),),
        ceilings=(MEMORY,),
        roofs=(MEMORY,),
        nominal=nominal_memory,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        effort = EFFORTS[request.effort]
        most, limit = _max_bytes(facts, effort)
        sets = core_sets(facts)
        chosen = sets if request.effort == "full" else dict.fromkeys((sets[0], sets[-1]))
        return tuple(
            on_cores(
                self.name,
                compiler,
                cpus,
                details=(
                    ("least", str(MIN_BYTES_PER_CORE * len(cpus))),
                    ("most", str(max(most, 8 * MIN_BYTES_PER_CORE * len(cpus)))),
                    ("limit", str(max(limit, 8 * MIN_BYTES_PER_CORE * len(cpus)))),
                    ("per_octave", str(effort.per_octave)),
                    ("repetitions", str(effort.repetitions)),
                    ("beyond", str(BEYOND_CACHES * last_cache_bytes(facts))),
                    ("stream", str(_stream_bytes(facts))),
                ),
            )
            for cpus in chosen
        )

    def seconds(self, case: Case) -> float:
        """Assumes 20 GB/s, 2 ms for each repetition of a small size, and no size beyond `most`."""
        per_octave, repetitions = int(case.detail("per_octave")), int(case.detail("repetitions"))
        swept = int(case.detail("most")) / (1 - 2 ** (-1 / per_octave))
        small = 12 * per_octave * 0.002
        return len(KERNELS) * (repetitions + 2) * (small + swept / 20e9)

    def program(self, case: Case) -> Program:
        return Program(
            argv=options_of(case, "cpus", "least", "most", "limit", "per_octave", "repetitions"),
            build=build_for(case, "working_set.c", ("-O2", "-pthread"), ("-lm",)),
            cores=int(case.level("cores")),
            limit_seconds=60 + 10 * self.seconds(case) * _times_farther(case),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured):
            return readings
        beyond, stream = (float(case.detail(name, "0")) for name in ("beyond", "stream"))
        return (*readings, *_memory(readings, beyond, stream))

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        return caches_found(measured)


def caches_found(measured: Sequence[Measurement]) -> tuple[str, ...]:
    """A sentence per number of cores: where the curve shows caches to end and memory to begin."""
    ours = [m for m in measured if m.metric == MEMORY]
    return tuple(
        f"with {counted(m.case.level('cores'), 'core')} in use the working-set curve falls at"
        f" {_in_words(m.case.detail('caches_end_at'))}; memory begins at"
        f" {_in_words(m.case.detail('from_bytes'))}"
        for m in ours
        if m.case.detail("caches_end_at")
    )


def _in_words(sizes: str) -> str:
    return ", ".join(
        f"{size / 1024:.0f} KiB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"
        for size in map(float, sizes.split(","))
    )


def _max_bytes(facts: Facts, effort: WorkingSetEffort) -> tuple[int, int]:
    """The largest size of the curve, and its limit while it still falls."""
    beyond_stream = int(_stream_bytes(facts) * 2 ** (1 / effort.per_octave)) + 1
    least = max(effort.bytes, beyond_stream)
    ours = facts.usable_memory_bytes
    room = [int(MEMORY_SHARE * ours)] if ours else []
    farther = max(least, min(least * effort.farther, FARTHEST_BYTES))
    return min([least, *room]), min([farther, *room])


def _stream_bytes(facts: Facts) -> int:
    """Bytes of STREAM's three arrays."""
    return 3 * 8 * elements_for(facts)


def _times_farther(case: Case) -> float:
    return int(case.detail("limit")) / int(case.detail("most"))


def _memory(readings: Sequence[Reading], beyond: float, stream: float) -> Iterable[Reading]:
    """One reading: the best kernel's best rate at each size in memory; or none.

    Memory begins where the curve shows its last plateau, and where a disturbed curve shows none,
    at `beyond` bytes; in any case not before the `stream` bytes of what it bounds, as far as the
    curve goes.
    """
    found: list[tuple[str, float, tuple[float, ...]]] = []
    for kernel in KERNELS:
        sizes, rates = _curve(readings, kernel)
        if not sizes:
            continue
        plateau = memory_plateau(sizes, rates)
        begin = max(plateau.first_bytes if plateau else beyond, min(stream, sizes[-1]))
        values = tuple(r for s, r in zip(sizes, rates, strict=True) if s >= begin)
        if values:
            found.append((kernel, begin, values))
    if found:
        kernel, begin, values = max(found, key=lambda one: max(one[2]))
        ends = ",".join(f"{s.size_bytes:.0f}" for s in find_steps(*_curve(readings, "triad")))
        notes = (("kernel", kernel), ("from_bytes", f"{begin:.0f}"), (CACHES_END_AT, ends))
        memory = Reading(metric=MEMORY, unit="byte/s", values=values, notes=notes)
        yield from with_suspicion([memory], [_still_falls(readings)])


def _still_falls(readings: Sequence[Reading]) -> str:
    """A reason if the best rate of the largest size is clearly below that of half its bytes."""
    best: dict[float, float] = {}
    for size, rate in (point for kernel in KERNELS for point in _points(readings, kernel)):
        best[size] = max(rate, best.get(size, 0.0))
    last = max(best)
    half = max((size for size in best if size <= 0.51 * last), default=last)
    if best[last] >= FLAT * best[half]:
        return ""
    return (
        f"the curve still falls where it ends: {1 - best[last] / best[half]:.0%} from"
        f" {_in_words(str(half))} to {_in_words(str(last))}, so that caches may serve a part of it"
    )


def _points(readings: Sequence[Reading], metric: str) -> list[tuple[float, float]]:
    """Size and best rate, sizes rising."""
    return sorted(
        (float(dict(r.levels)["bytes"]), max(r.values)) for r in readings if r.metric == metric
    )


def _curve(readings: Sequence[Reading], metric: str) -> tuple[list[float], list[float]]:
    points = _points(readings, metric)
    return [size for size, _ in points], [rate for _, rate in points]
