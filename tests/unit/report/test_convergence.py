"""How a residual fell, for a terminal, as an image, as a page."""

from base64 import b64decode
from xml.etree import ElementTree

import pytest

from flowos.report import (
    ConvergencePlot,
    convergence_cell,
    convergence_html,
    convergence_svg,
    convergence_text,
)

from .test_plots import Drawing

FALL = ConvergencePlot(
    title="poisson:8x8x8",
    points=tuple((i, 10.0 ** (-i / 4)) for i in range(1, 33)),
    goal=1e-7,
)


def test_the_terminal_shows_the_fall_the_goal_and_the_ends() -> None:
    first, *rows, _, under = convergence_text(FALL).splitlines()
    assert first == "relative residual, - - goal 1.00e-07"
    assert rows[0] == "1e+00 |*"
    labels = [row[:5] for row in rows if row[:5].strip()]
    assert labels == ["1e+00", *(f"1e-0{i}" for i in range(1, 9))]
    (dashed,) = [row for row in rows if "- - -" in row]
    assert dashed.startswith("1e-07 |")
    assert rows[-1].startswith("1e-08 |")
    assert rows[-1].endswith("*")
    assert under.split() == ["1", "32", "iterations"]
    for columns in (79, 40):
        assert max(map(len, convergence_text(FALL, columns).splitlines())) == columns


def test_a_value_is_in_the_row_and_the_column_of_its_place() -> None:
    """Two rows a decade; of 21 columns the last is that of the last step."""
    plot = ConvergencePlot(title="x", points=((0, 1.0), (10, 1e-2), (20, 1e-4)), goal=1e-3)
    assert convergence_text(plot, 28).splitlines() == [
        "relative residual, - - goal 0.00100",
        "1e+00 |*",
        "      |",
        "1e-01 |",
        "      |",
        "1e-02 |          *",
        "      |",
        "1e-03 |- - - - - - - - - - -",
        "      |",
        "1e-04 |                    *",
        "      +---------------------",
        "       0       20 iterations",
    ]


def test_the_image_has_its_line_and_its_goal_at_the_ticks_of_their_values() -> None:
    points = ((0, 1.0), (10, 1e-2), (20, 1e-4))
    drawn = Drawing(convergence_svg(ConvergencePlot(title="x", points=points, goal=1e-3)))
    (line,), (goal,) = drawn.all("path", "line"), drawn.all("path", "ceiling")
    columns, rows = drawn.columns, drawn.rows
    ticks = [
        (columns["0"], rows["1"]),
        (columns["10"], rows["0.01"]),
        (columns["20"], rows["0.0001"]),
    ]
    assert line.numbers == pytest.approx([at for tick in ticks for at in tick], abs=0.11)
    (end,) = drawn.all("circle")
    assert end.at("cx", "cy") == line.numbers[-2:]
    base, *marks = drawn.all("path", "base")
    left, bottom, right, _ = base.numbers
    assert goal.numbers == pytest.approx([left, rows["0.001"], right, rows["0.001"]], abs=0.11)
    words = drawn.texts["goal 0.00100"]
    assert words.at("x", "y") == pytest.approx([left + 8, rows["0.001"] - 6], abs=0.11)
    for mark, at in zip(marks, columns.values(), strict=True):
        assert mark.numbers == pytest.approx([at, bottom, at, bottom + 5], abs=0.11)
    assert drawn.texts["relative residual"].at("x", "y") == [0, 15]
    assert drawn.texts["iterations"].at("x") == [right]
    assert bottom < drawn.texts["20"].at("y")[0] < drawn.texts["iterations"].at("y")[0] < 350
    assert left < columns["0"] < columns["20"] <= right
    assert 34 < rows["1"] < rows["0.1"] < rows["0.0001"] < bottom
    assert rows["0.1"] - rows["1"] == pytest.approx(rows["0.0001"] - rows["0.001"], abs=0.11)
    (said,) = (each.text for each in drawn.all("desc"))
    assert said == (
        "A line: relative residual 1.0e+00 after 0 iterations, 1.0e-04 after 20."
        " The goal is 1.0e-03."
    )


def test_the_image_of_one_value_has_it_in_the_middle_and_no_goal_where_there_is_none() -> None:
    drawn = Drawing(convergence_svg(ConvergencePlot(title="x", points=((3, 0.5),))))
    assert drawn.all("circle")[0].at("cx")[0] == drawn.columns["3"] == (70 + 544) / 2
    assert list(drawn.columns) == ["2", "3", "4"]
    assert "goal" not in drawn.all("desc")[0].text


@pytest.mark.parametrize(
    ("points", "goal", "rows"),
    [
        (((1, 0.5),), 0.0, 3),
        (((1, 1.0), (2, 1.0)), 0.0, 3),
        (((1, 1.0), (9, 1e-12)), 0.0, 13),
        (((1, 1e3), (9, 1e-60)), 1e-7, 17),
    ],
)
def test_any_range_fits_a_terminal(
    points: tuple[tuple[int, float], ...], goal: float, rows: int
) -> None:
    shown = convergence_text(ConvergencePlot(title="x", points=points, goal=goal)).splitlines()
    assert sum("|" in line for line in shown) == rows
    assert sum(line.count("*") for line in shown) == len(points)


@pytest.mark.parametrize("points", [(), ((1, 0.0),), ((1, float("nan")), (2, float("inf")))])
def test_where_there_is_nothing_to_draw_it_says_so(points: tuple[tuple[int, float], ...]) -> None:
    empty = ConvergencePlot(title="x", points=points, goal=1e-7)
    assert convergence_text(empty) == ""
    assert "There is nothing to draw." in convergence_svg(empty)
    assert "There is nothing to draw." in convergence_html(empty, "told", ())


def test_a_long_fall_is_thinned_and_keeps_its_ends() -> None:
    points = tuple((i, 1.0 / (i + 1)) for i in range(100_001))
    drawn = ConvergencePlot(title="x", points=points).drawn
    assert len(drawn) <= 401
    assert (drawn[0], drawn[-1]) == (points[0], points[-1])


@pytest.mark.parametrize("goal", [0.0, 1e-7])
@pytest.mark.parametrize("points", [FALL.points, ((3, 0.5),), ((1, 2.0), (2, 1.0))])
def test_the_image_is_svg_that_names_and_tells_itself(
    points: tuple[tuple[int, float], ...], goal: float
) -> None:
    root = ElementTree.fromstring(
        convergence_svg(ConvergencePlot(title="a <b>", points=points, goal=goal))
    )
    names = {child.tag.removeprefix("{http://www.w3.org/2000/svg}") for child in root}
    assert {"style", "title", "desc", "path", "text"} <= names
    texts = [child.text for child in root]
    assert "a <b>" in texts
    assert ("goal 1.00e-07" in texts) == (goal > 0)


def test_the_page_holds_plot_numbers_and_facts_and_loads_nothing() -> None:
    page = convergence_html(FALL, "converged: 32 iterations", (("Blocks", "tiles <8>"),))
    assert page.startswith("<!doctype html>")
    for part in (
        "poisson:8x8x8",
        "converged: 32 iterations",
        "tiles &lt;8&gt;",
        "<svg",
        "1.000e-08",
    ):
        assert part in page
    assert "http" not in page.replace("http-equiv", "")
    assert "script" not in page


def test_a_notebook_gets_the_same_image_and_words_that_stay_words() -> None:
    cell = convergence_cell(FALL, "<b>converged</b>")
    image = cell.partition("base64,")[2].partition('"')[0]
    assert b64decode(image).decode() == convergence_svg(FALL)
    assert "&lt;b&gt;converged" in cell
    assert 'alt="A line: relative residual' in cell
