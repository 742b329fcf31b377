"""What of each probe is measured in several environments side by side: few cases, all cores.

After figures 5 to 10 of Sato and Ogawa, Linux containers on AI clouds: matrix products, STREAM
entered by exec, shell and run, MPI, storage; and start-up.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from flowos.model import (
    Argv,
    Case,
    Chart,
    Effort,
    Entered,
    Facts,
    Pairs,
    Sample,
    Tried,
    Unmeasured,
    Verdict,
    Wanted,
)
from flowos.plan import NOISE_THRESHOLDS, NoiseThresholds, compare, geomean_verdict
from flowos.probes._base import Probe
from flowos.probes.fio import Fio
from flowos.probes.gemm import DEFAULT, FORCED, Gemm
from flowos.probes.mpi import MpiPairs
from flowos.probes.startup import Startup
from flowos.probes.stream import Stream

ENV = "env"
"""The axis of environments."""

MARGIN = 0.03
MARGINS = {"fio": 0.06}
"""Probe -> a difference up to this share counts as equal; MARGIN for the others."""

METRICS = {
    "startup": ("startup",),
    "gemm": ("flops",),
    "stream": ("triad",),
    "mpi": ("latency", "bandwidth", "allreduce"),
}
MESSAGES = ("8", "1024", "65536", "1048576")
"""What a verdict is wanted of; other numbers of the same programs are only shown."""

Way = Literal["exec", "shell", "run"]
"""How an environment is entered: by the command itself, by its shell, by its entry point."""

GEMM_SIZES = {"quick": "1000", "normal": "1000,2048", "full": "512,1000,2048,4096"}
GEMM_SECONDS = {"quick": 0.8, "normal": 1.5, "full": 8.0}
STREAM_PASSES = {"quick": 9, "normal": 17, "full": 33}
"""With the first, which warms up; their number must not hang on how fast an environment is."""
MPI_REPETITIONS = {"quick": 4, "normal": 8, "full": 16}
WAYS: dict[str, tuple[Way, ...]] = {
    "quick": ("exec",),
    "normal": ("exec", "shell", "run"),
    "full": ("exec", "shell", "run"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """A case of a probe that is measured in every environment.

    case: the probe's own, from the facts of one environment. shown: what it is called in all of
    them; its details tell of this one.
    """

    probe: Probe
    case: Case
    shown: Case
    way: Way = "exec"


def in_environment(shown: Case, label: str) -> Case:
    """The case as shown for the environment of this label."""
    return replace(shown, levels=((ENV, label), *shown.levels))


def decides(sample: Sample) -> bool:
    """Is it one of the numbers that a verdict is wanted of?"""
    case = sample.case
    if case.probe == "fio":
        sequential = case.level("workload").startswith("sequential")
        return sample.metric == ("bandwidth" if sequential else "iops")
    return sample.metric in METRICS[case.probe] and case.level("bytes", "8") in MESSAGES


def margin_of(probe: str) -> float:
    """Up to which share a difference counts as equal."""
    return MARGINS.get(probe, MARGIN)


def verdicts_between(
    environments: Sequence[Entered],
    seen: Iterable[Sample],
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> tuple[Verdict, ...]:
    """Each environment beside the first: on the whole, then in all that a verdict is wanted of."""
    by_probe: dict[str, list[Sample]] = {}
    for sample in filter(decides, seen):
        by_probe.setdefault(sample.case.probe, []).append(sample)
    base = environments[0].label
    return tuple(
        verdict
        for judged in (geomean_verdict, compare)
        for probe, samples in by_probe.items()
        for verdict in judged(samples, axis=ENV, base=base, margin=margin_of(probe), limits=limits)
    )


def entered(way: Way, words: Argv, entry_point: Argv) -> Argv:
    """The command line by which an environment is entered this way, to run `words`."""
    if way == "shell":
        return ("/bin/sh", "-c", '"$@"', "sh", *words)
    return (*entry_point, *words) if way == "run" else words


def _gemm(facts: Facts, wanted: Wanted) -> Iterable[ComparedCase] | Unmeasured:
    """One library: with its widest kernels where the binary is the same, else as it comes."""
    probe = Gemm()
    cases = probe.cases(facts, replace(wanted, effort="quick"))
    if isinstance(cases, Unmeasured):
        return cases
    families = list(FORCED)

    def rank(case: Case) -> tuple[bool, int]:
        family = case.detail("family")
        known = families.index(family) if family in families else len(families)
        return (case.level("isa") == DEFAULT) == (wanted.binary == "same"), known

    best = min(cases, key=rank)
    sizes, seconds = GEMM_SIZES[wanted.effort], GEMM_SECONDS[wanted.effort]
    case = _with_details(best, (("sizes", sizes), ("seconds", str(seconds))))
    stack = " ".join((case.level("library"), case.detail("version"), case.level("isa")))
    shown = _shown(case, ("cores",), stack)
    return [ComparedCase(probe=probe, case=case, shown=shown)]


def _stream(facts: Facts, wanted: Wanted) -> Iterable[ComparedCase] | Unmeasured:
    """The first compiler's first flags on all cores, plain and nt, entered in each way."""
    probe = Stream()
    cases = probe.cases(facts, replace(wanted, effort="quick"))
    if isinstance(cases, Unmeasured):
        return cases
    most = max(int(case.level("threads")) for case in cases)
    passes = (("repeats", str(STREAM_PASSES[wanted.effort])), ("seconds", "3600"))
    return [
        ComparedCase(
            probe=probe,
            case=_with_details(case, passes),
            shown=_shown(case, ("stores", "threads"), stack, way=way),
            way=way,
        )
        for way in WAYS[wanted.effort]
        for case in cases
        if int(case.level("threads")) == most
        for stack in [f"{case.level('compiler')} {case.level('flags')}"]
    ]


def _mpi(facts: Facts, wanted: Wanted) -> Iterable[ComparedCase] | Unmeasured:
    """The first MPI, with full effort each; the verdicts are on some sizes, the curves on all."""
    probe = MpiPairs()
    cases = probe.cases(facts, replace(wanted, effort="quick"))
    if isinstance(cases, Unmeasured):
        return cases
    repetitions = (("repetitions", str(MPI_REPETITIONS[wanted.effort])),)
    of_family: dict[str, Case] = {}
    for case in cases if wanted.effort == "full" else cases[:1]:
        of_family.setdefault(case.detail("family"), case)
    return [
        ComparedCase(
            probe=probe,
            case=_with_details(case, repetitions),
            shown=_shown(case, (), case.level("mpi"), mpi=family),
        )
        for family, case in of_family.items()
    ]


def _fio(facts: Facts, wanted: Wanted) -> Iterable[ComparedCase] | Unmeasured:
    """Each workload, for a short time: of the same minutes many short turns tell more."""
    probe = Fio()
    effort: Effort = "normal" if wanted.effort == "full" else "quick"
    cases = probe.cases(facts, replace(wanted, effort=effort))
    if isinstance(cases, Unmeasured):
        return cases
    tool = facts.tool("fio")
    return [
        ComparedCase(
            probe=probe,
            case=case,
            shown=_shown(case, tuple(dict(case.levels)), f"fio {tool.version if tool else ''}"),
        )
        for case in cases
    ]


def _startup(facts: Facts, wanted: Wanted) -> Iterable[ComparedCase] | Unmeasured:
    probe = Startup()
    cases = probe.cases(facts, wanted)
    if isinstance(cases, Unmeasured):
        return cases
    return [ComparedCase(probe=probe, case=case, shown=_shown(case, (), "")) for case in cases]


def _with_details(case: Case, details: Pairs) -> Case:
    return replace(case, details=tuple({**dict(case.details), **dict(details)}.items()))


def _shown(case: Case, kept: Sequence[str], stack: str, **added: str) -> Case:
    """The case with these axes only: the others differ between environments, and are told."""
    levels: Pairs = tuple(pair for pair in case.levels if pair[0] in kept)
    return Case(
        case.probe, levels=(*levels, *added.items()), details=(*case.details, ("stack", stack))
    )


COMPARED: Mapping[str, Callable[[Facts, Wanted], Iterable[ComparedCase] | Unmeasured]] = {
    "startup": _startup,
    "gemm": _gemm,
    "stream": _stream,
    "mpi": _mpi,
    "fio": _fio,
}
"""Probe name -> what of it is compared, in the order in which it is measured."""


def compared(name: str, facts: Facts, wanted: Wanted) -> tuple[ComparedCase, ...] | Unmeasured:
    """What of this probe is measured side by side on a node with these facts, or why nothing."""
    found = COMPARED[name](facts, wanted)
    return found if isinstance(found, Unmeasured) else tuple(found)


def allowed_everywhere(environments: Iterable[Entered]) -> tuple[Tried, ...]:
    """What works in all of them; of what does not, the first complaint."""
    found: dict[str, Tried] = {}
    for tried in (t for env in environments for t in env.tried):
        if tried.name not in found or found[tried.name].works:
            found[tried.name] = tried
    return tuple(found.values())


def blocked(environments: Sequence[Entered]) -> tuple[str, ...]:
    """What works in some of them only, in words: it is then used in none."""
    works = {t.name for env in environments for t in env.tried if t.works}
    complaints: dict[str, list[str]] = {}
    for env in environments:
        for tried in env.tried:
            if tried.name in works and not tried.works:
                complaints.setdefault(tried.name, []).append(f"{env.label} ({tried.says})")
    return tuple(
        f"{name} is not to be had in {', '.join(where)}: it was used in no environment"
        for name, where in complaints.items()
    )


def _curve(title: str, x: str, metric: str, facet: str, about: str, y_label: str) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x=x,
        metrics=(metric,),
        series=(ENV,),
        facets=(facet,),
        x_label={"n": "n (matrices of n x n)", "bytes": "message, bytes"}[x],
        y_label=y_label,
        log_x=True,
        log_y=x == "bytes",
        ceilings=False,
        about=about,
    )


def _bars(title: str, x: str, metric: str, facets: tuple[str, ...], y_label: str) -> Chart:
    return Chart(
        title=title,
        kind="bars",
        x=x,
        metrics=(metric,),
        series=(ENV,),
        facets=facets,
        y_label=y_label,
        ceilings=False,
    )


CHARTS: Mapping[str, tuple[Chart, ...]] = {
    "startup": Startup().charts,
    "gemm": (_curve("GEMM", "n", "flops", "type", "All cores, one library.", "flop/s"),),
    "stream": (_bars("STREAM triad", "way", "triad", ("stores",), "byte/s"),),
    "mpi": (
        _curve("MPI latency", "bytes", "latency", "mpi", "Half a ping-pong.", "second"),
        _curve("MPI bandwidth", "bytes", "bandwidth", "mpi", "64 messages in flight.", "byte/s"),
        _curve("MPI allreduce", "bytes", "allreduce", "mpi", "Sum over two ranks.", "second"),
    ),
    "fio": (
        _bars("Storage throughput", "workload", "bandwidth", (), "byte/s"),
        _bars("Storage operations", "workload", "iops", ("iodepth",), "1/s"),
    ),
}
"""How a probe's numbers are drawn where environments lie side by side."""
