"""Times over nodes, and the efficiency of strong and weak scaling."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from flowos.model import Measurement
from flowos.probes._cores import counted


def scaling_over_nodes(
    measured: Iterable[Measurement], metric: str, axes: Sequence[str], *, weak: bool = False
) -> Iterator[str]:
    """For each combination of levels of these axes a sentence, where there are several counts.

    Efficiency is the time of the fewest nodes over that of others, which is to be as long where the
    work grows with the nodes (weak), else as many times shorter as they are more.
    """
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for m in measured:
        if m.metric == metric and (nodes := m.case.level("nodes")):
            key = (m.case.probe, *(m.case.level(axis) for axis in axes))
            found.setdefault(key, {})[int(nodes)] = m.median
    for key, times in found.items():
        if len(times) > 1:
            yield f"{' '.join(filter(None, key))}: {', '.join(_times(times, weak))}"


def _times(times: Mapping[int, float], weak: bool) -> Iterator[str]:
    fewest = min(times)
    for nodes, seconds in sorted(times.items()):
        share = times[fewest] / seconds * (1.0 if weak else fewest / nodes)
        efficiency = f" ({share:.0%} efficient)" if nodes > fewest else ""
        yield f"{counted(str(nodes), 'node')} {seconds:.3g} s{efficiency}"
