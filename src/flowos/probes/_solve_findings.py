"""What measurements of the solver say together: equal answers."""

from collections.abc import Iterable

from flowos.model import Case, Measurement

PROBLEM = ("problem", "size", "setting")


def equal_answers(measured: Iterable[Measurement]) -> tuple[str, ...]:
    """For each problem and setting: was x the same bits, however many ranks, threads and MPIs?"""
    found: dict[tuple[str, ...], dict[str, list[Case]]] = {}
    for m in measured:
        if m.metric == "total" and (x := m.case.detail("x")):
            key = tuple(m.case.level(axis) for axis in PROBLEM)
            found.setdefault(key, {}).setdefault(x, []).append(m.case)
    return tuple(_in_words(key, by_hash) for key, by_hash in found.items())


def _in_words(key: tuple[str, ...], by_hash: dict[str, list[Case]]) -> str:
    what = " ".join(word for word in key if word)
    if len(by_hash) == 1:
        ((x, cases),) = by_hash.items()
        took = cases[0].detail("iterations")
        after = f", after {took} iterations" if took else ""
        same = f"x is the same to the last bit in all {len(cases)} cases"
        return f"solve {what}: {same} (hash {x}{after})"
    one, other, *_ = (cases[0] for cases in by_hash.values())
    return f"solve {what}: x is NOT the same: {one.label} differs from {other.label}"
