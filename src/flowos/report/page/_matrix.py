"""A matrix as a heat map: a table, so that screen readers and printers have its numbers too."""

from flowos.model import Measurement
from flowos.report._matrix import Matrix
from flowos.report._words import spread_of, trust_of, value_of
from flowos.report.page._marks import people
from flowos.report.page._markup import Markup, tag

MAX_TITLES = 1500
"""Cells up to which each says its spread and trust where a mouse points; more make the page big."""


def heat_map(matrix: Matrix, name: str) -> Markup:
    """The larger a number, the darker its cell; a triangle marks one that cannot be trusted."""
    head = tag(
        "tr",
        tag("th", matrix.corner, scope="col"),
        *(tag("th", column, scope="col", class_="n") for column in matrix.columns),
    )
    rows = (
        tag(
            "tr",
            tag("th", row, scope="row"),
            *(_cell(matrix, matrix.cells.get((row, column))) for column in matrix.columns),
        )
        for row in matrix.rows
    )
    return tag(
        "div",
        tag(
            "table",
            tag("caption", tag("span", f"{people(matrix.heading)}. {_range(matrix)}"), id=name),
            tag("thead", head),
            tag("tbody", *rows),
            class_="heat",
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_labelledby=name,
    )


def _range(matrix: Matrix) -> str:
    """The shades in words."""
    values = [m.value for m in matrix.cells.values()]
    low, high = (people(matrix.scale.number(v)) for v in (min(values), max(values)))
    return f"From {low} (lightest) to {high} (darkest)."


def _cell(matrix: Matrix, m: Measurement | None) -> Markup:
    if m is None:
        return tag("td")
    shade = matrix.shade(m)
    said = f"{people(value_of(m, matrix.scale))} ({spread_of(m, matrix.scale)}; {trust_of(m)})"
    untrusted = "" if m.trust.good else "\N{BLACK UP-POINTING TRIANGLE} "
    return tag(
        "td",
        untrusted + matrix.scale.text(m.value),
        class_=f"n h{shade}" if shade else "n",
        title=said if len(matrix.cells) <= MAX_TITLES else None,
    )
