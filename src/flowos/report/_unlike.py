"""How what was measured differs from a number of a paper that it is not set against."""

from collections.abc import Iterator, Sequence

from flowos.model import Case, PublishedNumber

_SHOWN = 4
"""So many levels of ours are named."""


def why_unlike(number: PublishedNumber, cases: Sequence[Case]) -> str:
    """In words; "" if they do not differ, or there are none. cases: of its probe and metric."""
    return "; ".join(_differences(number, cases)) if cases else ""


def _differences(number: PublishedNumber, cases: Sequence[Case]) -> Iterator[str]:
    if all(case.level("device") == "cpu" for case in cases):
        yield "ours was measured on processors, the paper's on GPUs"
    for name, theirs in number.levels:
        ours = dict.fromkeys(level for case in cases if (level := level_of(case, name)))
        if ours and theirs not in ours:
            yield f"ours is of {name} {_few(tuple(ours))}, the paper's of {theirs}"
    if number.data:
        yield f"ours is of another amount of data, the paper's of {number.data}"


def level_of(case: Case, name: str) -> str:
    """As a number of a paper has it: what is not between nodes is on one."""
    return case.level(name, "1" if name == "nodes" else "")


def _few(levels: Sequence[str]) -> str:
    return ", ".join((*levels[:_SHOWN], *(["..."] if len(levels) > _SHOWN else [])))
