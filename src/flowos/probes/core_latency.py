"""Latency from core to core: how long a cache line takes from one to another."""

from collections.abc import Mapping
from itertools import combinations

from flowos._dataclasses import replace
from flowos.model import (
    Case,
    Chart,
    Effort,
    Facts,
    LogicalCpu,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._base import (
    Headline,
    Probe,
    ProbeInfo,
    Program,
    best_compiler,
    read_answer,
)
from flowos.probes._cores import NO_COMPILER, build_for, remembered

MAX_CORES = {"quick": 8, "normal": 16, "full": 128}
"""Of the matrix: each pair of them is measured."""
MAX_SIBLINGS = {"quick": 2, "normal": 4, "full": 32}
"""Pairs of hardware threads of one core."""

DISTANCES = ("core", "cache", "socket", "machine")
"""What two hardware threads share: a core, the last-level cache, a socket, the machine."""


class CoreLatency(Probe):
    """Metric latency (second) by distance: half of a round trip of one cache line.

    Two pinned threads write the line by turns. Pairs of cores have axes `from` and `to`, which make
    a matrix; siblings of one core have the axis `pair`, as they are outside of it.
    """

    info = ProbeInfo(
        name="core_latency",
        title="Latency from core to core",
        charts=(
            Chart(
                title="A cache line from core to core",
                kind="matrix",
                x="to",
                metrics=("latency",),
                series=("from",),
                y_label="second",
                ceilings=False,
                about="Half of a round trip of one cache line between the first hardware threads of"
                " two cores. A pair is measured once.",
            ),
            Chart(
                title="A cache line by what both threads share",
                kind="bars",
                x="distance",
                metrics=("latency",),
                x_label="distance",
                y_label="second",
                ceilings=False,
                about="The fastest pair of each distance.",
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
        pairs = pairs_by_distance(facts, request.effort)
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
            limit_seconds=60 + 10 * self.seconds(case),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured) or case.level("distance") != "core":
            return readings
        return tuple(replace(each, levels=(("pair", _pair(each)),)) for each in readings)


def pairs_by_distance(facts: Facts, effort: Effort) -> Mapping[str, list[tuple[int, int]]]:
    """Some siblings of a core, and all pairs of the cores of the matrix, the nearest first."""
    cache = _last_cache_of(facts)
    siblings = _siblings(facts)
    found: dict[str, list[tuple[int, int]]] = {distance: [] for distance in DISTANCES}
    found["core"] = _spread(siblings, MAX_SIBLINGS[effort])
    for a, b in combinations(_matrix_cores(facts, MAX_CORES[effort], cache), 2):
        found[_distance(a, b, cache)].append((a.number, b.number))
    return {distance: pairs for distance, pairs in found.items() if pairs}


def _siblings(facts: Facts) -> list[tuple[int, int]]:
    """The first two hardware threads of each core that has two."""
    of_core: dict[int, list[int]] = {}
    for cpu in sorted(facts.usable, key=lambda cpu: cpu.number):
        of_core.setdefault(cpu.core, []).append(cpu.number)
    return [(threads[0], threads[1]) for threads in of_core.values() if len(threads) > 1]


def _matrix_cores(facts: Facts, max_cores: int, cache: Mapping[int, int]) -> list[LogicalCpu]:
    """All cores, or neighbours two by two, spread over sockets and caches; by number."""
    cores = sorted(facts.one_per_core, key=lambda c: (c.socket, cache[c.number], c.number))
    if len(cores) > max_cores:
        places = [i * len(cores) // (max_cores // 2) for i in range(max_cores // 2)]
        cores = [cores[place + i] for place in places for i in (0, 1)]
    return sorted(cores, key=lambda cpu: cpu.number)


def _spread(pairs: list[tuple[int, int]], max_pairs: int) -> list[tuple[int, int]]:
    step = max(1, len(pairs) // max_pairs)
    return pairs[::step][:max_pairs]


def _pair(reading: Reading) -> str:
    return "-".join(level for _, level in reading.levels)


def _distance(a: LogicalCpu, b: LogicalCpu, cache: Mapping[int, int]) -> str:
    """The smallest thing that two cores share."""
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
