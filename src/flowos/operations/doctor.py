"""`flowos doctor`: collects facts, asks the probes, tries the runtimes, and reports what works."""

from collections.abc import Iterator
from dataclasses import dataclass

from flowos import engine
from flowos.drivers import RUNTIMES, Runtime
from flowos.model import Facts, MeasurementRequest
from flowos.operations._facts import facts, facts_on
from flowos.operations._slice import slice_
from flowos.probes import probes_for
from flowos.probes.doctor import Check, can_measure, diagnose


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The node, its checks, and whether `flowos measure` can measure anything."""

    facts: Facts
    checks: tuple[Check, ...]
    can_measure: bool


def doctor(request: MeasurementRequest | None = None, pool: str = "") -> Diagnosis:
    """Check this node without measuring or changing anything; takes some seconds.

    pool: check a node of this pool instead, which is held meanwhile.
    """
    asked = request or MeasurementRequest()
    if not pool:
        checks = (_energy(engine.here()), *_runtimes(engine.here()), *_left_alone())
        return _diagnosis(facts(asked), asked, checks)
    with slice_(pool=pool) as held:
        (node,) = held.held.nodes
        return _diagnosis(facts_on(node, asked), asked, tuple(_runtimes(node)))


def _diagnosis(node: Facts, request: MeasurementRequest, others: tuple[Check, ...]) -> Diagnosis:
    checks = (*diagnose(node, [p for p in probes_for() if not p.info.asked], request), *others)
    return Diagnosis(facts=node, checks=checks, can_measure=can_measure(checks))


def _runtimes(node: engine.Node) -> Iterator[Check]:
    """A check for each runtime, which was tried with a tiny image since the node was booted."""
    tried = node.facts()
    for name, runtime in RUNTIMES.items():
        if name != "bare":
            yield _runtime(runtime, tried)


def _energy(node: engine.Node) -> Check:
    counters = node.look().energy
    if counters:
        says = ", ".join(counter.name for counter in counters)
        return Check(group="use", name="energy of processors", works=True, says=says)
    return Check(
        group="use",
        name="energy of processors",
        works=False,
        says="no counter (RAPL) can be read, as in most virtual machines: no flop/J is shown",
        remedy="if there is one, as root: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj",
    )


def _left_alone() -> Iterator[Check]:
    """Leftovers that later starts of FlowOS do not remove."""
    for folder in engine.here().left_alone():
        yield Check(
            group="use",
            name="clean run folders",
            works=False,
            says=f"{folder} is left alone: its process is gone, but what that began may run on "
            "in another container, where one cannot look from here",
            remedy=f"if nothing of it runs any more: rm -r {folder}",
        )


def _runtime(runtime: Runtime, tried: Facts) -> Check:
    reasons = runtime.usable(tried)
    if reasons:
        says, remedy = reasons[0].text, reasons[0].remedy
        return Check(group="enter", name=runtime.name, works=False, says=says, remedy=remedy)
    tool = tried.tool(runtime.traits.program or runtime.name)
    works = {t.name for t in tried.tried if t.works}
    forms = [form for form in ("folder", "squashfs") if f"{runtime.name} {form}" in works]
    says = f"{tool.version if tool else ''} enters a {' or a '.join(forms)}"
    if "squashfs" not in forms:
        says += "; a squashfs is unpacked once"
    return Check(group="enter", name=runtime.name, works=True, says=says.strip())
