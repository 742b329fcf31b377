"""A number among those of other runs of its kind, in words."""

from collections.abc import Iterator, Sequence

from flowos.model import counted
from flowos.plan import NumberPlace
from flowos.report._report import Report
from flowos.report._units import number, span
from flowos.report._wrap import wrapped

TITLE = "Is this normal for such a machine?"
NAMES = ("number", "here", "median of others", "their range", "place")


def about(report: Report) -> str:
    """Of what kind the others are, and why a place is no verdict."""
    facts, places = report.run.facts, report.places
    most = max(places, key=lambda each: each.runs)
    others = f"{counted(most.runs, 'other run')} of {counted(most.machines, 'machine')}"
    return (
        f"The newest runs in the store with the same processor ({facts.cpu_model}), number of cpus"
        f" ({len(facts.allowed)}) and way of measuring: up to {others}. The range is from their"
        f" lowest to their highest. A place is no verdict: of {most.runs + 1} runs that are alike"
        " one is the worst by chance; flowos baseline and flowos compare judge."
    )


def place_words(place: NumberPlace) -> str:
    if place.answer == "within":
        return f"within {counted(place.runs, 'run')}"
    return f"{place.answer} than all {place.runs}"


def cells_of(place: NumberPlace) -> tuple[str, ...]:
    """One for each of NAMES."""
    value, middle = (
        number(each, place.unit, place.metric) for each in (place.own.value, place.median)
    )
    reach = span(place.low, place.high, place.unit, place.metric)
    return (place.label, value, middle, reach, place_words(place))


def lines_of_places(report: Report, width: int) -> Iterator[str]:
    """A table for a terminal."""
    if not report.places:
        return
    yield TITLE
    yield from wrapped(about(report), "  ", "  ", width)
    yield from _aligned([NAMES, *map(cells_of, report.places)])
    yield ""


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *numbers, last in rows:
        middle = (cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))
        yield "  " + "  ".join([first.ljust(widths[0]), *middle, last])
