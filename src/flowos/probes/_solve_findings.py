"""What measurements of the solver say together: equal answers, and scaling over nodes."""

from collections.abc import Iterable, Iterator, Mapping

from flowos.model import Case, Measurement
from flowos.probes._cores import counted

_PROBLEM = ("problem", "size", "setting")


def equal_answers(measured: Iterable[Measurement]) -> tuple[str, ...]:
    """For each problem and setting: was x the same bits, however many ranks, threads and MPIs?"""
    found: dict[tuple[str, ...], dict[str, list[Case]]] = {}
    for m in measured:
        if m.metric == "total" and (x := m.case.detail("x")):
            key = tuple(m.case.level(axis) for axis in _PROBLEM)
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


def scaling_over_nodes(measured: Iterable[Measurement]) -> Iterator[str]:
    """For each problem, setting and MPI: times over nodes, and efficiency of strong scaling.

    Efficiency is the time of the fewest nodes, over that of others times as many as they are more.
    """
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for m in measured:
        if m.metric == "total" and (nodes := m.case.level("nodes")):
            key = tuple(m.case.level(axis) for axis in (*_PROBLEM, "mpi"))
            found.setdefault(key, {})[int(nodes)] = m.median
    for key, times in found.items():
        if len(times) > 1:
            yield f"solve {' '.join(filter(None, key))}: {', '.join(_times(times))}"


def _times(times: Mapping[int, float]) -> Iterator[str]:
    fewest = min(times)
    for nodes, seconds in sorted(times.items()):
        share = fewest * times[fewest] / (nodes * seconds)
        efficiency = f" ({share:.0%} efficient)" if nodes > fewest else ""
        yield f"{counted(str(nodes), 'node')} {seconds:.3g} s{efficiency}"
