"""Advice from a sweep of STREAM: what to set, and what that gains."""

from collections.abc import Iterator

from flowos.model import Advice, Case, Verdict
from flowos.probes._placement import INTEL, OPENMP
from flowos.probes._tuning_gain import TuningGain

USUAL = {"stores": "plain", "pages": "system", "flags": "O2"}
"""Axis -> the level that programs have by default; of other axes every level counts."""


def advice(found: TuningGain) -> tuple[Advice, ...]:
    """Advice for each axis on which the default level, or the worst of several, is slower."""
    best: dict[str, Verdict] = {}
    for v in found.settings:
        if v.answer == "slower" and _is_usual(found, v) and v.ratio > 0:
            axis = "places" if v.axis == "bind" else v.axis
            best[axis] = min(best.get(axis, v), v, key=lambda each: each.ratio)
    return tuple(_advice(found, axis, v) for axis, v in best.items())


def _is_usual(found: TuningGain, v: Verdict) -> bool:
    """Is it the level that programs have by default? Of threads the most."""
    if v.axis == "threads":
        most = max(
            int(n)
            for each in found.settings
            for n in (each.base, each.other)
            if each.axis == "threads"
        )
        return int(v.other) == most
    return v.other == USUAL.get(v.axis, v.other)


def _advice(found: TuningGain, axis: str, v: Verdict) -> Advice:
    at = ", ".join(f"{name} {level}" for name, level in found.best.levels)
    return Advice(
        do=" ".join(_action(found.best, axis)),
        gain=1 / v.ratio,
        why=f"STREAM {found.metric} with {at}, compared with {v.axis} {v.other}",
        trusted=not v.disturbed,
    )


def _action(best: Case, axis: str) -> Iterator[str]:
    level = best.level(axis)
    if axis == "places":
        affinity = next(a for a in OPENMP + INTEL if (a.places, a.bind) == _bound(best))
        yield "`export {}`".format(" ".join(f"{name}={word}" for name, word in affinity.variables))
    elif axis == "threads":
        yield f"`export OMP_NUM_THREADS={level}`"
    elif axis == "flags":
        yield f"compile with `{best.detail('flags')}`"
    elif axis == "pages":
        yield "huge pages: `export GLIBC_TUNABLES=glibc.malloc.hugetlb=1` (glibc from 2.35 on)"
    elif axis == "stores":
        yield "store past the caches what is not read again soon:"
        yield "`-qopt-streaming-stores=always` of icx, `__builtin_nontemporal_store` of clang,"
        yield "`_mm_stream_pd` elsewhere"
    else:
        yield f"take {axis} {level}"


def _bound(case: Case) -> tuple[str, str]:
    return case.level("places"), case.level("bind")
