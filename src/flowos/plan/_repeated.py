"""The same numbers in several runs, on one scale: the logarithm of how good each is."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from flowos._dataclasses import dataclass, replace
from flowos.model import Case, Measurement, UnjudgedNumber, lower_is_better
from flowos.plan._compare import MEDIAN_PER_QUARTILES
from flowos.plan._unpaired import Numbers

RESOLUTION = 0.01
"""Differences up to this share are of no interest, however sure they are."""


@dataclass(frozen=True, kw_only=True)
class MachineRun:
    """What a run measured on a machine."""

    machine: str
    numbers: Numbers


_Found = tuple[MachineRun, Measurement]


@dataclass(frozen=True, kw_only=True)
class RepeatedNumber:
    """A number in the runs that have it, in their order."""

    case: Case
    metric: str
    unit: str
    found: tuple[_Found, ...]

    @property
    def disturbed(self) -> bool:
        """Whether some of them are marked."""
        return not all(m.trust.good for _, m in self.found)

    @property
    def goodness(self) -> tuple[float, ...]:
        """Of each run: logarithms of which the higher one is better."""
        return tuple(goodness(m.value, self.unit) for _, m in self.found)

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.machine for run, _ in self.found))

    def by_machine(self) -> tuple[tuple[float, ...], ...]:
        """The goodness in the runs of each of `machines`."""
        of = {machine: list[float]() for machine in self.machines}
        for (run, _), value in zip(self.found, self.goodness, strict=True):
            of[run.machine].append(value)
        return tuple(map(tuple, of.values()))

    @property
    def min_deviation(self) -> float:
        """Standard error of the median of a run, from the middle half of its values: the median of
        a new run scatters by this at least.

        Without it runs that agree by chance, as coarse clocks have them do, would seem exact.
        """
        shares = (((m.high - m.low) / m.median, m.count) for _, m in self.found)
        squares = ((MEDIAN_PER_QUARTILES * share) ** 2 / count for share, count in shares)
        return max(math.sqrt(fmean(squares)), 1e-9)


def repeated(
    runs: Sequence[MachineRun], *, of: Callable[[MachineRun], str], min_runs: int, quiet: int
) -> tuple[tuple[RepeatedNumber, ...], tuple[RepeatedNumber, ...]]:
    """Numbers of at least `min_runs` different `of`, in the order first seen: those above 0 in all
    runs that have them, and the others, which have no logarithm.

    Of the former, marked ones are left out if the others are of at least `quiet` different `of`,
    and are half.
    """
    found: dict[tuple[Case, str, str], list[_Found]] = {}
    for run in runs:
        for key, m in run.numbers.by_key.items():
            found.setdefault(key, []).append((run, m))
    numbers = [
        RepeatedNumber(case=case, metric=metric, unit=unit, found=tuple(all_))
        for (case, metric, unit), all_ in found.items()
        if len({of(run) for run, _ in all_}) >= min_runs
    ]
    judged = (replace(n, found=_quiet(n.found, of, quiet)) for n in numbers if _has_logarithms(n))
    return tuple(judged), tuple(n for n in numbers if not _has_logarithms(n))


def unjudged(numbers: Sequence[RepeatedNumber]) -> tuple[UnjudgedNumber, ...]:
    return tuple(UnjudgedNumber(case=n.case, metric=n.metric) for n in numbers)


def _has_logarithms(number: RepeatedNumber) -> bool:
    return all(min(m.value, m.median) > 0 and math.isfinite(m.value) for _, m in number.found)


def _quiet(
    found: Sequence[_Found], of: Callable[[MachineRun], str], min_runs: int
) -> tuple[_Found, ...]:
    unmarked = [each for each in found if each[1].trust.good]
    enough = len({of(run) for run, _ in unmarked}) >= min_runs and 2 * len(unmarked) >= len(found)
    return tuple(unmarked if enough else found)


def goodness(value: float, unit: str) -> float:
    """The logarithm of a number, or of its inverse if lower is better."""
    return -math.log(value) if lower_is_better(unit) else math.log(value)


def at_goodness(good: float, unit: str) -> float:
    """The number that has this goodness."""
    return math.exp(-good if lower_is_better(unit) else good)
