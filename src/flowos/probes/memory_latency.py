"""Latency of memory: the time of one dependent load, from the first cache to each NUMA node."""

from collections.abc import Sequence

from flowos.model import (
    Case,
    Chart,
    Facts,
    Measurement,
    MeasurementRequest,
    NumaNode,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler, read_answer
from flowos.probes._cores import NO_COMPILER, build_for, options_of, remembered

MEMORY = "memory_latency"
"""The metric of a load that no cache serves: at the largest size."""

MIN_BYTES, MAX_BYTES = 16 << 10, 2 << 30
BEYOND_CACHES = 4
MEMORY_SHARE = 0.25
EFFORTS = {"quick": (1, 3), "normal": (2, 5), "full": (4, 9)}
"""Sizes per octave, and repetitions of each."""


class MemoryLatency(Probe):
    """Metrics latency (second) over bytes, and memory_latency: beyond the caches, by NUMA node.

    Pointers in a random cycle over all lines of the working set, one load at a time, as lmbench's
    lat_mem_rd and Intel's MLC measure it. Of the first core of each NUMA node; the curve is of the
    first one in its own memory, the other pairs of nodes have memory_latency alone.
    """

    info = ProbeInfo(
        name="memory_latency",
        title="Latency of memory",
        charts=(
            Chart(
                title="Latency over the working set",
                kind="curve",
                x="bytes",
                metrics=("latency",),
                series=("cpu_node", "memory_node"),
                x_label="working set of one core, bytes",
                y_label="second",
                log_x=True,
                log_y=True,
                ceilings=False,
                about="One load that waits for the one before, in random order: no prefetcher"
                " helps. Each step is the end of a cache.",
            ),
            Chart(
                title="Latency from a NUMA node to the memory of another",
                kind="matrix",
                x="memory_node",
                metrics=(MEMORY,),
                series=("cpu_node",),
                x_label="memory of NUMA node",
                y_label="second",
                ceilings=False,
            ),
        ),
        headlines=(Headline("Memory latency", MEMORY),),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        per_octave, repetitions = EFFORTS[request.effort]
        most = _max_bytes(facts)
        pairs = _pairs(facts)
        return tuple(
            Case(
                self.name,
                levels=(("cpu_node", str(cpu_node)), ("memory_node", str(memory_node))),
                details=(
                    ("cpu", str(cpu)),
                    ("node", str(memory_node) if len(pairs) > 1 else "-1"),
                    *remembered(compiler),
                    ("least", str(most if i else MIN_BYTES)),
                    ("most", str(most)),
                    ("per_octave", str(per_octave)),
                    ("repetitions", str(repetitions)),
                ),
            )
            for i, (cpu_node, cpu, memory_node) in enumerate(pairs)
        )

    def seconds(self, case: Case) -> float:
        """Of each size the cycle is made and gone once: 150 ns for each line."""
        least, most = int(case.detail("least")), int(case.detail("most"))
        per_octave, repetitions = int(case.detail("per_octave")), int(case.detail("repetitions"))
        lines = most / 64 if least == most else most / 64 / (1 - 2 ** (-1 / per_octave))
        sizes = 1 + per_octave * (most.bit_length() - least.bit_length())
        return 0.1 + 150e-9 * 2 * lines + 0.003 * sizes * (repetitions + 1)

    def program(self, case: Case) -> Program:
        return Program(
            argv=options_of(case, "cpu", "node", "least", "most", "per_octave", "repetitions"),
            build=build_for(case, "memory_latency.c", ("-O2", "-pthread"), ("-lm",)),
            limit_seconds=60 + 10 * self.seconds(case),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured):
            return readings
        last = max(readings, key=lambda reading: int(dict(reading.levels)["bytes"]))
        notes = (("from_bytes", dict(last.levels)["bytes"]),)
        memory = Reading(metric=MEMORY, unit="second", values=last.values, notes=notes)
        return (*readings, memory) if len(readings) > 1 else (memory,)

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        ours = [m for m in measured if m.metric == MEMORY and m.case.probe == self.name]
        near = [m.value for m in ours if m.case.level("cpu_node") == m.case.level("memory_node")]
        far = [m for m in ours if m.case.level("cpu_node") != m.case.level("memory_node")]
        if not near or not far:
            return ()
        worst = max(far, key=lambda m: m.value)
        pair = f"NUMA node {worst.case.level('cpu_node')} to {worst.case.level('memory_node')}"
        return (f"memory of another NUMA node takes up to {worst.value / min(near):.2f}x: {pair}",)


def _max_bytes(facts: Facts) -> int:
    """Four times the largest cache of one core, and 64 MiB at least; as memory allows."""
    largest = max((c.size_bytes for c in facts.caches if c.kind != "instruction"), default=0)
    most = min(max(64 << 20, BEYOND_CACHES * largest), MAX_BYTES)
    ours = facts.usable_memory_bytes
    room = [int(MEMORY_SHARE * ours) // 65536 * 65536] if ours else []
    return max(min([most, *room]), 2 * MIN_BYTES)


def _pairs(facts: Facts) -> list[tuple[int, int, int]]:
    """NUMA node of a cpu, the cpu, NUMA node of the memory; the first node with its own first."""
    cpus = facts.one_per_core
    first = {cpu.node: cpu.number for cpu in reversed(cpus)}
    memories = [node.number for node in facts.nodes if _is_usable(node)] or [cpus[0].node]
    own = cpus[0].node
    order = sorted(first, key=lambda node: (node != own, node))
    near = sorted(memories, key=lambda node: (node != own, node))
    return [(node, first[node], memory) for node in order for memory in near]


def _is_usable(node: NumaNode) -> bool:
    return node.kind != "GPU" and node.memory_bytes > 0
