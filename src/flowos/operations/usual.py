"""Is this normal: the headlines of a run among those of the stored runs that are like it."""

from collections.abc import Iterator
from itertools import islice

from flowos._dataclasses import replace
from flowos.model import Measurement, NoStoreError, Run, StoreError
from flowos.operations._alike_runs import differences, machine_of, probes_of
from flowos.operations.measure import headlines_in
from flowos.plan import HistoryPoint, NumberPlace, place_among
from flowos.report import Report
from flowos.store import Store, open_store

MAX_OTHERS, MAX_SEARCHED = 20, 200
"""The newest of those that are like it, and how many runs are looked at for them."""

_Key = tuple[str, str, str]
"""Label, metric, unit."""


def with_places(report: Report, url: str | None) -> Report:
    """The report with the place of each headline that enough other runs of the store have.

    They are of the same kind of machine and were measured in the same way. Unchanged without a
    store, and for runs that compare. Raises StoreError if the store of a URL cannot be opened.
    """
    if not report.headlines:
        return report
    try:
        with open_store(url, make=False) as store:
            others = _others(store, report)
    except NoStoreError:
        return report
    except StoreError:
        if url:
            raise
        return report
    return replace(report, places=tuple(_places(report, others)))


def _others(store: Store, report: Report) -> list[tuple[Run, dict[_Key, Measurement]]]:
    try:
        return [(run, _values(store, run, report)) for run in _alike(store, report.run)]
    except StoreError:
        return []  # a run that cannot be read is no reason not to show this one


def _alike(store: Store, wanted: Run) -> list[Run]:
    """Runs that measured one of its probes at least."""
    probes = probes_of(wanted)
    alike = (
        run
        for run in store.runs(MAX_SEARCHED)
        if run.id != wanted.id
        and run.ended
        and not list(differences(wanted, run, one_machine=False))
        and not probes.isdisjoint(probes_of(run))
    )
    return list(islice(alike, MAX_OTHERS))


def _values(store: Store, run: Run, report: Report) -> dict[_Key, Measurement]:
    """The headlines of a run, as far as the report has them, too."""
    metrics = {(h.measured.case.probe, h.measured.metric) for h in report.headlines}
    found = headlines_in(run, store.samples(run), metrics)
    return {(label, m.metric, m.unit): m for label, m in found}


def _places(
    report: Report, others: list[tuple[Run, dict[_Key, Measurement]]]
) -> Iterator[NumberPlace]:
    for headline in report.headlines:
        m = headline.measured
        key = (headline.label, m.metric, m.unit)
        found = [_point(run, values[key]) for run, values in others if key in values]
        place = place_among(*key, _point(report.run, m), found)
        if place is not None:
            yield place


def _point(run: Run, m: Measurement) -> HistoryPoint:
    return HistoryPoint(
        run=run.id,
        machine=machine_of(run),
        started=run.started,
        value=m.value,
        trusted=m.trust.good,
    )
