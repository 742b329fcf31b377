"""`flowos measure --pool --deployments`: the same probes on nodes that are held anew each time.

On one node what is measured is what is on this machine; on several it is what is between nodes.
With environments each is measured in all of them.

Each deployment is a run in the store. They are compared by what runs are compared with that were
not interleaved. Success: a run for each. Failure: nodes that cannot be had end it, those that are
lost end their deployment; what was measured until then is kept. Ctrl-C ends the deployment under
way, and no other one begins.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from flowos._dataclasses import dataclass, replace
from flowos.engine import NEVER, utc
from flowos.model import (
    RUNS_MARGIN,
    Deployment,
    Facts,
    FlowosError,
    Measurement,
    MeasurementRequest,
    OnProgress,
    Progress,
    Run,
    UsageError,
)
from flowos.operations._alike_runs import machine_of
from flowos.operations._files import write_together
from flowos.operations._held_nodes import held_nodes
from flowos.operations._scratch import own_storage_of
from flowos.operations.history import numbers_of, report
from flowos.operations.measure import OnSample, Result, check, measured, planned
from flowos.operations.pool_storage import check_folder
from flowos.operations.settings import pool_named
from flowos.operations.stored_runs import runs
from flowos.plan import DeploymentSpread, MachineRun, slow_machines, spreads
from flowos.probes import probe_named, probes_for
from flowos.report import Report, deployments_html, slow_line

USUAL_NODES = 2
"""Of each deployment: two ranks are on two nodes, and clients of storage on each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRequest:
    """How often nodes of a pool are held, and for how long they are left alone after each time.

    nodes: of each deployment.
    """

    pool: str
    nodes: int = USUAL_NODES
    count: int = 1
    between_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployments:
    """Runs of deployments, in their order, and how much what was measured differs between them.

    page: that says so; None if none was written. unfinished: could nodes not be had, or were some
    lost?
    """

    runs: tuple[Run, ...]
    spreads: tuple[DeploymentSpread, ...]
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    unfinished: bool = False
    page: Path | None = None


def planned_deployment(
    request: MeasurementRequest,
    wanted: DeploymentRequest,
    *,
    check_facts: Callable[[Facts], None] = lambda _: None,
) -> list[dict[str, object]]:
    """What each deployment would run, if its nodes were like this machine; none is held."""
    check_folder(pool_named(wanted.pool))
    own_storage = own_storage_of(wanted.pool)
    request = _on_nodes(request, wanted.nodes)
    return planned(request, own_storage=own_storage, check_facts=check_facts)


def measured_deployments(
    request: MeasurementRequest,
    wanted: DeploymentRequest,
    *,
    out: Path,
    url: str | None,
    seconds: float | None,
    on_progress: OnProgress,
    on_sample: OnSample,
) -> Deployments:
    """Hold nodes of the pool so many times, and measure on them each time.

    seconds: of each. Raises UsageError for several nodes and probes that do not measure between
    them, SliceRefused without nodes for the first.
    """
    request, count, of = _on_nodes(request, wanted.nodes), wanted.count, _new_id()
    done: list[Result] = []
    notes: list[str] = []
    for number in range(1, count + 1):
        name = f"deployment {number} of {count}"
        try:
            if number > 1:
                NEVER.check(wanted.between_seconds)
            with held_nodes(wanted.pool, wanted.nodes, on_progress, of=of, number=number) as on:
                names = ", ".join(map(str, on.deployment.nodes))
                on_progress(Progress(doing=f"{name}: {names}", lasting=True))
                done.append(
                    measured(
                        request,
                        out=out / _folder(number),
                        url=url,
                        seconds=seconds,
                        on_progress=on_progress,
                        on_sample=on_sample,
                        on=on,
                    )
                )
        except FlowosError as error:
            if not done:
                raise
            notes.append(f"{name}: {error}; the runs before it are kept")
            break
        if done[-1].lost:
            notes.append(f"{name}: {done[-1].lost}; what was measured until then is kept")
        if done[-1].interrupted:
            break
    return _together(done, out, notes)


def measured_deployment(  # noqa: PLR0913 - the last ones by keyword
    request: MeasurementRequest,
    wanted: DeploymentRequest,
    *,
    out: Path | None,
    url: str | None,
    seconds: float | None,
    on_progress: OnProgress,
    on_sample: OnSample,
    check_facts: Callable[[Facts], None] = lambda _: None,
) -> Result:
    """Hold nodes of the pool once, and measure on them. Without `out` no report is written.

    check_facts: raises for nodes that are not to be measured. Raises as `measured_deployments`.
    """
    request = _on_nodes(request, wanted.nodes)
    with held_nodes(wanted.pool, wanted.nodes, on_progress, of=_new_id()) as on:
        return measured(
            request,
            out=out,
            url=url,
            seconds=seconds,
            on_progress=on_progress,
            on_sample=on_sample,
            on=on,
            check_facts=check_facts,
        )


def _new_id() -> str:
    return f"d-{utc()[:10]}-{secrets.token_hex(3)}"


def _on_nodes(request: MeasurementRequest, nodes: int) -> MeasurementRequest:
    """The request for what is measured on one node, or between several.

    What cannot be measured is refused before any are held.
    """
    check(request)
    if nodes == 1:
        return request
    return replace(request, probes=_between_nodes(request), nodes=nodes)


def _together(done: Sequence[Result], out: Path, unfinished: Sequence[str]) -> Deployments:
    """Compared, and written as a page if there are several. unfinished: what is missing, why."""
    notes = dict.fromkeys(note for result in done for note in result.notes)
    found = compared_deployments([result.report for result in done])
    found = replace(
        found,
        notes=(*notes, *unfinished, *found.notes),
        interrupted=any(result.interrupted for result in done),
        unfinished=bool(unfinished),
    )
    pages = [
        f"{_folder(n)}/{result.files[0].name}" if result.files else ""
        for n, result in enumerate(done, 1)
    ]
    return with_page(found, out, pages) if len(done) > 1 else found


def with_page(found: Deployments, out: Path, pages: Sequence[str] = ()) -> Deployments:
    """The same, written as a page into a folder. pages: of the runs, as seen from there;
    "" of one without.

    A note says if it could not be written.
    """
    text = deployments_html(found.runs, found.spreads, pages=pages, notes=found.notes)
    try:
        (page,) = write_together(out, {"deployments.html": text})
    except OSError as error:
        why = f"the page cannot be written to {out} ({error.strerror}): give another with --out"
        return replace(found, notes=(*found.notes, why))
    return replace(found, page=page)


def _folder(number: int) -> str:
    """Of the report of a deployment."""
    return f"deployment-{number}"


def stored_deployments(ref: str, url: str | None, *, margin: float = RUNS_MARGIN) -> Deployments:
    """Of the run `ref`, and of all runs that were deployed with it. Raises UsageError for none."""
    first = report(ref, url).run
    if first.deployment is None:
        raise UsageError(
            f"run {first.id} measured no deployment: flowos measure --pool NAME --deployments 3"
        )
    of = first.deployment.of
    found = [
        each.run
        for each in runs(url)
        if each.run.deployment is not None and each.run.deployment.of == of
    ]
    found.sort(key=lambda run: run.deployment.number if run.deployment else 0)
    return compared_deployments([report(run.id, url) for run in found], margin=margin)


def compared_deployments(reports: Sequence[Report], *, margin: float = RUNS_MARGIN) -> Deployments:
    """The key numbers of runs in each of them. reports: of the deployments, in their order.

    Notes say which are slow, where there are enough to see that.
    """
    runs = tuple(report.run for report in reports)
    found = spreads([numbers_of(report) for report in reports], margin=margin, shown=_is_key)
    return Deployments(runs=runs, spreads=found, notes=(*_same_again(runs), *_slow(reports)))


def _slow(reports: Sequence[Report]) -> Iterator[str]:
    """Nodes that are slow among the deployments, by their key numbers."""
    measured = []
    for each in reports:
        keys = [m for m in each.measurements if _is_key(m)]
        numbers = replace(numbers_of(each), measurements=keys)
        measured.append(MachineRun(machine=machine_of(each.run), numbers=numbers))
    yield from map(slow_line, slow_machines(measured).slow)


def _between_nodes(request: MeasurementRequest) -> tuple[str, ...]:
    """The probes that it names; else those that need not be named."""
    several = len(request.environments)
    known = {p.name: p.info.between_nodes for p in probes_for(several) if p.info.between_nodes}
    for name in request.probes:
        if name not in known:
            how = " in several environments" if several > 1 else ""
            raise UsageError(
                f"probe {name!r} does not measure between nodes{how}; {', '.join(known)} do; "
                "ask for one node, or for these"
            )
    return request.probes or tuple(name for name, when in known.items() if when != "named")


def _is_key(measurement: Measurement) -> bool:
    probe = probe_named(measurement.case.probe)
    if probe is None:
        return False
    if not probe.info.headlines:
        return measurement.metric in probe.info.deciding
    return any(each.fits(measurement) for each in probe.info.headlines)


def _same_again(runs: Sequence[Run]) -> tuple[str, ...]:
    """Deployments of machines that were still there from one before: their place is the same."""
    before: list[Deployment] = []
    notes: list[str] = []
    for deployment in (run.deployment for run in runs if run.deployment):
        first = next((each for each in before if _are_same(each, deployment)), None)
        if first is not None:
            notes.append(
                f"deployment {deployment.number} got the machines of deployment {first.number}:"
                " give --between SECONDS, more than the partition's SuspendTime, for new ones"
            )
        before.append(deployment)
    return tuple(notes)


def _are_same(one: Deployment, other: Deployment) -> bool:
    pairs = zip(*(sorted(each.nodes, key=lambda n: n.name) for each in (one, other)), strict=False)
    return len(one.nodes) == len(other.nodes) and all(a.is_same_machine(b) for a, b in pairs)
