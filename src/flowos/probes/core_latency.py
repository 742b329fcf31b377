"""Latency from core to core: how long a cache line takes from one to another."""

from collections.abc import Iterator, Mapping

from flowos.model import (
    Case,
    Chart,
    Facts,
    LogicalCpu,
    MeasurementRequest,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler
from flowos.probes._cores import NO_COMPILER, build_for, remembered

MOST_PAIRS = {"quick": 2, "normal": 4, "full": 32}
"""Of each distance."""

DISTANCES = ("core", "cache", "socket", "machine")
"""What two hardware threads share: a core, the last-level cache, a socket, the machine."""


class CoreLatency(Probe):
    """Metric latency (second) by distance and pair: half of a round trip of one cache line.

    Two pinned threads write the line by turns. Few pairs of each distance are taken, spread over
    the machine; with full effort more.
    """

    info = ProbeInfo(
        name="core_latency",
        title="Latency from core to core",
        charts=(
            Chart(
                title="A cache line from core to core",
                kind="bars",
                x="pair",
                metrics=("latency",),
                series=("distance",),
                x_label="two hardware threads",
                y_label="second",
                ceilings=False,
                about="Half of a round trip of one cache line, by what both threads share.",
            ),
        ),
        headlines=(
            Headline("Core to core, same cache", "latency", (("distance", "cache"),)),
            Headline("Core to core, other socket", "latency", (("distance", "machine"),)),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        if facts.quota_cpus is not None and facts.quota_cpus < 2:
            return Unmeasured(
                reason=f"two threads that wait busily need two cores, here are {facts.quota_cpus}"
            )
        pairs = pairs_by_distance(facts, MOST_PAIRS[request.effort])
        if not pairs:
            return Unmeasured(reason="two hardware threads are needed, here is one")
        return tuple(
            Case(
                self.name,
                levels=(("distance", distance),),
                details=(
                    ("pairs", ",".join(f"{a}-{b}" for a, b in found)),
                    *remembered(compiler),
                    ("repetitions", "5" if request.effort == "quick" else "9"),
                ),
            )
            for distance, found in pairs.items()
        )

    def seconds(self, case: Case) -> float:
        return 0.03 * len(case.detail("pairs").split(","))

    def program(self, case: Case) -> Program:
        repetitions = case.detail("repetitions")
        return Program(
            argv=("--pairs", case.detail("pairs"), "--repetitions", repetitions),
            build=build_for(case, "core_latency.c", ("-O2", "-pthread")),
            cores=2,
        )


def pairs_by_distance(facts: Facts, most: int) -> Mapping[str, list[tuple[int, int]]]:
    """At most so many pairs of each distance that there is, the nearest first."""
    found: dict[str, list[tuple[int, int]]] = {}
    for distance in DISTANCES:
        pairs = list(_pairs(facts, distance))
        step = max(1, len(pairs) // most)
        if pairs:
            found[distance] = pairs[::step][:most]
    return found


def _pairs(facts: Facts, distance: str) -> Iterator[tuple[int, int]]:
    """A thread and the first one at this distance, for each thread that has one."""
    cache = _last_cache_of(facts)
    cores = facts.one_per_core
    cpus = sorted(facts.usable, key=lambda cpu: cpu.number) if distance == "core" else cores
    for i, a in enumerate(cpus):
        for b in cpus[i + 1 :]:
            if _distance(a, b, cache) == distance:
                yield a.number, b.number
                break


def _distance(a: LogicalCpu, b: LogicalCpu, cache: Mapping[int, int]) -> str:
    """The smallest thing that both share."""
    if a.core == b.core:
        return "core"
    if cache[a.number] == cache[b.number]:
        return "cache"
    return "socket" if a.socket == b.socket else "machine"


def _last_cache_of(facts: Facts) -> Mapping[int, int]:
    """The index of the last-level cache of each hardware thread; its socket's where unknown."""
    found = {cpu.number: -1 - cpu.socket for cpu in facts.cpus}
    last = max((cache.level for cache in facts.caches), default=0)
    for i, cache in enumerate(facts.caches):
        if cache.level == last and cache.kind != "instruction":
            found.update(dict.fromkeys(cache.cpus, i))
    return found
