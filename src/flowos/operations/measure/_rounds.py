"""Blocks of cases that share their rounds, and their state."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from flowos._dataclasses import dataclass, field, replace
from flowos.model import Case, Design, Sample
from flowos.operations.measure._plan import Comparison, ComparisonCase
from flowos.probes import Probe


@dataclass(slots=True, kw_only=True)
class Block:
    """Cases whose rounds are drawn together, and their samples so far.

    until: when its share of the time is over. reserve: the seconds that later blocks need.
    """

    design: Design
    entries: Mapping[Case, ComparisonCase]
    interleaved: bool = False
    seen: list[Sample] = field(default_factory=list)
    tried: set[Case] = field(default_factory=set)
    rounds: int = 0
    spent_seconds: float = 0.0
    until: float = math.nan
    reserve: float = 0.0

    @property
    def probe(self) -> Probe:
        return next(iter(self.entries.values())).compared.probe

    @property
    def lacking(self) -> int:
        """Rounds without which nothing is concluded."""
        return max(self.design.min_rounds - self.rounds, 0)

    @property
    def deciding(self) -> list[Sample]:
        """The samples on which verdicts are based."""
        return [s for s in self.seen if self.probe.decides(s)]


def blocks_of(comparisons: Sequence[Comparison], run: str) -> Iterator[Block]:
    """A block per comparison; of cases that are compared with nothing, a block per probe.

    run: its id, which seeds the orders of rounds.
    """
    for probe, group in groupby(comparisons, key=lambda comparison: comparison.probe):
        ours = list(group)
        if len(ours[0].entries) > 1:
            yield from (_across(comparison, run) for comparison in ours)
            continue
        entries = {entry.case: entry for comparison in ours for entry in comparison.entries}
        seconds = {c.entries[0].case: c.seconds for c in ours}
        design = Design(
            cases=tuple(entries),
            seconds=seconds,
            min_rounds=probe.rounds(entries),
            seed=f"{run} {probe.name}",
        )
        yield Block(design=design, entries=entries)


def _across(comparison: Comparison, run: str) -> Block:
    entries = {entry.case: entry for entry in comparison.entries}
    first = comparison.entries[0]
    design = Design(
        cases=tuple(entries),
        axis=comparison.axis,
        base=first.case.level(comparison.axis),
        margin=comparison.margin,
        seconds=dict.fromkeys(entries, comparison.seconds),
        seed=f"{run} {first.case.label}",
    )
    return Block(design=design, entries=entries, interleaved=comparison.interleaved)


def without(design: Design, cases: Mapping[Case, object]) -> Design:
    """The design without these cases."""
    return replace(design, cases=tuple(c for c in design.cases if c not in cases))
