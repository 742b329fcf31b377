"""What is drawn of a timeline: a bar for each task, or for several that are too short to see."""

from collections import Counter
from collections.abc import Iterator, Sequence

from flowos._dataclasses import dataclass
from flowos.report._timeline import PlacedTask, Timeline

MAX_LANES = 400
_MAX_BARS = 9000
_COLUMNS = 1000
_MIN_COLUMNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Tasks of one row. start, end: seconds of the page; busy: of these, in which they ran."""

    start: float
    end: float
    tasks: tuple[PlacedTask, ...]
    busy: float

    @property
    def merged(self) -> bool:
        return len(self.tasks) > 1

    @property
    def counts(self) -> "Counter[str]":
        """How many of each name."""
        return Counter(each.logged.task for each in self.tasks)

    @property
    def longest(self) -> str:
        """The name that took most of the time."""
        seconds: dict[str, float] = {}
        for each in self.tasks:
            task = each.logged.task
            seconds[task] = seconds.get(task, 0.0) + each.logged.seconds
        return max(seconds, key=seconds.__getitem__)

    @property
    def failed(self) -> int:
        return sum(bool(each.logged.error) for each in self.tasks)

    @property
    def repeated(self) -> int:
        return sum(each.logged.attempt > 1 for each in self.tasks)

    @property
    def cached(self) -> bool:
        """Whether none of them ran."""
        return all(each.logged.cached for each in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRow:
    """first: whether it is the first row of its worker."""

    worker: str
    first: bool
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRows:
    """cell_seconds: shorter tasks within so many seconds are one bar."""

    rows: tuple[DrawnRow, ...]
    cell_seconds: float

    @property
    def merged(self) -> tuple[int, int]:
        """How many bars stand for several tasks, and for how many."""
        several = [len(b.tasks) for row in self.rows for b in row.bars if b.merged]
        return len(several), sum(several)


def drawn_rows(timeline: Timeline) -> DrawnRows:
    """As fine as a page can hold it. Workers beyond MAX_LANES are left out."""
    lanes = timeline.lanes[:MAX_LANES]
    columns = _COLUMNS
    while True:
        cell = timeline.seconds / columns
        rows = tuple(
            DrawnRow(worker=lane.worker, first=i == 0, bars=tuple(_bars(row, cell)))
            for lane in lanes
            for i, row in enumerate(lane.rows)
        )
        columns //= 2
        if columns < _MIN_COLUMNS or sum(len(row.bars) for row in rows) <= _MAX_BARS:
            return DrawnRows(rows=rows, cell_seconds=cell)


def _bars(row: Sequence[PlacedTask], cell: float) -> Iterator[Bar]:
    """Tasks shorter than a cell whose middles lie in the same one are put together."""
    held: list[PlacedTask] = []
    at = 0
    for each in row:
        long = each.end - each.start >= cell
        place = 0 if long else int((each.start + each.end) / 2 / cell)
        if held and (long or place != at):
            yield _bar(held, at, cell)
            held = []
        if long:
            yield Bar(start=each.start, end=each.end, tasks=(each,), busy=each.end - each.start)
        else:
            held.append(each)
            at = place
    if held:
        yield _bar(held, at, cell)


def _bar(held: Sequence[PlacedTask], place: int, cell: float) -> Bar:
    busy = sum(each.end - each.start for each in held)
    if len(held) == 1:
        return Bar(start=held[0].start, end=held[0].end, tasks=tuple(held), busy=busy)
    return Bar(start=place * cell, end=(place + 1) * cell, tasks=tuple(held), busy=busy)
