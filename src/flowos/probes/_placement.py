"""Where OpenMP places threads, so that equivalent settings are measured once.

Sources: OpenMP 5.2 section 10.1.3 (close, spread); Intel's Thread Affinity Interface (compact,
scatter). Where the standard leaves a choice, as in libgomp and libomp.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import LogicalCpu, Pairs

Places = Literal["threads", "cores", "sockets"]
RankBind = Literal["close", "spread", "compact", "scatter"]
Placement = tuple[tuple[int, ...], ...]
"""For each thread the cpus it may run on; sorted, as threads are interchangeable."""


@dataclass(frozen=True, slots=True)
class Affinity:
    """OMP_PLACES and OMP_PROC_BIND; or KMP_AFFINITY, if bind is compact or scatter."""

    places: Places
    bind: RankBind

    @property
    def name(self) -> str:
        return f"{self.places}+{self.bind}"

    @property
    def variables(self) -> Pairs:
        if self.bind in ("compact", "scatter"):
            granularity = self.places.removesuffix("s")
            return (("KMP_AFFINITY", f"granularity={granularity},{self.bind}"),)
        return (("OMP_PLACES", self.places), ("OMP_PROC_BIND", self.bind))


OPENMP = (
    Affinity("cores", "close"),
    Affinity("cores", "spread"),
    Affinity("threads", "close"),
    Affinity("threads", "spread"),
    Affinity("sockets", "close"),
    Affinity("sockets", "spread"),
)
INTEL = (
    Affinity("cores", "compact"),
    Affinity("cores", "scatter"),
    Affinity("threads", "compact"),
    Affinity("threads", "scatter"),
)


def placement(affinity: Affinity, cpus: Sequence[LogicalCpu], threads: int) -> Placement:
    """The cpus of each of `threads` (at least 1) threads on the usable `cpus` (at least one)."""
    places = _places(affinity.places, cpus)
    count = len(places)
    if affinity.bind == "close":
        chosen = [i * count // max(count, threads) for i in range(threads)]
    elif affinity.bind == "spread":
        chosen = [i * count // threads for i in range(threads)]
    else:
        order = _compact(cpus) if affinity.bind == "compact" else _scattered(cpus)
        of_cpu = {number: i for i, place in enumerate(places) for number in place}
        chosen = [of_cpu[order[i % len(order)].number] for i in range(threads)]
    return tuple(sorted(places[i] for i in chosen))


def distinct(
    affinities: Iterable[Affinity], cpus: Sequence[LogicalCpu], threads: int
) -> tuple[tuple[Affinity, tuple[Affinity, ...]], ...]:
    """The distinct affinities on these cpus, each with those equivalent to it."""
    found: dict[Placement, list[Affinity]] = {}
    for affinity in affinities:
        found.setdefault(placement(affinity, cpus, threads), []).append(affinity)
    return tuple((first, tuple(same)) for first, *same in found.values())


def _compact(cpus: Iterable[LogicalCpu]) -> list[LogicalCpu]:
    """The cpus socket by socket, core by core."""
    return sorted(cpus, key=lambda c: (c.socket, c.core, c.number))


def _places(kind: Places, cpus: Iterable[LogicalCpu]) -> list[tuple[int, ...]]:
    keys = {
        "threads": lambda c: (c.socket, c.core, c.number),
        "cores": lambda c: (c.socket, c.core),
        "sockets": lambda c: (c.socket,),
    }
    groups = groupby(_compact(cpus), key=keys[kind])
    return [tuple(c.number for c in group) for _, group in groups]


def _scattered(cpus: Iterable[LogicalCpu]) -> list[LogicalCpu]:
    """Alternate sockets, then cores; second hardware threads last."""
    ranks: dict[LogicalCpu, tuple[int, int]] = {}
    for _, in_socket in groupby(_compact(cpus), key=lambda c: c.socket):
        for core, (_, in_core) in enumerate(groupby(in_socket, key=lambda c: c.core)):
            ranks |= {cpu: (thread, core) for thread, cpu in enumerate(in_core)}
    return sorted(ranks, key=ranks.__getitem__)
