"""Which runs of the store are of a suite that was begun, on a machine of this kind."""

from collections.abc import Iterable, Iterator

from flowos._dataclasses import dataclass, field, replace
from flowos.model import Case, Facts, MeasurementRequest, NoStoreError, Run
from flowos.operations._alike_runs import kind_of
from flowos.operations.history import report
from flowos.operations.measure import TIME_WAS_OUT, lacked_time
from flowos.report import Report
from flowos.store import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSuite:
    """of: what its runs share. reports: probe -> the report of the run that measured it.

    earlier: of a probe whose cases several runs measured, as time was out, those before, in order.
    """

    of: str
    reports: dict[str, Report]
    earlier: dict[str, tuple[Report, ...]] = field(default_factory=dict)


def begun(
    suite: str, request: MeasurementRequest, facts: Facts, url: str | None, pool: str = ""
) -> BegunSuite | None:
    """The suite of this name that was begun last with this request; None if there is none.

    A run counts if it ended by itself and has numbers of its probe, on any machine of this kind:
    the same processors and GPUs. pool: on nodes of it. Raises StoreError if the store cannot be
    read: what was measured before would be measured anew.
    """
    try:
        with open_store(url, make=False) as store:
            ours = list(_alike(store.runs(), suite, request, facts, pool))
        return _begun(ours, url) if ours else None
    except NoStoreError:
        return None


def _begun(ours: list[tuple[Run, str]], url: str | None) -> BegunSuite:
    _, of = ours[0]
    before, complete = BegunSuite(of=of, reports={}), set[str]()
    for run, its in ours:
        step = run.request.suite
        if step and its == of and step.probe not in complete and _is_whole(run):
            found = report(run.id, url)
            if not has_numbers(found, step.probe):
                continue
            if step.probe in before.reports:
                before.earlier[step.probe] = (found, *before.earlier.get(step.probe, ()))
            before.reports.setdefault(step.probe, found)
            if not step.measured:
                complete.add(step.probe)
    return before


def cases_left(run: Run, planned: Iterable[Case]) -> tuple[Case, ...]:
    """Which of the cases planned for the run's step it did not come to, as its time was out."""
    missed = [case for case, why in run.unmeasured if lacked_time(why)]
    return tuple(
        case
        for case in planned
        if any(c.probe == case.probe and set(c.levels) >= set(case.levels) for c in missed)
    )


def has_numbers(found: Report, probe: str) -> bool:
    return any(m.case.probe == probe for m in found.measurements)


def _alike(
    runs: Iterable[Run], suite: str, request: MeasurementRequest, facts: Facts, pool: str
) -> Iterator[tuple[Run, str]]:
    """Runs of this suite, the newest first, each with what it shares with others."""
    for run in runs:
        step = run.request.suite
        where = run.deployment.pool if run.deployment else ""
        if step is None or (step.suite, where) != (suite, pool):
            continue
        if run.request.nodes not in (1, request.nodes):
            continue
        asked = replace(run.request, suite=None, probes=(), nodes=request.nodes)
        if asked == request and kind_of(run.facts) == kind_of(facts):
            yield run, step.of


def _is_whole(run: Run) -> bool:
    return bool(run.ended) and run.ended_early in ("", TIME_WAS_OUT)
