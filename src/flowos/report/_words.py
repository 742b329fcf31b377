"""Wording shared by all formats: a number with spread, shares of its ceilings, and trust."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from flowos._dataclasses import dataclass
from flowos.model import (
    Advice,
    Blas,
    Case,
    Compiler,
    Facts,
    Measurement,
    Mpi,
    NumaNode,
    Run,
    Share,
    Tool,
    Unmeasured,
    Verdict,
    counted,
)
from flowos.plan import ABOVE_CEILING
from flowos.report import _units
from flowos.report._report import HeadlineNumber
from flowos.report._units import Scale

UNKNOWN = "unknown"
IS_CEILING = "it is the ceiling"
MEDIAN = "A number is the median of its repetitions."
RULE = (
    f"{MEDIAN} A ceiling is the best of them, as nothing may "
    "exceed it, and shares are of that best. Of several settings the one is shown that comes out "
    "best when what all settings of a round had in common is taken out, so that a fast minute "
    "makes no winner."
)
"""How a number is chosen for a case, and a case among several; part of every format."""

_COMMANDS = frozenset(
    ("apk", "apt", "dnf", "echo", "export", "flowos", "pacman", "pip", "sudo", "zypper")
)
_SAMPLES = re.compile(r" \(in \d+ of \d+ samples\)$")
_FIGURES = re.compile(r"[\d.]+")


def value_of(m: Measurement, scale: Scale | None = None) -> str:
    """The median; for a ceiling the best. scale: a unit shared with other numbers."""
    return (scale or _units.scale_for((m.value,), m.unit, m.metric)).number(m.value)


def spread_of(m: Measurement, scale: Scale | None = None) -> str:
    """The interquartile range of the repetitions."""
    return (scale or _units.scale_for((m.low, m.high), m.unit, m.metric)).span(m.low, m.high)


def share_of(m: Measurement, kind: str) -> Share | None:
    return next((s for s in m.shares if s.kind == kind), None)


def share_text(m: Measurement, kind: str, scale: Scale | None = None) -> str:
    """Such as 88% of 133 Gflop/s; 'unknown' if there is no such ceiling.

    Where a number is above a measured ceiling by more than 2 %, the ceiling was not reached.
    """
    found = share_of(m, kind)
    if found is None:
        return IS_CEILING if m.ceiling and kind == "measured" else UNKNOWN
    scale = scale or _units.scale_for((found.ceiling,), m.unit, m.metric)
    if is_below(found):
        return f"ceiling not reached: {scale.number(found.ceiling)}"
    return f"{_units.share(found.value)} of {scale.number(found.ceiling)}"


def is_below(found: Share) -> bool:
    """Whether a measured ceiling is below the number, so that a share of it says nothing."""
    return found.kind == "measured" and found.value > ABOVE_CEILING


def label_of(headline: HeadlineNumber) -> str:
    """With library, cores and instruction set, where these bound what it can be."""
    case = headline.measured.case
    library, cores, isa = map(case.level, ("library", "cores", "isa"))
    if not (cores and isa):
        return headline.label
    bounds = (library, counted(int(cores), "core"), f"isa {isa}")
    return f"{headline.label} ({', '.join(filter(None, bounds))})"


def trust_of(m: Measurement) -> str:
    return "trusted" if m.trust.good else "not trusted: " + "; ".join(m.trust.marks)


def case_text(case: Case) -> str:
    """The probe and its levels, in words."""
    levels = ", ".join(f"{axis} {level}" for axis, level in case.levels)
    return f"{case.probe}: {levels}" if levels else case.probe


@dataclass(frozen=True)
class Gap:
    """Cases that were not measured for the same reason."""

    probe: str
    cases: tuple[Case, ...]
    why: Unmeasured

    @property
    def what(self) -> str:
        if len(self.cases) == 1:
            return case_text(self.cases[0])
        return f"{self.probe}, {len(self.cases)} cases"


def gaps_of(unmeasured: Iterable[tuple[Case, Unmeasured]]) -> tuple[Gap, ...]:
    """Cases that were not measured, grouped by reason."""
    found: dict[tuple[str, Unmeasured], list[Case]] = {}
    for case, why in unmeasured:
        found.setdefault((case.probe, why), []).append(case)
    return tuple(Gap(probe, tuple(cases), why) for (probe, why), cases in found.items())


@dataclass(frozen=True)
class Untrusted:
    """Numbers with the same kind of evidence against them; `why` is the first one's mark."""

    why: str
    numbers: tuple[Measurement, ...]


def untrusted_of(measurements: Iterable[Measurement]) -> tuple[Untrusted, ...]:
    """Untrusted numbers by their first mark; marks that differ only in figures are one kind."""
    found: dict[str, list[Measurement]] = {}
    for m in measurements:
        if not m.trust.good:
            kind = _FIGURES.sub("#", _SAMPLES.sub("", m.trust.marks[0]))
            found.setdefault(kind, []).append(m)
    return tuple(
        Untrusted(why=_SAMPLES.sub("", numbers[0].trust.marks[0]), numbers=tuple(numbers))
        for numbers in sorted(found.values(), key=len, reverse=True)
    )


def number_text(m: Measurement) -> str:
    """The case, the metric, and the number."""
    return f"{case_text(m.case)}: {m.metric.replace('_', ' ')} {value_of(m)}"


def remedy_of(words: str) -> str:
    """Puts a remedy that is entirely a command into backquotes, like commands within text."""
    return f"`{words}`" if words.split(" ")[0] in _COMMANDS and "`" not in words else words


def spans_of(words: str) -> Iterator[tuple[str, bool]]:
    """Pieces of the text: (piece, whether it is a command). Commands are in backquotes."""
    pieces = words.split("`")
    if len(pieces) % 2 == 0:
        yield words, False
        return
    for number, piece in enumerate(pieces):
        if piece:
            yield piece, number % 2 == 1


def ratio_text(v: Verdict) -> str:
    if not math.isfinite(v.ratio):
        return "no ratio"
    if not (math.isfinite(v.low) and math.isfinite(v.high)):
        return f"{_ratio(v.ratio)}, no interval"
    return f"{_ratio(v.ratio)} ({_ratio(v.low)} to {_ratio(v.high)})"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 10 else _units.digits(value)


def early_of(run: Run) -> str:
    """Why the run ended before everything was measured; "" if it did not."""
    if run.ended_early:
        return f"The run ended early, as {run.ended_early}: this is what it had until then"
    return "" if run.ended else "The run was ended early: this is what it had until then"


NOTHING_TO_DO = "Nothing: no setting that was tried was shown to be better."


def nothing_to_do(undecided: str) -> str:
    """What stands in place of advice. undecided: why no setting could be judged, or ""."""
    return f"Undecided: {undecided}." if undecided else NOTHING_TO_DO


def gain_of(a: Advice) -> str:
    """The factor, such as x5.7."""
    return f"x{_units.digits(a.gain)}"


def why_of(a: Advice) -> str:
    return a.why if a.trusted else f"{a.why} (measured while the machine was disturbed)"


def rule_of(run: Run) -> str:
    """How the headlines were chosen; a command of the user has no ceiling and no settings."""
    return MEDIAN if run.request.commands else RULE


def is_comparison(run: Run) -> bool:
    """Were environments or commands compared, so that the verdicts matter most?"""
    return bool(run.environments) or len(run.request.commands) > 1


def verdicts_title(run: Run) -> str:
    """Title of the comparisons of a run."""
    if run.environments:
        return "Environments side by side"
    if run.request.commands:
        return "Commands side by side" if len(run.request.commands) > 1 else "What was found"
    return "What each setting is worth"


def machine_line(facts: Facts) -> str:
    """Cores, memory, system and hypervisor, in one line."""
    cores, threads = len(facts.one_per_core), len(facts.usable)
    words = [counted(cores, "core")]
    if threads != cores:
        words.append(counted(threads, "hardware thread"))
    if facts.quota_cpus is not None:
        words.append(f"a quota of {facts.quota_cpus:g} cpus")
    if facts.memory_bytes:
        words.append(f"{_units.size(facts.memory_bytes)} of memory")
    words.append(f"{facts.system}, kernel {facts.kernel}")
    if facts.hypervisor:
        under = f" under {facts.hypervisor}" if facts.hypervisor != "unknown" else ""
        words.append(f"a virtual machine{under}")
    return ", ".join(words)


def facts_rows(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Known properties of the machine: (name, in words)."""
    sockets = len({c.socket for c in facts.cpus})
    rows = (
        ("Host", facts.host),
        ("System", f"{facts.system}, kernel {facts.kernel}, {facts.architecture}"),
        ("Virtual machine", facts.hypervisor),
        ("Processor", f"{facts.cpu_model}, {counted(sockets, 'socket')}"),
        ("Usable", f"{counted(len(facts.one_per_core), 'core')}, {_numbers(facts.allowed)}"),
        ("Instruction sets", ", ".join(facts.instruction_sets)),
        ("Caches", _caches(facts)),
        ("Memory", _memory(facts)),
        ("NUMA", ", ".join(map(_node, facts.nodes))),
        ("GPUs", ", ".join(facts.gpus)),
        ("Compilers", _listed(facts.compilers)),
        ("MPI", _listed(facts.mpis)),
        ("BLAS", _listed(facts.blas)),
        ("Tools", _listed(facts.tools)),
    )
    return tuple((what, words) for what, words in rows if words)


def _node(node: NumaNode) -> str:
    return f"node {node.number}: {_units.size(node.memory_bytes)} {node.kind}".rstrip()


def _listed(found: Iterable[Compiler | Mpi | Blas | Tool]) -> str:
    return ", ".join(dict.fromkeys(_named(f.name, f.version) for f in found))


def _named(name: str, version: str) -> str:
    return name if version in name else f"{name} {version}"


def _numbers(cpus: Sequence[int]) -> str:
    if not cpus:
        return "no cpu"
    return f"cpu {cpus[0]}" if len(cpus) == 1 else f"cpus {cpus[0]} to {cpus[-1]}"


def _caches(facts: Facts) -> str:
    """Each kind of cache once: its size and count."""
    found: dict[str, int] = {}
    for cache in facts.caches:
        name = f"L{cache.level} {cache.kind} {_units.size(cache.size_bytes)}"
        found[name] = found.get(name, 0) + 1
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in found.items())


def _memory(facts: Facts) -> str:
    words = [_units.size(facts.memory_bytes)] if facts.memory_bytes else []
    rate = facts.memory.bytes_per_second
    nominal = UNKNOWN if rate is None else _units.number(rate, "byte/s")
    return ", ".join([*words, f"nominal bandwidth {nominal}"])
