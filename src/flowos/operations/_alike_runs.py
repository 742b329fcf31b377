"""Stored runs that can be judged together: of one kind of machine, measured in the same way."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.model import Facts, MachineKind, MeasurementRequest, Run, Unmeasured, UsageError
from flowos.operations.history import numbers_of
from flowos.operations.measure import offered, report_of
from flowos.plan import MachineRun
from flowos.probes import probes_for
from flowos.store import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeRuns:
    """Runs with their numbers, oldest first."""

    runs: tuple[Run, ...]
    measured: tuple[MachineRun, ...]

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.machine for each in self.measured))


def alike_runs(
    refs: Sequence[str],
    url: str | None,
    *,
    min_runs: int,
    limit: int | None = None,
    only: Sequence[str] = (),
    one_machine: bool = False,
) -> AlikeRuns:
    """The runs of these ids; for one or none, all runs that are like it, or like the last one.

    limit: the newest of those that were not given by id. min_runs: how many are of use. only: what
    these probes measured. Raises UsageError for a limit below `min_runs` and for runs that are not
    alike, StoreError for one that does not exist.
    """
    if limit is not None and limit < min_runs and len(refs) < 2:
        raise UsageError(
            f"--limit {limit}: give {min_runs} or more, as fewer runs cannot be judged"
        )
    with open_store(url, make=False) as store:
        if len(refs) > 1:
            runs = _given(store, refs, one_machine=one_machine)
        else:
            runs = _like(store, store.run(*refs or ("last",)), limit, one_machine=one_machine)
        measured = [_measured(store, run) for run in runs]
    known = dict.fromkeys(m.case.probe for each in measured for m in each.numbers.measurements)
    for name in only:
        if name not in known:
            raise UsageError(f"--only {name}: the runs measured {', '.join(known) or 'nothing'}")
    return AlikeRuns(runs=tuple(runs), measured=tuple(_restricted(m, only) for m in measured))


def kind_of(facts: Facts) -> MachineKind:
    return MachineKind(
        processor=facts.cpu_model,
        cpus=len(facts.allowed),
        architecture=facts.architecture,
        quota_cpus=facts.quota_cpus,
        gpus=facts.gpus,
    )


def machine_of(run: Run) -> str:
    """The host, or the nodes of a deployment."""
    if run.deployment is None:
        return run.host
    return ", ".join(sorted(node.name for node in run.deployment.nodes))


def _given(store: Store, refs: Sequence[str], *, one_machine: bool) -> list[Run]:
    found = {run.id: run for run in map(store.run, refs)}
    if len(found) < len(refs):
        raise UsageError("a run is given twice")
    first, *others = runs = sorted(found.values(), key=lambda run: run.started)
    for other in others:
        for what, one, another in differences(first, other, one_machine=one_machine):
            raise UsageError(
                f"runs {first.id} and {other.id} cannot be judged together:"
                f" their {what} differs, {one} and {another}"
            )
    return runs


def _like(store: Store, wanted: Run, limit: int | None, *, one_machine: bool) -> list[Run]:
    probes = probes_of(wanted)
    alike = [
        run
        for run in sorted(store.runs()[::-1], key=lambda run: run.started)
        if run.ended
        and not list(differences(wanted, run, one_machine=one_machine))
        and (run.request.probes == wanted.request.probes or probes_of(run) == probes)
    ]
    return alike[-(limit or 0) :]


def probes_of(run: Run) -> frozenset[str]:
    """Those that it was asked for; where it names none, those that have cases there."""
    request = run.request
    if request.probes:
        return frozenset(request.probes)
    environments = len(request.environments) or 1
    known = (p for p in probes_for(environments) if p.info.asked == bool(request.commands))
    offers = {p.name: offered(p, run.facts, request, environments) for p in known}
    return frozenset(
        name for name, found in offers.items() if found and not isinstance(found, Unmeasured)
    )


def differences(
    first: Run, second: Run, *, one_machine: bool
) -> Iterator[tuple[str, object, object]]:
    """What numbers depend on, and is not the same."""
    pairs = zip(_described(first, one_machine), _described(second, one_machine), strict=True)
    for (what, one), (_, another) in pairs:
        if one != another:
            yield what, one or "none", another or "none"


def _described(run: Run, one_machine: bool) -> Iterator[tuple[str, object]]:
    if one_machine:
        yield "machine", machine_of(run)
    yield "kind of machine", kind_of(run.facts)
    yield "effort", run.request.effort
    yield "nodes", run.request.nodes
    yield "environments", ", ".join(run.request.environments)
    yield "binary", run.request.binary
    yield "matrix", str(run.request.matrix or "")
    yield "folder on the storage", str(storage_in(run.request, run.request.probes) or "")
    yield "commands", "; ".join(map(shlex.join, run.request.commands))
    yield "folder of commands", _folder_of(run.request)
    yield "--ignore-failure", "yes" * run.request.ignore_failure


def _folder_of(request: MeasurementRequest) -> str:
    """The folder of commands if it says which program one is, as it does of ./NAME; else ""."""
    paths = [PurePath(argv[0]) for argv in request.commands if "/" in argv[0]]
    return str(request.folder or "") if any(not p.is_absolute() for p in paths) else ""


def storage_in(request: MeasurementRequest, probes: Sequence[str]) -> PurePath | None:
    """The folder on the storage that one of these probes measures, () being all; else None."""
    if not probes and request.commands:
        return None
    found = [p for p in probes_for() if p.info.on_storage and (not probes or p.name in probes)]
    return request.scratch if found else None


def _measured(store: Store, run: Run) -> MachineRun:
    return MachineRun(
        machine=machine_of(run), numbers=numbers_of(report_of(run, store.samples(run)))
    )


def _restricted(run: MachineRun, only: Sequence[str]) -> MachineRun:
    """What these probes measured; everything for none."""
    kept = [m for m in run.numbers.measurements if not only or m.case.probe in only]
    return replace(run, numbers=replace(run.numbers, measurements=kept))
