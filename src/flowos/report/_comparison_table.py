"""Arranges comparisons in rows: grouped by probe, worst first, common levels stated once."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from textwrap import wrap

from flowos._dataclasses import dataclass
from flowos.model import Pairs, Verdict, counted
from flowos.plan import GEOMEAN
from flowos.report._panels import with_axis
from flowos.report._units import share
from flowos.report._words import ratio_text
from flowos.report._wrap import WIDTH, wrapped

_ORDER = ("slower", "inconclusive", "equal", "faster")
_CHANGE_WIDTH, _MIN_WIDTH = 30, 14


@dataclass(frozen=True, slots=True)
class VerdictGroup:
    """The comparisons of one probe. `same`: levels common to all of them."""

    probe: str
    rows: tuple[Verdict, ...]
    same: Pairs

    @property
    def one_axis(self) -> bool:
        return len({(v.axis, v.base) for v in self.rows}) == 1

    @property
    def change_title(self) -> str:
        return self.rows[0].axis if self.one_axis else "change"

    @property
    def by_case(self) -> bool:
        """Whether there are several cases, and at least one compares several levels."""
        cases = {self.at(row) for row in self.rows}
        return self.one_axis and 1 < len(cases) < len(self.rows)

    def change(self, v: Verdict) -> str:
        return v.other if self.one_axis else f"{v.axis}: {v.other} instead of {v.base}"

    def at(self, v: Verdict) -> str:
        """The metric and the levels that distinguish this row from the others."""
        metrics = {row.metric for row in self.rows}
        words = [v.metric.replace("_", " ")] if len(metrics) > 1 else []
        words += [
            with_axis(axis, level) for axis, level in v.rest if (axis, level) not in self.same
        ]
        return ", ".join(words)

    @property
    def title(self) -> str:
        first = self.rows[0]
        one_metric = {row.metric for row in self.rows} == {first.metric} != {self.probe}
        name = f"{self.probe} {first.metric}" if one_metric else self.probe
        change = f": {first.axis} instead of {first.base}" if self.one_axis else ""
        same = ", ".join(f"{axis} {level}" for axis, level in self.same)
        return name.replace("_", " ") + change + (f" (all with {same})" if same else "")


def grouped(verdicts: Iterable[Verdict]) -> tuple[VerdictGroup, ...]:
    """Groups by probe in the order given; within a group the slowest first and the fastest last.

    Comparisons of several levels of one axis are ordered by case, so that a case is in one place.
    """
    found: dict[str, list[Verdict]] = {}
    for v in verdicts:
        found.setdefault(v.probe, []).append(v)
    return tuple(
        VerdictGroup(probe=probe, rows=tuple(_in_order(rows)), same=_same(rows))
        for probe, rows in found.items()
    )


def _in_order(rows: Sequence[Verdict]) -> Sequence[Verdict]:
    """The worst first, within a case and among the cases."""
    ordered = sorted(rows, key=_badness)
    if len({(v.axis, v.base) for v in rows}) > 1:
        return ordered
    cases = [(v.metric, v.rest) for v in ordered]
    return sorted(ordered, key=lambda v: cases.index((v.metric, v.rest)))


def _badness(v: Verdict) -> tuple[int, bool, float]:
    known = math.isfinite(v.ratio)
    return _ORDER.index(v.answer), not known, v.ratio if known else 0.0


def _same(rows: Sequence[Verdict]) -> Pairs:
    """Levels that every row has, except the axis that it compares."""
    pairs = dict.fromkeys(pair for v in rows for pair in v.rest)
    return tuple(
        (axis, level)
        for axis, level in pairs
        if all(axis == v.axis or (axis, level) in v.rest for v in rows)
    )


def summary(verdicts: Sequence[Verdict]) -> str:
    """Counts, such as 5 comparisons: 2 slower, 1 inconclusive, 2 equal, 0 faster.

    The overall verdict on a single case is no comparison of its own.
    """
    verdicts = [v for v in verdicts if not _says_the_same(v, verdicts)]
    answers = [v.answer for v in verdicts]
    counts = ", ".join(f"{sum(a == answer for a in answers)} {answer}" for answer in _ORDER)
    untrusted = sum(v.disturbed > 0 for v in verdicts)
    marked = f"; {untrusted} of them on disturbed rounds (!)" if untrusted else ""
    return f"{counted(len(answers), 'comparison')}: {counts}{marked}"


def _says_the_same(v: Verdict, verdicts: Sequence[Verdict]) -> bool:
    if v.probe != GEOMEAN:
        return False
    return sum((w.probe, w.axis, w.other) == (v.metric, v.axis, v.other) for w in verdicts) == 1


def untrusted(v: Verdict) -> str:
    """Evidence against a verdict, or ""."""
    return f"{v.disturbed} of {counted(v.rounds, 'round')} disturbed" if v.disturbed else ""


def rounds_of(v: Verdict) -> str:
    """Number of rounds and, if inconclusive, about how many would decide: 4 of ~10."""
    return f"{v.rounds} of ~{v.needed}" if v.needed else str(v.rounds)


def known(v: Verdict) -> str:
    """Range of an inconclusive answer, such as: from 40% slower to 21% faster."""
    if v.answer != "inconclusive" or not (v.low > 0 and math.isfinite(v.high)):
        return ""
    return f"from {_difference(v.low)} to {_difference(v.high)}"


def _difference(ratio: float) -> str:
    return f"{share(abs(ratio - 1))} {'slower' if ratio < 1 else 'faster'}"


def notes_of(v: Verdict) -> tuple[str, ...]:
    """The reasons of a verdict, one by one."""
    return tuple(note for note in v.why.split("; ") if note)


def lines_of(verdicts: Sequence[Verdict], width: int = WIDTH) -> Iterator[str]:
    """Lines for a terminal: the summary, then a table for each probe, at most this wide."""
    if not verdicts:
        yield "nothing to compare: no case is in both"
        return
    yield from wrapped(summary(verdicts), width=width)
    for group in grouped(verdicts):
        yield ""
        yield from wrapped(group.title, rest="  ", width=width)
        yield from _table(group, width)


def _table(group: VerdictGroup, width: int) -> Iterator[str]:
    met = [v for v in group.rows if v.rounds or math.isfinite(v.ratio)]
    notes = _notes(met, group.rows)
    rows = [_cells(group, v, notes) for v in met]
    names = (group.change_title, "answer", "ratio (95 %)", "rounds", "note", "at")
    if rows:
        head, *blocks = _aligned([names, *rows], "    " if group.by_case else "  ", width)
        yield from head
        yield from _under_cases(group, met, blocks, width) if group.by_case else chain(*blocks)
    if apart := len(group.rows) - len(met):
        yield f"  {apart}{' more' if met else ''}: not measured there and back in one round"
    for note, number in notes.items():
        mark = f"  [{number}] " if met else "  "
        yield from wrapped(note, mark, " " * len(mark), width)


def _under_cases(
    group: VerdictGroup, met: Iterable[Verdict], blocks: Iterable[Sequence[str]], width: int
) -> Iterator[str]:
    """Each case once, above its rows."""
    case = ""
    for v, block in zip(met, blocks, strict=True):
        if group.at(v) != case:
            case = group.at(v)
            yield from wrapped(case, "  ", "  ", width)
        yield from block


def _notes(met: Iterable[Verdict], rows: Iterable[Verdict]) -> dict[str, int]:
    """Each reason once, numbered in row order; only the commands of rows that are not listed."""
    numbered = dict.fromkeys(note for v in met for note in notes_of(v))
    numbered |= dict.fromkeys(note for v in rows for note in notes_of(v) if "`" in note)
    return {note: number for number, note in enumerate(numbered, start=1)}


def _cells(group: VerdictGroup, v: Verdict, notes: dict[str, int]) -> tuple[str, ...]:
    numbers = ",".join(map(str, sorted(notes[note] for note in notes_of(v))))
    answer = f"{v.answer} !" if v.disturbed else v.answer
    at = "" if group.by_case else group.at(v)
    return (group.change(v), answer, ratio_text(v), rounds_of(v), numbers, at)


def _aligned(rows: Sequence[tuple[str, ...]], indent: str, width: int) -> Iterator[Sequence[str]]:
    """The lines of each row. The first and the last column wrap; empty columns are dropped."""
    columns_of_rows = zip(*rows[1:], strict=True)
    used = [i for i, cells in enumerate(columns_of_rows) if not i or any(cells)]
    widths = _widths({i: max(len(row[i]) for row in rows) for i in used}, width - len(indent))
    for row in rows:
        columns = [wrap(row[i], widths[i]) if i in (0, 5) else [row[i]] for i in used]
        lines = []
        for at in range(max(map(len, columns))):
            cells = [column[at] if at < len(column) else "" for column in columns]
            padded = (cell.ljust(widths[i]) for cell, i in zip(cells, used, strict=True))
            lines.append(f"{indent}{'  '.join(padded)}".rstrip())
        yield lines


def _widths(full: Mapping[int, int], room: int) -> dict[int, int]:
    """Of the columns, which need these: the last has what is left, and the first gives way."""
    widths = {i: _MIN_WIDTH if i == 5 else width for i, width in full.items()}
    left = room - sum(widths[i] + 2 for i in widths if i)
    widths[0] = min(widths[0], _CHANGE_WIDTH, max(_MIN_WIDTH, left))
    if 5 in widths:
        widths[5] += max(0, left - widths[0])
    return widths
