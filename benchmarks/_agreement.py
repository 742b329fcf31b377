"""How far a program of ours agrees with the one that people know, measured next to it."""

from collections.abc import Sequence
from statistics import median

from flowos.model import Sample, Verdict


def row_of(
    samples: Sequence[Sample], verdict: Verdict, programs: Sequence[str], margin: float
) -> dict[str, object]:
    """What is printed of a verdict between levels of the axis `program`; spread: of all values."""
    ours = [s for s in samples if set(verdict.rest) < set(s.case.levels)]
    values = {
        name: [s.values[0] for s in ours if s.case.level("program") == name] for name in programs
    }
    return {
        "probe": verdict.probe,
        "metric": verdict.metric,
        **dict(verdict.rest),
        "ratio": round(verdict.ratio, 4),
        "interval": [round(verdict.low, 4), round(verdict.high, 4)],
        "rounds": verdict.rounds,
        "agrees": abs(verdict.ratio - 1) <= margin,
        "why": verdict.why,
        "medians": {name: median(found) for name, found in values.items()},
        "spread": {n: (max(found) - min(found)) / median(found) for n, found in values.items()},
    }
