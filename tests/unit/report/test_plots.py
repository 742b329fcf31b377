"""Plots: what is drawn lies at the ticks of its values, and words stand next to what they name."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import pytest

from flowos.model import Chart, Measurement
from flowos.report import ChartStep, Report, Section
from flowos.report._panels import Panel, panels_of
from flowos.report.page._bars import bars
from flowos.report.page._curve import curve
from flowos.report.page._markup import Markup

from .conftest import RUN
from .reports import BARS, CURVE, bounded, measured

LINE = replace(CURVE, series=())
"""A chart of one line."""
WIDTH = 560.0


@dataclass
class Element:
    """What is drawn. text: not that of its children."""

    name: str
    attributes: dict[str, str]
    text: str = ""

    @property
    def kind(self) -> str:
        return self.attributes.get("class", "")

    @property
    def numbers(self) -> list[float]:
        """Of a path its points, of a marker its place: x and y in turn."""
        words = self.attributes.get("transform") or self.attributes["d"]
        return [float(number) for number in re.findall(r"-?[\d.]+", words)]

    def at(self, *names: str) -> list[float]:
        return [float(self.attributes[name]) for name in names]


class Drawing(HTMLParser):
    """The elements of an image."""

    def __init__(self, image: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(image)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(Element(tag, {name: value or "" for name, value in attrs}))
        self.elements.append(self.open[-1])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].text += data

    def all(self, name: str, kind: str | None = None) -> list[Element]:
        """kind: the first of its classes."""
        return [
            each
            for each in self.elements
            if each.name == name and kind in (None, each.kind.partition(" ")[0])
        ]

    @property
    def texts(self) -> dict[str, Element]:
        return {each.text.replace("\xa0", " "): each for each in self.all("text")}

    @property
    def columns(self) -> dict[str, float]:
        """Labels below the x axis: where each is."""
        found = self.all("text")
        return {e.text: e.at("x")[0] for e in found if e.attributes.get("text-anchor") == "middle"}

    @property
    def rows(self) -> dict[str, float]:
        """Labels left of the y axis: the height of the line that each stands at."""
        ends = [e for e in self.all("text") if e.attributes.get("text-anchor") == "end"]
        labels = [e for e in ends if not e.kind]
        lines = [line.numbers[1] for line in self.all("path", "grid")]
        left, right = self.all("path", "base")[0].numbers[::2]
        assert all(line.numbers[::2] == [left, right] for line in self.all("path", "grid"))
        assert all(0 < left - e.at("x")[0] < 10 for e in labels)
        assert [e.at("y")[0] for e in labels] == pytest.approx([y + 4.5 for y in lines], abs=0.11)
        return {e.text: y for e, y in zip(labels, lines, strict=True)}


def image_after(page: str, words: str) -> Drawing:
    """The first image that begins after these words."""
    part = page[page.index(words) :]
    return Drawing(part[part.index("<svg") : part.index("</svg>")] + "</svg>")


def drawn(
    draw: Callable[[Panel, str], Markup],
    chart: Chart,
    *rows: Measurement,
    steps: tuple[ChartStep, ...] = (),
) -> Drawing:
    section = Section(probe="stream", title="t", charts=(chart,))
    report = Report(run=RUN, measurements=rows, sections=(section,), steps=steps)
    (panel,) = panels_of(report, section, chart)
    return Drawing(draw(panel, "p"))


def points(**gigabytes: float) -> list[Measurement]:
    """t1=10: 10 GB/s with 1 thread."""
    return [measured(v * 1e9, threads=name[1:]) for name, v in gigabytes.items()]


@pytest.mark.parametrize(
    ("log", "values"),
    [(False, {"t1": 10, "t2": 20, "t3": 40}), (True, {"t1": 1, "t10": 10, "t100": 100})],
)
def test_a_curve_goes_through_the_ticks_of_its_values(log: bool, values: dict[str, float]) -> None:
    plot = drawn(curve, replace(LINE, log_x=log, log_y=log), *points(**values))
    ticks = [(plot.columns[name[1:]], plot.rows[str(v)]) for name, v in values.items()]
    (line,) = plot.all("path", "line")
    assert line.numbers == pytest.approx([at for tick in ticks for at in tick], abs=0.11)
    assert [dot.numbers for dot in plot.all("path", "dot")] == [
        line.numbers[i : i + 2] for i in (0, 2, 4)
    ]
    base, *marks = plot.all("path", "base")
    left, bottom, right, _ = base.numbers
    for mark, at in zip(marks, plot.columns.values(), strict=True):
        assert mark.numbers == pytest.approx([at, bottom, at, bottom + 5], abs=0.11)
    assert left < line.numbers[0] < line.numbers[4] <= right
    assert list(plot.columns) == [name[1:] for name in values]
    assert log or plot.rows["0"] == bottom
    assert plot.texts["GB/s"].at("x", "y") == [0, 15], "the unit, above the y axis"
    assert plot.texts["threads"].at("x") == [right], "what x is, at the end of its axis"
    assert plot.texts["1"].at("y") < plot.texts["threads"].at("y") < [350]


@pytest.mark.parametrize("log", [False, True])
def test_the_script_of_curves_gets_axes_and_values_as_they_are_drawn(log: bool) -> None:
    plot = drawn(curve, replace(LINE, log_x=log, log_y=log), *points(t1=10, t2=20, t4=40))
    (image,) = plot.all("svg")
    (line,) = plot.all("path", "line")
    assert line.attributes["data-at"] == "1,1e+10 2,2e+10 4,4e+10"
    assert [dot.attributes["data-at"] for dot in plot.all("path", "dot")] == [
        "1,1e+10",
        "2,2e+10",
        "4,4e+10",
    ]
    assert (image.attributes["data-factor"], image.attributes["data-binary"]) == ("1e+09", "0")
    for name, ends in (("data-x", line.numbers[::4]), ("data-y", line.numbers[1::4])):
        low, high, start, end, kind = map(float, image.attributes[name].split())
        least, most = (1, 4) if name == "data-x" else (1e10, 4e10)
        assert kind == log
        if log:  # as much room below as above
            assert low * high == pytest.approx(least * most, rel=1e-6)
        else:
            assert low == 0 or low + high == pytest.approx(least + most)
            assert most < high < 1.25 * most
            shares = [(value - low) / (high - low) for value in (least, most)]
            assert ends == pytest.approx([start + s * (end - start) for s in shares], abs=0.11)


@pytest.mark.parametrize("log", [False, True])
def test_a_lone_point_is_in_the_middle_and_no_line(log: bool) -> None:
    """Also one of a small number, which is not at the bottom."""
    lone = measured(5e-6, unit="second", threads="4")
    plot = drawn(curve, replace(LINE, log_x=log), lone)
    (dot,), (image,) = plot.all("path", "dot"), plot.all("svg")
    low, high, start, end, _ = map(float, image.attributes["data-x"].split())
    assert dot.numbers[0] == pytest.approx((start + end) / 2, abs=0.11)
    assert (low, high) == ((2, 8) if log else (3, 5))
    assert dot.numbers[1] == pytest.approx(plot.rows["5"], abs=0.11)
    assert plot.rows["5"] < (plot.rows["0"] + 34) / 2, "in the upper half"
    assert plot.all("path", "line") == []


@pytest.mark.parametrize(
    ("chart", "binary"),
    [
        (replace(LINE, x="bytes", x_label=""), True),
        (replace(LINE, x="length", x_label="Bytes of an array"), True),
        (replace(LINE, x="length", x_label="elements"), False),
    ],
)
def test_an_axis_of_bytes_has_powers_of_two_with_their_unit(chart: Chart, binary: bool) -> None:
    rows = [measured(1e9, **{chart.x: level}) for level in ("1024", "8192")]
    plot = drawn(curve, replace(chart, log_x=True), *rows)
    titles = [title.text for title in plot.all("title")]
    assert plot.texts[chart.x_label or chart.x].kind == "strong"
    (said,) = (each.text for each in plot.all("desc"))
    assert said.startswith(f"Lines over {chart.x_label or chart.x}. ")
    assert any(f" at {'1 KiB' if binary else '1024'}: 1.00" in title for title in titles)
    assert list(plot.columns) == (
        ["1 KiB", "2 KiB", "4 KiB", "8 KiB"] if binary else ["2\u202f000", "5\u202f000"]
    )


def test_a_spread_is_drawn_from_end_to_end_where_it_can_be_seen() -> None:
    narrow, wide, most = points(t1=10, t2=20, t3=40)
    wide = replace(wide, low=10e9, high=20e9)
    plot = drawn(curve, LINE, narrow, wide, replace(most, high=1e12))
    (spread,) = plot.all("path", "spread")
    at, rows = plot.columns["2"], plot.rows
    assert spread.numbers == pytest.approx([at, rows["10"], at, rows["20"]], abs=0.11)
    assert spread.attributes["data-at"] == "2,1e+10 2,2e+10"


def test_ceilings_are_lines_with_their_names_above_their_right_ends() -> None:
    rows = [
        bounded(bounded(m, 40e9, "memory"), 41e9, "channels", "nominal")
        for m in points(t1=10, t2=20)
    ]
    plot = drawn(curve, LINE, *rows)
    (base, *_), (measured_one, nominal) = plot.all("path", "base"), plot.all("path", "ceiling")
    left, _, right, _ = base.numbers
    at = plot.rows["40"]
    assert measured_one.kind == "ceiling measured"
    assert measured_one.numbers == pytest.approx([left, at, right, at], abs=0.11)
    assert nominal.kind == "ceiling nominal"
    name, other = plot.texts["ceiling 40.0 GB/s"], plot.texts["nominal ceiling 41.0 GB/s"]
    assert other.at("x", "y") == pytest.approx([right, nominal.numbers[1] - 6], abs=0.11)
    assert name.at("x", "y") == pytest.approx([right, other.at("y")[0] + 19], abs=0.11), "apart"
    assert other.attributes["data-at"] == ",4.1e+10"


def test_a_ceiling_that_follows_the_levels_of_x_goes_through_their_ticks() -> None:
    rows = [
        bounded(m, c, f"memory cores={m.case.level('threads')}")
        for m, c in zip(points(t1=10, t2=20), (20e9, 40e9), strict=True)
    ]
    plot = drawn(curve, LINE, *rows)
    (ceiling,) = plot.all("path", "ceiling")
    ticks = [plot.columns["1"], plot.rows["20"], plot.columns["2"], plot.rows["40"]]
    assert ceiling.numbers == pytest.approx(ticks, abs=0.11)
    assert ceiling.attributes["data-at"] == "1,2e+10 2,4e+10"
    name = plot.texts["ceiling 40.0 GB/s"]
    assert name.at("y")[0] == pytest.approx(plot.rows["40"] - 6, abs=0.11)


@pytest.mark.parametrize("draw", [curve, bars])
@pytest.mark.parametrize(("ceiling", "shown"), [(4e9, True), (4.1e9, False)])
def test_a_ceiling_up_to_four_times_the_best_is_drawn(
    draw: Callable[[Panel, str], Markup], ceiling: float, shown: bool
) -> None:
    chart = replace(LINE, kind="curve" if draw is curve else "bars")
    plot = drawn(draw, chart, bounded(measured(1e9, threads="1"), ceiling, "memory"))
    assert bool(plot.all("path", "ceiling")) is shown


def test_a_step_is_a_line_at_its_value_with_its_name_next_to_it() -> None:
    steps = tuple(
        ChartStep(probe="stream", axis="threads", at=at, label=label)
        for at, label in ((3, "all cores"), (1, "one"), (2, "a socket"))
    )
    plot = drawn(curve, LINE, *points(t1=10, t2=20, t3=40), steps=steps)
    bottom = plot.all("path", "base")[0].numbers[1]
    lines = [line.numbers for line in plot.all("path", "step")]
    for line, at in zip(lines, ("1", "2", "3"), strict=True):
        x = plot.columns[at]
        assert line == pytest.approx([x, min(line[1::2]), x, bottom], abs=0.11)
    one, socket, cores = (plot.texts[name] for name in ("one", "a socket", "all cores"))
    assert socket.at("x")[0] == pytest.approx(plot.columns["2"] + 5, abs=0.11)
    assert "text-anchor" not in socket.attributes
    assert cores.at("x")[0] == pytest.approx(plot.columns["3"] - 5, abs=0.11)
    assert cores.attributes["text-anchor"] == "end", "there is no room on the right"
    assert one.at("y") == socket.at("y") == cores.at("y"), "they do not crowd"
    assert one.attributes["data-at"] == "1,"


def test_names_of_steps_that_crowd_are_on_three_lines_in_turn() -> None:
    steps = tuple(
        ChartStep(probe="stream", axis="threads", at=at, label=f"step {at}") for at in (5, 6, 7, 8)
    )
    plot = drawn(curve, LINE, *points(t1=10, t100=40), steps=steps)
    heights = [plot.texts[f"step {at}"].at("y")[0] for at in (5, 6, 7, 8)]
    top = min(line.numbers[1] for line in plot.all("path", "step"))
    assert heights == [top + 12, top + 30, top + 48, top + 12]


def test_a_lone_point_of_a_line_in_grey_is_a_dot_where_it_is() -> None:
    rows = [measured(40e9, threads=t, stores=f"s{i}") for i in range(8) for t in ("1", "2")]
    lone = measured(10e9, threads="2", stores="last")
    plot = drawn(curve, CURVE, *rows, lone)
    (dot,) = plot.all("circle", "cdot")
    assert dot.at("cx", "cy") == pytest.approx([plot.columns["2"], plot.rows["10"]], abs=0.11)
    assert dot.attributes["data-at"] == "2,1e+10"


def rates(**kilo: float) -> list[Measurement]:
    """read_1=10: 10 k IOPS of reads of depth 1."""
    return [
        measured(v * 1e3, metric="iops", unit="1/s", workload=load, iodepth=depth)
        for (load, _, depth), v in ((name.partition("_"), v) for name, v in kilo.items())
    ]


def test_bars_are_as_wide_as_their_numbers_and_stand_below_the_name_of_their_group() -> None:
    plot = drawn(bars, BARS, *rates(read_1=10, read_2=20, write_1=40))
    boxes = [bar.at("x", "y", "width", "height") for bar in plot.all("rect", "bar")]
    assert [width / boxes[-1][2] for _, _, width, _ in boxes] == pytest.approx(
        [0.25, 0.5, 1.0], abs=0.001
    )
    numbers = [plot.texts[f"{n} k IOPS"] for n in ("10.0", "20.0", "40.0")]
    for number, (x, y, width, height) in zip(numbers, boxes, strict=True):
        assert number.at("x") == [WIDTH]
        assert y < number.at("y")[0] < y + height
        assert x == 1
        assert x + width < WIDTH - 9.6 * len("40.0 k IOPS"), "it ends before the numbers"
    ends = [0.0]
    for group, members in (("read", boxes[:2]), ("write", boxes[2:])):
        assert ends[-1] < plot.texts[group].at("y")[0] < members[0][1]
        for _, y, _, height in members:
            assert y > ends[-1]
            ends.append(y + height)
    *_, height = map(float, plot.all("svg")[0].attributes["viewbox"].split())
    assert ends[-1] < height
    bases = [base.numbers for base in plot.all("path", "base")]
    assert bases == [[0.5, 27, 0.5, 73], [0.5, 106, 0.5, 129]], "around the bars of a group"
    colours = [group.kind for group in plot.all("g", "series")]
    assert colours == ["series s0", "series s1", "series s0"]
    (said,) = (each.text for each in plot.all("desc"))
    assert said.replace("\xa0", " ") == (
        "Bars. read: iodepth 1 10.0 k IOPS, iodepth 2 20.0 k IOPS; write: iodepth 1 40.0 k IOPS."
    )


def test_spread_and_ceiling_of_a_bar_are_drawn_in_its_scale() -> None:
    chart = replace(BARS, metrics=("triad",), ceilings=True)
    wide = replace(measured(20e9, workload="w"), low=10e9, high=30e9)
    none = replace(measured(0.0, workload="v"), low=0.0, high=0.0)
    plot = drawn(bars, chart, bounded(wide, 40e9, "memory"), none)
    (x, y, width, height), (_, _, least, _) = (
        bar.at("x", "y", "width", "height") for bar in plot.all("rect", "bar")
    )
    (over,), (ceiling,) = plot.all("path", "over"), plot.all("path", "ceiling")
    middle = y + height / 2
    assert over.numbers == pytest.approx([x + width / 2, middle, x + 1.5 * width, middle], abs=0.11)
    at = x + 2 * width
    assert ceiling.numbers == pytest.approx([at, y - 1, at, y + height + 1], abs=0.11)
    assert 0 < least < 2, "a bar of 0 is seen"


def test_bars_of_small_numbers_are_as_wide_as_others() -> None:
    """Their quartiles are alike, so that no spread is to be seen."""
    chart = replace(BARS, metrics=("triad",), ceilings=True)
    rows = [measured(v, unit="second", workload=f"w{v}") for v in (1e-6, 4e-6)]
    rows = [replace(bounded(m, 4e-6, "memory"), low=m.value, high=m.value) for m in rows]
    plot = drawn(bars, chart, *rows)
    small, large = (bar.at("width")[0] for bar in plot.all("rect", "bar"))
    assert small / large == pytest.approx(0.25, abs=0.001)
    ceilings = [ceiling.numbers[0] for ceiling in plot.all("path", "ceiling")]
    assert ceilings == pytest.approx([1 + large] * 2, abs=0.11)
    assert plot.all("path", "over") == []


def test_bars_of_a_logarithmic_chart_are_dots_a_decade_apart() -> None:
    chart = replace(BARS, log_y=True)
    plot = drawn(bars, chart, *rates(a_1=0.1, b_1=1, c_1=10))
    dots = [dot.numbers for dot in plot.all("path", "dot")]
    first, second, third = (x for x, _ in dots)
    assert first > 1
    assert third - second == pytest.approx(second - first, abs=0.11)
    for (_, y), track in zip(dots, plot.all("path", "grid"), strict=True):
        left, top, right, bottom = track.numbers
        assert (left, top, bottom) == (1, y, y)
        assert third <= right < WIDTH - 9.6 * len("10.0 k IOPS")
    for (_, y), number in zip(dots, ("0.100", "1.00", "10.0"), strict=True):
        assert abs(plot.texts[f"{number} k IOPS"].at("y")[0] - y) < 8


def test_a_curve_is_described_in_a_sentence() -> None:
    rows = [
        measured(v * 1e9, threads=t, stores=s)
        for s, t, v in (("nt", "1", 10), ("nt", "2", 40), ("plain", "1", 20))
    ]
    plot = drawn(curve, CURVE, *rows)
    assert len(plot.all("path", "line")) == 1
    (said,) = (each.text for each in plot.all("desc"))
    assert said.replace("\xa0", " ") == (
        "Lines over threads. nt: from 10.0 GB/s at 1 to 40.0 GB/s at 2;"
        " plain: from 20.0 GB/s at 1 to 20.0 GB/s at 1."
    )
