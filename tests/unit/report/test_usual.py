"""A run among others of its kind: text, Markdown and the page."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from flowos.plan import HistoryPoint, NumberPlace, place_among
from flowos.report import Report, html, json, markdown, read_json, text

from .test_plots import Drawing, image_after


def place(value: float, *, trusted: bool = True, others: float = 1e9) -> NumberPlace:
    points = [
        HistoryPoint(
            run=f"r{n}", machine="m", started=f"2026-11-0{n}", value=others * (1 + n % 3 / 10)
        )
        for n in range(1, 6)
    ]
    own = HistoryPoint(run="r9", machine="m", started="2026-11-09", value=value, trusted=trusted)
    found = place_among("STREAM triad", "triad", "byte/s", own, points)
    assert found
    return found


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.05e9, "within 5 runs"), (2e9, "better than all 5"), (1e8, "worse than all 5")],
)
def test_the_place_is_in_words_in_every_format(small: Report, value: float, words: str) -> None:
    report = replace(small, places=(place(value),))
    assert words in text(report)
    assert words in markdown(report)
    page = html(report)
    assert words in page
    assert "Is this normal?" in page, "in the contents"
    assert "up to 5 other runs of 1 machine" in " ".join(text(report).split())
    assert "of 6 runs that are alike one is the worst by chance" in " ".join(text(report).split())
    assert read_json(json(report)).places == report.places


def test_the_terminal_has_names_on_the_left_and_numbers_on_the_right(small: Report) -> None:
    lines = text(replace(small, places=(place(1.05e9),))).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  number  "))
    assert lines[at : at + 3] == [
        "  number             here  median of others        their range  place",
        "  STREAM triad  1.05 GB/s         1.10 GB/s  1.00 to 1.20 GB/s  within 5 runs",
        "",
    ]


def test_without_enough_others_nothing_is_said(small: Report) -> None:
    for shown in (text(small), markdown(small), html(small)):
        assert "Is this normal" not in shown


def test_a_strip_has_a_dot_for_each_run_in_its_order(small: Report) -> None:
    page = html(replace(small, places=(place(1.05e9, trusted=False),)))
    head = page.partition('id="usual-n"')[2].partition("</thead>")[0]
    numbers = re.findall(r'<th scope="col" class="n">([^<]+)', head)
    assert numbers == ["here", "median of others", "their range"], "on the right"
    strip = page[page.index('class="forest strip" ') :]
    strip = strip[: strip.index("</svg>")]
    assert strip.count("<circle") == 6
    assert strip.index("2026-11-01") < strip.index("2026-11-05") < strip.index("2026-11-09")
    assert strip.count("dot no") == 1
    assert "not trusted" in strip
    drawn = Drawing(f"<svg {strip}</svg>")
    dots = [dot.at("cx", "cy", "r") for dot in drawn.all("circle")]
    steps = [b[0] - a[0] for a, b in pairwise(dots)]
    assert steps == [steps[0]] * 5, "evenly spaced"
    assert (dots[0][0], dots[-1][0]) == (5, 145), "of 150"
    assert [y for _, y, _ in dots] == [15, 5, 25, 15, 5, 20], "from 25 for the lowest to 5"
    assert [r for _, _, r in dots] == [2.5, 2.5, 2.5, 2.5, 2.5, 4]
    assert [group.kind for group in drawn.all("g")] == [*["s7"] * 5, "s1"]
    titles = [title.text.replace("\xa0", " ") for title in drawn.all("title")]
    assert titles[0] == "2026-11-01, m: 1.10 GB/s"
    assert titles[-1] == "2026-11-09, m: 1.05 GB/s, not trusted"
    (band,), (median,) = drawn.all("rect", "band"), drawn.all("path", "one")
    assert band.at("x", "y", "width", "height") == [0, 5, 150, 20], "the range of the others"
    assert median.numbers == [0, 15, 150, 15]


def test_a_strip_of_equal_numbers_is_drawn(small: Report) -> None:
    points = [
        HistoryPoint(run=f"r{n}", machine="m", started=f"2026-11-0{n}", value=5.0) for n in range(6)
    ]
    found = place_among("Same", "n", "1", points[0], points[1:])
    assert found
    page = html(replace(small, places=(found,)))
    assert "nan" not in page
    drawn = image_after(page, '<th scope="row">Same')
    assert [dot.at("cy")[0] for dot in drawn.all("circle")] == [15] * 6, "in the middle"
    assert drawn.all("rect", "band")[0].at("y", "height") == [15, 1], "and still a band"
