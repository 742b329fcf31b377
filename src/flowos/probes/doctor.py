"""What can be measured and used on a node; for the rest the reason, and the command to fix it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from flowos._dataclasses import dataclass, replace
from flowos.model import Facts, MeasurementRequest, Tried, Unmeasured, counted
from flowos.probes import _facts_missing as names
from flowos.probes._base import Probe
from flowos.probes._facts_rdma import port_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report. needed: without it `flowos measure` has nothing to measure."""

    group: Literal["measure", "use", "enter"]
    name: str
    works: bool
    says: str
    remedy: str = ""
    needed: bool = False


def diagnose(
    facts: Facts, probes: Iterable[Probe], request: MeasurementRequest | None = None
) -> tuple[Check, ...]:
    """List what each probe would measure here, then what was found and what is missing."""
    missing = {each.what: each for each in facts.missing}
    present = [check for check in _present(facts) if check.name not in missing]
    absent = [
        Check(
            group="use",
            name=each.what,
            works=False,
            says=each.loses,
            remedy=each.remedy,
            needed=each.what == names.C_COMPILER,
        )
        for each in facts.missing
    ]
    asked = [_asked(probe, facts, request or MeasurementRequest()) for probe in probes]
    return (*asked, *present, *absent)


def can_measure(checks: Sequence[Check]) -> bool:
    """Is all that `flowos measure` needs available?"""
    return all(check.works for check in checks if check.needed)


def _asked(probe: Probe, facts: Facts, request: MeasurementRequest) -> Check:
    cases, by_name = probe.cases(facts, request), ""
    if cases == ():
        cases = probe.cases(facts, replace(request, probes=(probe.name,)))
        by_name = f", by name (--only {probe.name})"
    if isinstance(cases, Unmeasured):
        remedy = _worded_for_here(cases, facts)
        says = cases.reason
        return Check(group="measure", name=probe.name, works=False, says=says, remedy=remedy)
    says = f"{probe.info.title}: {counted(len(cases), 'case')}{by_name}"
    return Check(group="measure", name=probe.name, works=True, says=says)


def _worded_for_here(unmeasured: Unmeasured, facts: Facts) -> str:
    """The remedy for this system of what the reason names; else the probe's own."""
    named = (each.remedy for each in facts.missing if each.what in unmeasured.reason)
    return next(named, unmeasured.remedy)


def _present(facts: Facts) -> Iterator[Check]:
    """Checks of what was found, or would be if it were not missing."""
    c = [each for each in facts.compilers if each.language == "c"]
    threaded = [each.name for each in c if each.openmp]
    memory = f"{(facts.memory.bytes_per_second or 0) / 1e9:.1f} GB/s by {facts.memory.source}"
    yield _cpus(facts)
    yield _works(names.C_COMPILER, _listed((each.name, each.version) for each in c), needed=True)
    yield _works(names.OPENMP, f"with {', '.join(threaded)}")
    yield _works(names.MPI, _listed((each.name, each.version) for each in facts.mpis))
    yield _works(names.BLAS, _listed((each.name, each.version) for each in facts.blas))
    for what, tool in (
        (names.FIO, "fio"),
        (names.BROWSER, "chromium"),
        (names.LIKWID, names.LIKWID),
    ):
        yield _works(what, _listed((t.name, t.version) for t in facts.tools if t.name == tool))
    if facts.rdma:
        yield _works("RDMA", ", ".join(f"{port_words(p)}: {p.state}" for p in facts.rdma))
    for tried in facts.tried:
        yield _works(tried.name, _detail(tried))
    yield _works(names.MEMORY_SPEED, memory)


def _works(name: str, says: str, *, needed: bool = False) -> Check:
    return Check(group="use", name=name, works=True, says=says, needed=needed)


def _cpus(facts: Facts) -> Check:
    """The number of our CPUs; a quota is no failure, but full load is then throttled."""
    cores, sockets = len(facts.one_per_core), len({cpu.socket for cpu in facts.usable})
    says = (
        f"{len(facts.usable)} of {counted(len(facts.cpus), 'CPU')}, {counted(cores, 'core')}, "
        f"{counted(sockets, 'socket')}"
    )
    if facts.quota_cpus is None:
        return _works("CPUs", says)
    return Check(
        group="use",
        name="CPUs",
        works=False,
        says=f"{says}; a cgroup gives time for {facts.quota_cpus:g}: full load is held back",
        remedy="ask for more CPU time: cpu.max of the cgroup, --cpus of the container",
    )


def _detail(tried: Tried) -> str:
    return f"works ({tried.says})" if tried.says else "works"


def _listed(things: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {version}".strip() for name, version in things)
