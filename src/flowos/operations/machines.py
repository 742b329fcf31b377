"""Slow ones among machines of a kind, and changes of one machine over time, in stored runs."""

from collections.abc import Sequence

from flowos._dataclasses import dataclass
from flowos.model import UsageError, counted
from flowos.operations._alike_runs import AlikeRuns, alike_runs
from flowos.plan import (
    MIN_HISTORY,
    MIN_MACHINES,
    NumberHistory,
    SlowMachines,
    number_changes,
    slow_machines,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHistory:
    """What of a machine changed over its runs. numbers: all that it has, changed or not."""

    machine: str
    runs: tuple[str, ...]
    numbers: tuple[NumberHistory, ...]

    @property
    def worse(self) -> bool:
        """Whether the last change of any number was for the worse."""
        return any(n.changes[-1].ratio < 1 for n in self.numbers if n.changes)


def slow_among(
    refs: Sequence[str],
    url: str | None,
    *,
    limit: int | None,
    only: Sequence[str],
    error: float,
) -> SlowMachines:
    """Which machines are slow, of these runs, or of all that are like one.

    If all runs are of one name, each counts as a machine of its own. Raises UsageError for fewer
    than three machines.
    """
    alike = alike_runs(refs, url, min_runs=MIN_MACHINES, limit=limit, only=only)
    found = slow_machines(alike.measured, error=error)
    if len(found.machines) < MIN_MACHINES:
        raise UsageError(
            f"{_counted(alike)}, of {len(found.machines)} machines: one that is slow stands out"
            f" among {MIN_MACHINES} or more"
        )
    return found


def changes_of(
    refs: Sequence[str],
    url: str | None,
    *,
    limit: int | None,
    only: Sequence[str],
    error: float,
) -> MachineHistory:
    """When numbers of a machine changed, in these runs of it, or in all that are like one.

    Raises UsageError for fewer than six runs.
    """
    found = alike_runs(refs, url, min_runs=MIN_HISTORY, limit=limit, only=only, one_machine=True)
    if len(found.runs) < MIN_HISTORY:
        raise UsageError(
            f"{_counted(found)}: a change is found in {MIN_HISTORY} runs or more, three before it"
            " and three after it"
        )
    return MachineHistory(
        machine=found.machines[0],
        runs=tuple(run.id for run in found.runs),
        numbers=number_changes(found.measured, error=error),
    )


def _counted(found: AlikeRuns) -> str:
    runs = len(found.runs)
    return f"there {'is' if runs == 1 else 'are'} {counted(runs, 'run')} like it"
