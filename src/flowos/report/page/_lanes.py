"""Draws the tasks of a timeline: a row for each worker, which is as wide as the page."""

from collections.abc import Iterator, Sequence

from flowos.model import counted
from flowos.report._timeline import Timeline
from flowos.report._timeline_bars import MAX_LANES, Bar, DrawnRow, DrawnRows, drawn_rows
from flowos.report._units import share
from flowos.report.page._marks import brief, bytes_of, people, seconds_of, swatch, time_scale
from flowos.report.page._markup import Markup, tag
from flowos.report.page._style import DASHES
from flowos.report.page._ticks import even_ticks

_WIDTH = 10_000
_MIN_WIDTH = 10
_ROW, _MIN_ROW, _HEIGHT = 22, 4, 640
_LABEL = 14
_TICKS = 5
_NAMED = 4
_MAX_ERROR = 160


def lanes(timeline: Timeline) -> Iterator[Markup]:
    """The picture with its legend, and what it leaves out."""
    drawn = drawn_rows(timeline)
    colours = _colours(timeline)
    row = min(_ROW, max(_MIN_ROW, _HEIGHT // len(drawn.rows)))
    picture = tag(
        "div",
        _labels(drawn.rows, row),
        _drawing(timeline, drawn, colours, row),
        _ticks(timeline),
        class_="lanes",
    )
    yield tag("figure", tag("figcaption", _legend(timeline, drawn, colours)), picture)
    for words in _left_out(timeline, drawn):
        yield tag("p", words, class_="note")


def _colours(timeline: Timeline) -> dict[str, int]:
    """The longest together first. With more names than colours the rest share the last one."""
    seconds: dict[str, float] = {}
    for lane in timeline.lanes:
        for row in lane.rows:
            for each in row:
                task = each.logged.task
                seconds[task] = seconds.get(task, 0.0) + each.end - each.start
    last = len(DASHES) - 1
    names = sorted(seconds, key=seconds.__getitem__, reverse=True)
    return {name: min(i, last) for i, name in enumerate(names)}


def _labels(rows: Sequence[DrawnRow], height: int) -> Markup:
    """A name where its row is high enough, else where there is room for the next one."""
    items, held = [], ""
    room = 0
    for row in rows:
        room += height
        held = held or (row.worker if row.first else "")
        if room >= _LABEL:
            items.append((held, room))
            held, room = "", 0
    items.append((held, room))
    named = (
        tag("li", brief(word), title=brief(word), style=f"height:{h}px") for word, h in items if h
    )
    return tag("ul", *named, aria_hidden="true")


def _drawing(timeline: Timeline, drawn: DrawnRows, colours: dict[str, int], height: int) -> Markup:
    scale = _WIDTH / timeline.seconds
    whole = len(drawn.rows) * height
    series: dict[int, list[Markup]] = {}
    failed, again = [], []
    for i, row in enumerate(drawn.rows):
        for bar in row.bars:
            x, width = round(bar.start * scale), _width(bar, scale)
            series.setdefault(colours[bar.longest], []).append(_rect(bar, x, width, i, height))
            if bar.failed:
                failed.append(f"M{x + width} {i * height}v{height}")
            if bar.repeated:
                again.append(f"M{x} {i * height}v{height}")
    groups = (tag("g", *bars, class_=f"series s{n}") for n, bars in sorted(series.items()))
    return tag(
        "svg",
        tag("title", "What ran when", id="lanes-t"),
        tag("desc", _description(timeline), id="lanes-d"),
        *_background(timeline, drawn.rows, height),
        *groups,
        tag("path", class_="again", d="".join(again)) if again else None,
        tag("path", class_="failed", d="".join(failed)) if failed else None,
        viewBox=f"0 0 {_WIDTH} {whole}",
        preserveAspectRatio="none",
        style=f"height:{whole}px",
        role="img",
        aria_labelledby="lanes-t lanes-d",
    )


def _width(bar: Bar, scale: float) -> int:
    return max(_MIN_WIDTH, round((bar.end - bar.start) * scale))


def _rect(bar: Bar, x: int, width: int, row: int, height: int) -> Markup:
    """Of several tasks it is as high as the share of its time in which they ran."""
    room = height - (2 if height >= _LABEL else 1)
    full = max(1, round(room * min(1.0, bar.busy / (bar.end - bar.start)))) if bar.merged else room
    return tag(
        "rect",
        tag("title", _words(bar)),
        class_="bar no" if bar.cached else "bar",
        x=min(x, _WIDTH - _MIN_WIDTH),
        y=row * height + room - full,
        width=width,
        height=full,
    )


def _words(bar: Bar) -> str:
    first = bar.tasks[0].logged
    at = f"from {seconds_of(bar.start)} on"
    if bar.merged:
        counts = bar.counts.most_common()
        words = [f"{count} {brief(name)}" for name, count in counts[:_NAMED]]
        words += [f"{sum(n for _, n in counts[_NAMED:])} others"] if counts[_NAMED:] else []
        said = f"{len(bar.tasks)} tasks on {brief(first.worker)} {at}, within"
        said += f" {seconds_of(bar.end - bar.start)}: {', '.join(words)}"
        return said + (f"; {bar.failed} failed" if bar.failed else "")
    said = f"{brief(first.task)} on {brief(first.worker)}: {seconds_of(first.seconds)} {at}; "
    said += f"{bytes_of(first.bytes_in)} in, {bytes_of(first.bytes_out)} out"
    said += f"; round {', '.join(map(str, first.rounds))}" if first.rounds else ""
    said += f"; attempt {first.attempt}" if first.attempt > 1 else ""
    said += "; its result was kept, and found" if first.cached else ""
    return said + (f"; failed: {first.error[:_MAX_ERROR]}" if first.error else "")


def _background(timeline: Timeline, rows: Sequence[DrawnRow], height: int) -> Iterator[Markup]:
    """Tracks of the workers, ticks, pauses, and the longest idle time."""
    scale, whole = _WIDTH / timeline.seconds, len(rows) * height
    idle = timeline.idle
    for i, row in enumerate(rows):
        if row.first and height >= _LABEL:
            yield tag("rect", class_="track", y=i * height, width=_WIDTH, height=height - 2)
    ticks = "".join(f"M{round(at * scale)} 0v{whole}" for at, _ in _tick_places(timeline) if at)
    yield tag("path", class_="grid", d=ticks) if ticks else Markup("")
    for before, (start, at) in zip(timeline.starts, timeline.starts[1:], strict=False):
        left_out = start - before[0] - (at - before[1])
        title = tag("title", f"{seconds_of(left_out)} are left out here, in which nothing ran")
        yield tag("path", title, class_="step", d=f"M{round(at * scale)} 0v{whole}")
    place = next((i for i, row in enumerate(rows) if row.worker == idle.worker), None)
    if place is not None and idle.seconds > 0:
        yield tag(
            "rect",
            tag("title", f"{brief(idle.worker)} waited for {seconds_of(idle.seconds)}"),
            class_="idle",
            x=round(idle.start * scale),
            y=place * height,
            width=max(_MIN_WIDTH, round(idle.seconds * scale)),
            height=max(2, height - 2),
        )


def _tick_places(timeline: Timeline) -> list[tuple[float, str]]:
    """With pauses left out, only their ends have a time that a person can use."""
    if len(timeline.starts) == 1:
        scale = time_scale(timeline.seconds)
        ticks = even_ticks(0.0, timeline.seconds / scale.factor, _TICKS)
        return [(t * scale.factor, people(f"{t:g} {scale.symbol}")) for t in ticks]
    first = timeline.starts[0][0]
    places: list[tuple[float, str]] = []
    for time, at in timeline.starts:
        if not places or at - places[-1][0] > timeline.seconds / _TICKS:
            places.append((at, seconds_of(time - first)))
    return places


def _ticks(timeline: Timeline) -> Markup:
    spans = (
        tag("span", words, style=f"left:{100 * at / timeline.seconds:.1f}%")
        for at, words in _tick_places(timeline)
        if at < timeline.seconds * 0.96
    )
    return tag("div", *spans, class_="ticks", aria_hidden="true")


def _legend(timeline: Timeline, drawn: DrawnRows, colours: dict[str, int]) -> Markup:
    last = len(DASHES) - 1
    shared = [name for name, colour in colours.items() if colour == last]
    items = [(name, n) for name, n in colours.items() if n < last or len(shared) == 1]
    if len(shared) > 1:
        items.append((counted(len(shared), "other task"), last))
    bars = [bar for row in drawn.rows for bar in row.bars]
    return tag(
        "ul",
        *(
            tag("li", swatch(n, bar=True), tag("span", brief(name)), class_=f"k{n}")
            for name, n in items
        ),
        _mark("failed", "M9 1v12", "failed") if any(b.failed for b in bars) else None,
        _mark("again", "M9 1v12", "another attempt") if any(b.repeated for b in bars) else None,
        _mark("bar no s0", "M2 2h14v10h-14Z", "kept result")
        if any(b.cached for b in bars)
        else None,
        _mark("idle", "M2 2h14v10h-14Z", "the longest wait") if timeline.idle.seconds > 0 else None,
        class_="legend",
    )


def _mark(kind: str, path: str, words: str) -> Markup:
    drawn = tag("path", class_=kind, d=path)
    image = tag("svg", drawn, width="18", height="14", aria_hidden="true")
    return tag("li", image, tag("span", words))


def _left_out(timeline: Timeline, drawn: DrawnRows) -> Iterator[str]:
    bars, tasks = drawn.merged
    if bars:
        yield (
            f"{_stand(bars)} for {tasks} tasks: those that are shorter than "
            f"{seconds_of(drawn.cell_seconds)} are put together by that time. Such a bar is as "
            "high as the share of the time in which they ran, and has the colour of the task that "
            "took most of it."
        )
    if len(timeline.lanes) > MAX_LANES:
        more = len(timeline.lanes) - MAX_LANES
        yield f"{counted(more, 'more worker')} are not drawn; the table of workers has all."


def _stand(bars: int) -> str:
    return "1 bar stands" if bars == 1 else f"{bars} bars stand"


def _description(timeline: Timeline) -> str:
    """The picture in a sentence, for a screen reader; tables have the numbers."""
    tasks = sum(len(row) for lane in timeline.lanes for row in lane.rows)
    return (
        f"{counted(tasks, 'task')} on {counted(len(timeline.lanes), 'worker')} in "
        f"{seconds_of(timeline.seconds)}; the workers were busy for {share(timeline.busy_share)}."
    )
