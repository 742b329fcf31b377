"""`flowos baseline`, and runs that are checked against one.

Success: a file that says what machines of a kind give, and how far a new run may be off.
Failure: runs that are not alike, or a file that is no baseline, are refused before anything is
measured or written.
"""

import shlex
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from flowos._dataclasses import replace
from flowos.engine import utc
from flowos.model import (
    Baseline,
    Facts,
    MachineKind,
    MeasurementRequest,
    Run,
    StoreError,
    UsageError,
)
from flowos.operations._alike_runs import alike_runs, kind_of, storage_in
from flowos.operations._documents import read_document
from flowos.operations._files import replaced
from flowos.operations.history import numbers_of, report
from flowos.plan import MIN_RUNS, BaselineCheck, baseline_numbers, checked, unjudged_numbers
from flowos.probes import probes_for
from flowos.report import Report, baseline_json, junit, read_baseline_json

_MAX_BYTES = 1 << 26


def baseline_of(
    refs: Sequence[str],
    url: str | None,
    *,
    limit: int | None,
    only: Sequence[str],
    error: float,
    max_tolerance: float,
) -> Baseline:
    """The baseline from these runs, or from all that are like one. See `alike_runs`.

    Raises UsageError for fewer than two runs, or if no number is in two of them.
    """
    found = alike_runs(refs, url, min_runs=MIN_RUNS, limit=limit, only=only)
    if len(found.runs) < MIN_RUNS:
        raise UsageError(
            f"there is one run like {found.runs[0].id}: the spread between runs is not known;"
            " measure again, five times or more are of use"
            if found.runs
            else f"run {refs[0] if refs else 'last'} did not end, and no other one is like it"
        )
    numbers = baseline_numbers(found.measured, error=error)
    if not numbers:
        raise UsageError(
            f"no number is in two of the {len(found.runs)} runs, and above 0 in all that have it"
        )
    first = found.runs[0]
    probes = tuple(dict.fromkeys(number.probe for number in numbers))
    return Baseline(
        kind=kind_of(first.facts),
        made=utc(),
        version=version("flowos-hpc"),
        runs=tuple(run.id for run in found.runs),
        machines=found.machines,
        probes=probes,
        effort=first.request.effort,
        nodes=first.request.nodes,
        environments=first.request.environments,
        binary=first.request.binary,
        matrix=first.request.matrix,
        commands=first.request.commands,
        ignore_failure=first.request.ignore_failure,
        scratch=storage_in(first.request, probes),
        error=error,
        max_tolerance=max_tolerance,
        numbers=numbers,
        unjudged=unjudged_numbers(found.measured),
    )


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write the file, whole or not at all. Raises StoreError if it cannot be written."""
    _write(path, baseline_json(baseline))


def read_baseline(path: Path) -> Baseline:
    """Raises UsageError, with the file's name, if it is no baseline."""
    asked = [probe.name for probe in probes_for() if probe.info.asked]
    read = partial(read_baseline_json, asked=asked)
    return read_document(path, "baseline", read, max_bytes=_MAX_BYTES)


def request_of(baseline: Baseline, given: MeasurementRequest) -> MeasurementRequest:
    """What measures the numbers of a baseline, with the ceilings of `given`, and on its storage
    where the baseline names none.

    Commands are run in the current folder.
    """
    return replace(
        given,
        probes=baseline.probes,
        effort=baseline.effort,
        nodes=baseline.nodes,
        environments=baseline.environments,
        binary=baseline.binary,
        matrix=baseline.matrix,
        commands=baseline.commands,
        folder=Path.cwd() if baseline.commands else None,
        ignore_failure=baseline.ignore_failure,
        scratch=baseline.scratch or given.scratch,
    )


def check_kind(baseline: Baseline, facts: Facts) -> None:
    """Raises UsageError if the machine is of another kind."""
    if (kind := kind_of(facts)) != baseline.kind:
        raise UsageError(
            f"the baseline is of another kind of machine: {_differing(baseline.kind, kind)}"
        )


def _differing(base: MachineKind, here: MachineKind) -> str:
    return f"{str(base)!r:.100}; {str(here)!r:.100} is measured here"


def checked_report(baseline: Baseline, found: Report) -> BaselineCheck:
    """Judge what a run measured. Raises UsageError for a run that measured something else."""
    run = found.run
    check_kind(baseline, run.facts)
    ours, theirs = (_measured_with(each) for each in (baseline, run.request))
    if baseline.scratch is not None:
        ours["folder on the storage"] = str(baseline.scratch)
        theirs["folder on the storage"] = str(run.request.scratch)
    for name, one in ours.items():
        if one != theirs[name]:
            raise UsageError(
                f"run {run.id} was measured in another way: {name} {theirs[name] or 'none'!r:.80},"
                f" in the baseline {one or 'none'!r:.80}"
            )
    return checked(baseline, numbers_of(found), run.unmeasured)


def _measured_with(of: Baseline | MeasurementRequest) -> dict[str, str]:
    return {
        "effort": of.effort,
        "nodes": str(of.nodes),
        "environments": ", ".join(of.environments),
        "binary": of.binary,
        "matrix": str(of.matrix or ""),
        "commands": "; ".join(map(shlex.join, of.commands)),
        "--ignore-failure": "yes" * of.ignore_failure,
    }


def checked_run(baseline: Baseline, ref: str, url: str | None) -> tuple[BaselineCheck, Run]:
    """Judge a stored run. Raises StoreError if it does not exist."""
    found = report(ref, url)
    return checked_report(baseline, found), found.run


def check_place(path: Path) -> None:
    """Raises UsageError if no file can be written there; leaves none."""
    if path.is_dir():
        raise UsageError(f"{path} cannot be written: it is a folder")
    if path.exists() and not path.is_file():
        return  # a device or pipe
    try:
        tempfile.TemporaryDirectory(prefix=".flowos-", dir=path.parent).cleanup()
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def write_junit(path: Path, check: BaselineCheck, run: Run, of: str) -> None:
    """Raises StoreError if it cannot be written."""
    _write(path, junit(check, run, of))


def _write(path: Path, text: str) -> None:
    try:
        with replaced(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
