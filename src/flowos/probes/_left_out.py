"""Sizes that a program was asked for and left out, as it sweeps them itself."""

from collections.abc import Callable, Iterable, Sequence

from flowos.model import Case, Measurement, Pairs, Unmeasured


def sizes_left_out(
    measured: Iterable[Measurement], types: Sequence[str], why: Callable[[Case], Unmeasured]
) -> tuple[tuple[Case, Unmeasured], ...]:
    """The sizes of the detail `sizes` without a number, as cases with several n, by type.

    types: the levels of the axis `type` that the program sweeps; () if it has none.
    """
    done: dict[Pairs, set[tuple[str, str]]] = {}
    cases: dict[Pairs, Case] = {}
    for m in measured:
        levels = tuple(pair for pair in m.case.levels if pair[0] not in ("type", "n"))
        done.setdefault(levels, set()).add((m.case.level("type"), m.case.level("n")))
        cases.setdefault(levels, m.case)
    return tuple(
        (Case(case.probe, (*levels, *_axis("type", type_), ("n", ", ".join(sizes)))), why(case))
        for levels, case in cases.items()
        for type_ in types or ("",)
        if (sizes := [n for n in _asked(case) if (type_, n) not in done[levels]])
    )


def _axis(name: str, level: str) -> Pairs:
    return ((name, level),) if level else ()


def _asked(case: Case) -> list[str]:
    return [n for n in case.detail("sizes").split(",") if n]
