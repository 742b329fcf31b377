"""STREAM: memory bandwidth over compilers, flags, stores, thread placement and thread count.

Source: McCalpin, STREAM; the sweep is table A of Nagai et al., AXIES 2023 (Azure CycleCloud).
"""

import shlex
from collections.abc import Iterable, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.model import (
    Advice,
    Argv,
    Case,
    Chart,
    Compiler,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._arrays import (
    CACHES_PER_ARRAY,
    MIN_ARRAY_BYTES,
    elements_for,
    last_cache_bytes,
)
from flowos.probes._base import (
    WAYS,
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    compared_case,
    read_answer,
    with_details,
)
from flowos.probes._build import Build
from flowos.probes._env_charts import env_bars
from flowos.probes._intensity import TRIAD, Intensity
from flowos.probes._nominal import nominal_memory
from flowos.probes._placement import INTEL, OPENMP, Affinity, distinct
from flowos.probes._stream_advice import advice
from flowos.probes._suspicious import crowded, with_suspicion
from flowos.probes._tuning_gain import TuningGain

KERNELS = ("copy", "scale", "add", "triad")
STORES = ("nt", "plain")
USUAL_PAGES = "system"
"""The defaults of a program, as of the official STREAM and likwid-bench."""
BYTES_PER_PASS = 80
REPEATS = {"quick": (8, 0.2), "normal": (8, 0.2), "full": (20, 1.0)}
"""Maximum number of passes, and seconds after which no more are started."""

COMPARED_REPEATS = {"quick": "9", "normal": "17", "full": "33"}
"""Including warm-up; the number must not depend on how fast an environment is."""
COMPARED_WAYS = {"quick": WAYS[:1], "normal": WAYS, "full": WAYS}


@dataclass(frozen=True, slots=True)
class Stack:
    """A compiler and a set of its flags, by the name under which the sweep shows it."""

    compiler: Compiler
    level: str
    flags: Argv

    @property
    def wide(self) -> bool:
        """Are vectors of 512 bits forced?"""
        return self.level.endswith(("-512", "-zmm"))


@dataclass(frozen=True, slots=True)
class StreamPoint:
    """One point of the sweep. same: affinities that are equivalent here."""

    stack: Stack
    stores: str
    affinity: Affinity
    same: tuple[Affinity, ...]
    threads: int
    pages: str = USUAL_PAGES


class Stream(Probe):
    """Metrics copy, scale, add, triad (byte/s, without write-allocate)."""

    info = ProbeInfo(
        name="stream",
        title="Memory bandwidth (STREAM)",
        charts=(
            Chart(
                title="STREAM triad over threads",
                kind="curve",
                x="threads",
                metrics=("triad",),
                series=("compiler", "flags", "stores", "places", "bind", "pages"),
                x_label="threads",
                y_label="byte/s",
                about="Bytes as the kernel states them. nt stores past the caches, so nothing is"
                " read only to be overwritten.",
            ),
            Chart(
                title="STREAM kernels",
                kind="bars",
                x="stores",
                metrics=KERNELS,
                series=("compiler", "flags"),
                facets=("threads",),
                y_label="byte/s",
            ),
        ),
        rounds=4,
        headlines=(
            Headline("STREAM triad, system pages", "triad", (("pages", USUAL_PAGES),)),
            Headline("STREAM triad, huge pages", "triad", (("pages", "huge"),)),
            Headline(
                "STREAM triad, system pages, one thread",
                "triad",
                (("pages", USUAL_PAGES), ("threads", "1")),
            ),
        ),
        roofs=("triad",),
        tunes="triad",
        deciding=("triad",),
        env_charts=(env_bars("STREAM triad", "way", "triad", ("stores",), "byte/s"),),
        nominal=nominal_memory,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        stacks = stacks_of(facts)
        if not stacks:
            return Unmeasured(
                reason="no C compiler with OpenMP was found",
                remedy="apt install gcc libc6-dev (for clang also libomp-dev)",
            )
        elements = elements_for(facts)
        if elements * 8 < MIN_ARRAY_BYTES // 4:
            return Unmeasured(reason="too little memory for three arrays larger than the caches")
        sweep = {"quick": _quick, "normal": _normal, "full": _full}[request.effort]
        points = dict.fromkeys(sweep(facts, stacks))
        return tuple(_case(p, elements, request, facts) for p in points)

    def seconds(self, case: Case) -> float:
        """Assumes 10 GB/s per thread, up to 16 threads; page faults at a fifth of it."""
        rate = 10e9 * min(16, int(case.level("threads")))
        elements = int(case.detail("elements"))
        one_pass = BYTES_PER_PASS * elements / rate
        passes = min(
            int(case.detail("repeats")), max(3.0, float(case.detail("seconds")) / one_pass)
        )
        return 0.05 + 24 * elements * 5 / rate / 4 + passes * one_pass

    def program(self, case: Case) -> Program:
        affinity = next(
            a
            for a in OPENMP + INTEL
            if (a.places, a.bind) == (case.level("places"), case.level("bind"))
        )
        threads = case.level("threads")
        return Program(
            argv=(
                case.detail("elements"),
                threads,
                case.detail("repeats"),
                case.detail("seconds"),
                case.level("stores"),
                case.level("pages"),
            ),
            build=Build(
                source="stream.c",
                compiler=case.detail("compiler"),
                compiler_version=case.detail("compiler_version"),
                flags=tuple(shlex.split(case.detail("flags"))),
            ),
            variables=(
                ("OMP_NUM_THREADS", threads),
                ("OMP_DYNAMIC", "false"),
                *affinity.variables,
            ),
            cores=int(threads),
            limit_seconds=60.0 + 10 * self.seconds(case),
            takes_turns=True,
            memory_bytes=3 * 8 * int(case.detail("elements")),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured):
            return readings
        reasons = (case.detail("doubt"), crowded(readings, int(case.level("threads"))))
        return with_suspicion(readings, reasons)

    def ceiling(self, case: Case) -> Case | None:
        """The memory rate of one core; with more threads, the best one."""
        alone = {"cores": "1"} if case.level("threads") == "1" else {}
        return Case("working_set").at(metric="memory", **alone)

    def intensity(self, measured: Measurement) -> Intensity | None:
        return TRIAD if measured.metric == "triad" else None

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """The first compiler's first flags on all cores, plain and nt, entered in each way."""
        cases = self.cases(facts, replace(request, effort="quick"))
        if isinstance(cases, Unmeasured):
            return cases
        most = max(int(case.level("threads")) for case in cases)
        repeats = COMPARED_REPEATS[request.effort]
        return tuple(
            compared_case(
                self,
                with_details(case, repeats=repeats, seconds="3600"),
                ("stores", "threads"),
                f"{case.level('compiler')} {case.level('flags')}",
                way=way,
            )
            for way in COMPARED_WAYS[request.effort]
            for case in cases
            if int(case.level("threads")) == most
        )

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        return merged(dict.fromkeys(m.case for m in measured))

    def advice(
        self,
        measured: Sequence[Measurement],
        best: TuningGain | None,
    ) -> tuple[Advice, ...] | None:
        return advice(best) if best else None


def merged(cases: Iterable[Case]) -> tuple[str, ...]:
    """Which placements were left out, because they are equivalent on this machine."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for case in cases:
        if same := tuple(case.detail("same_as").split()):
            measured = f"{case.level('places')}+{case.level('bind')}"
            found.setdefault((measured, same), {})[case.level("threads")] = None
    return tuple(
        f"on this machine OpenMP places {_listed(sorted(threads, key=int), 'or')} threads alike by"
        f" {_listed((measured, *same))} (places+bind): measured once, as {measured}"
        for (measured, same), threads in found.items()
    )


def _listed(words: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    *rest, end = words
    return f"{', '.join(rest)} {last} {end}" if rest else end


def stacks_of(facts: Facts) -> tuple[Stack, ...]:
    """Every C compiler that can do OpenMP, with each of its sets of flags; the newest first."""
    order = ("gcc", "clang", "icx", "nvc")
    found = [c for c in facts.compilers if c.language == "c" and c.openmp and c.family in order]
    found.sort(key=lambda c: _version(c.version), reverse=True)
    found.sort(key=lambda c: order.index(c.family))
    wide = "avx512f" in facts.instruction_sets
    native = "-mcpu=native" if facts.architecture == "aarch64" else "-march=native"
    return tuple(
        Stack(compiler, level, flags)
        for compiler in found
        for level, flags in _flags(compiler.family, native, wide)
    )


def _flags(family: str, native: str, wide: bool) -> Iterable[tuple[str, Argv]]:
    """Sets of flags of a family, the preferred one first.

    No loop may become a call of memcpy, as libraries may store past the caches. For nvc no such
    flag is known: its copy may be the library's.
    """
    if family == "nvc":
        yield "fast", ("-fast", "-mp", "-Mconcur")
        return
    if family == "icx":
        common: Argv = ("-qopenmp", "-qopenmp-link=static", "-fno-builtin")
        yield "xHost", ("-O3", "-xHost", *common)
        if wide:
            yield "xHost-zmm", ("-O3", "-xHost", "-qopt-zmm-usage=high", *common)
    else:
        common = ("-fopenmp", "-fno-builtin")
        if family == "gcc":
            common = (*common, "-fno-tree-loop-distribute-patterns")
        yield "O3-native", ("-O3", native, *common)
        if wide:
            yield "O3-native-512", ("-O3", native, "-mprefer-vector-width=512", *common)
    yield "O2", ("-O2", *common)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def thread_counts(facts: Facts) -> tuple[int, ...]:
    """1, 2, 4 .. all cores, and all hardware threads; no more than a cgroup quota allows."""
    cores, most = max(1, len(facts.one_per_core)), max(1, len(facts.usable))
    counts = {2**i for i in range(cores.bit_length())} | {cores, most}
    quota = most if facts.quota_cpus is None else max(1, int(facts.quota_cpus))
    return tuple(sorted(n for n in counts | {quota} if n <= min(most, quota)))


def _at(facts: Facts, stack: Stack, threads: int) -> list[tuple[Affinity, tuple[Affinity, ...]]]:
    """The distinct affinities for this compiler, the default (cores+close) first."""
    possible = OPENMP + INTEL if stack.compiler.family == "icx" else OPENMP
    return list(distinct(possible, facts.usable, threads))


def _usual(facts: Facts, stack: Stack, stores: str, threads: int) -> StreamPoint:
    affinity, same = _at(facts, stack, threads)[0]
    return StreamPoint(stack, stores, affinity, same, threads)


def _with_huge_pages(point: StreamPoint) -> StreamPoint:
    return replace(point, pages="huge")


def _quick(facts: Facts, stacks: tuple[Stack, ...]) -> Iterable[StreamPoint]:
    """The first compiler, both kinds of stores, one thread and all cores."""
    for threads in sorted({1, _all(facts)}, reverse=True):
        for stores in STORES:
            yield _usual(facts, stacks[0], stores, threads)


def _normal(facts: Facts, stacks: tuple[Stack, ...]) -> Iterable[StreamPoint]:
    """On all cores each family's newest compiler with its flags, the first with all of them; then,
    with that one, each placement, huge pages, and all thread counts."""
    everything = _all(facts)
    first = stacks[0]
    newest = {s.compiler.family: s.compiler for s in reversed(stacks)}
    for stack in stacks:
        usual = not stack.wide or stack.compiler == first.compiler
        if usual and newest[stack.compiler.family] == stack.compiler:
            for stores in STORES:
                yield _usual(facts, stack, stores, everything)
    for affinity, same in _at(facts, first, everything):
        yield StreamPoint(first, STORES[0], affinity, same, everything)
    for threads in thread_counts(facts):
        for stores in STORES:
            yield _usual(facts, first, stores, threads)
    yield _with_huge_pages(_usual(facts, first, STORES[0], everything))


def _full(facts: Facts, stacks: tuple[Stack, ...]) -> Iterable[StreamPoint]:
    """All combinations, except that other pages are measured only on all cores."""
    for stack in stacks:
        for stores in STORES:
            yield _with_huge_pages(_usual(facts, stack, stores, _all(facts)))
            for threads in thread_counts(facts):
                for affinity, same in _at(facts, stack, threads):
                    yield StreamPoint(stack, stores, affinity, same, threads)


def _all(facts: Facts) -> int:
    """A thread for each core."""
    return max(n for n in thread_counts(facts) if n <= max(1, len(facts.one_per_core)))


def _case(point: StreamPoint, elements: int, request: MeasurementRequest, facts: Facts) -> Case:
    repeats, seconds = REPEATS[request.effort]
    stack = point.stack
    return Case(
        "stream",
        levels=(
            ("compiler", stack.compiler.name),
            ("flags", stack.level),
            ("stores", point.stores),
            ("places", point.affinity.places),
            ("bind", point.affinity.bind),
            ("pages", point.pages),
            ("threads", str(point.threads)),
        ),
        details=(
            ("compiler", str(stack.compiler.path)),
            ("compiler_version", stack.compiler.version),
            ("flags", shlex.join(stack.flags)),
            ("elements", str(elements)),
            ("repeats", str(repeats)),
            ("seconds", str(seconds)),
            ("same_as", " ".join(a.name for a in point.same)),
            ("doubt", _suspicious(elements, facts)),
        ),
    )


def _suspicious(elements: int, facts: Facts) -> str:
    """A reason to doubt the number if the arrays are too small; "" if not."""
    cache = last_cache_bytes(facts)
    if not cache:
        return "the caches are unknown: the arrays may be too small"
    times = elements * 8 / cache
    if times < CACHES_PER_ARRAY * 0.99:
        return f"memory allows arrays of only {times:.1f} times the last-level caches, not 4"
    return ""
