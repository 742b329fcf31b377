"""Which compiler an MPI's wrapper calls, and which pair of MPI and compiler is the best."""

import math
from collections.abc import Iterator, Mapping, Sequence

from flowos._dataclasses import replace
from flowos.model import (
    EQUAL_MARGIN,
    Argv,
    Case,
    Compiler,
    Facts,
    Measurement,
    Mpi,
    Sample,
    Verdict,
)
from flowos.plan import NoiseThresholds, compare
from flowos.probes._best import case_effects

VARIABLE = {
    "openmpi": "OMPI_CC",
    "mpich": "MPICH_CC",
    "mvapich": "MPICH_CC",
    "intel": "I_MPI_CC",
}
"""The variable that names the compiler which mpicc calls."""

_KEYS = (("latency", "8"), ("bandwidth", "1048576"))
_PAIR = "pair"


def compilers_for(mpi: Mpi, facts: Facts) -> tuple[Compiler, ...]:
    """All of C, if its wrapper has a variable for that, and there are several."""
    found = tuple(c for c in facts.compilers if c.language == "c")
    return found if mpi.family in VARIABLE and len(found) > 1 else ()


def wrapper_words(family: str, wrapper: str, compiler: str) -> tuple[str, Argv]:
    """The command that compiles, and its first words: of the wrapper with this compiler."""
    if not compiler:
        return wrapper, ()
    return "env", (f"{VARIABLE[family]}={compiler}", wrapper)


def best_pairs(
    measured: Sequence[Measurement], samples: Sequence[Sample], limits: NoiseThresholds
) -> Iterator[str]:
    """For each key number the best MPI and compiler, and a verdict on each other pair.

    A number that is marked is said to be, and not why, as its row does: its verdict counts the
    undisturbed rounds, where there are enough.
    """
    for metric, size in _KEYS:
        numbers = {_pair(m.case): m for m in measured if _is_key(m.case, m.metric, metric, size)}
        seen = [
            replace(s, case=Case(s.case.probe, ((_PAIR, _pair(s.case)),)))
            for s in samples
            if _is_key(s.case, s.metric, metric, size) and s.values and min(s.values) > 0
        ]
        effects = case_effects(seen, limits)
        if len(effects) > 1:
            best = max(effects, key=effects.__getitem__).level(_PAIR)
            verdicts = compare(
                seen, axis=_PAIR, base=best, margin=EQUAL_MARGIN, looks=1, limits=limits
            )
            yield _best(numbers[best], f"{metric} of {size} bytes", verdicts, numbers)


def _is_key(case: Case, has: str, metric: str, size: str) -> bool:
    return has == metric and case.level("bytes") == size


def _pair(case: Case) -> str:
    compiler = case.level("compiler")
    return f"{case.level('mpi')} and {compiler}" if compiler else case.level("mpi")


def _best(
    m: Measurement, what: str, verdicts: Sequence[Verdict], numbers: Mapping[str, Measurement]
) -> str:
    is_time = m.metric == "latency"
    value = f"{m.value * 1e6:.3g} us" if is_time else f"{m.value / 1e9:.3g} GB/s"
    others = "; ".join(f"{_judged(v)}{_marked(numbers[v.other])}" for v in verdicts)
    more = "; more rounds decide: --minutes" * any(map(_is_open, verdicts))
    return (
        f"best {what}: {value} by {_pair(m.case)}{_marked(m)}; the others are so many times as"
        f" good: {others}{more}"
    )


def _judged(v: Verdict) -> str:
    """Such as mpich 0.50 (0.48 to 0.52), slower."""
    known = v.low > 0 and math.isfinite(v.high)
    ratio = f" {v.ratio:.2f}" if math.isfinite(v.ratio) else ""
    between = f" ({v.low:.2f} to {v.high:.2f})" if known else ""
    if _is_open(v):
        return f"{v.other}{ratio}{between}, inconclusive ({v.why})"
    answer = "equal in the median" if v.answer == "inconclusive" else v.answer
    return f"{v.other}{ratio}{between}, {answer}"


def _is_open(v: Verdict) -> bool:
    """Is the median undecided? To see stalls a sweep is too short."""
    within = 1 / (1 + v.margin) <= v.low and v.high <= 1 + v.margin
    return v.answer == "inconclusive" and not within


def _marked(m: Measurement) -> str:
    return " [marked]" if m.trust.marks else ""
