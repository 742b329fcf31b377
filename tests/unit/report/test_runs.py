"""Comparison of two runs: first what cannot be judged, then probes, then numbers that differ."""

import math
from dataclasses import replace

from flowos.plan import UNPAIRED
from flowos.report import runs_text

from .conftest import VERDICT

MEET = replace(
    VERDICT, axis="run", base="one", other="two", rounds=0, low=0.9, high=1.1, answer="equal"
)
SLOWER = replace(MEET, ratio=0.7, low=0.6, high=0.8, metric="copy", answer="slower")
FASTER = replace(MEET, probe="clock", metric="clock", ratio=2.0, low=1.9, high=2.1, rest=())
WILD = replace(MEET, probe="fio", ratio=34433.585, low=34085.969, high=42812.829, metric="rate")
MARKED = replace(FASTER, answer="inconclusive", marks=("one: disturbed",), why="not to be trusted")
PROBE = replace(MEET, probe="geomean", metric="stream", rest=(), margin=0.05, why="1 slower of 2")
OPEN = replace(
    PROBE,
    metric="clock",
    answer="inconclusive",
    ratio=math.nan,
    low=0.0,
    high=math.inf,
    why="1 of 1 numbers are marked",
    marks=("one: disturbed",),
)


def test_what_cannot_be_judged_stands_first_then_each_probe_then_what_lies_apart() -> None:
    shown = runs_text("cannot judge", (PROBE, OPEN), (MEET, SLOWER, MARKED)).splitlines()
    assert shown[:2] == [
        "1 probe of 2 cannot be judged:",
        "  clock: 1 of 1 numbers are marked (one: disturbed)",
    ]
    assert shown[3:5] == ["run two next to one, within 5.0%:", "  cannot judge"]
    places = [
        next(i for i, line in enumerate(shown) if word in line)
        for word in ("stream: 1 slower of 2", "numbers whose ranges lie apart", "clock", "copy")
    ]
    assert places[0] < places[1] < places[3]
    marked = next(line for line in shown if line.startswith("  2.000"))
    assert "inconclusive !" in marked
    assert shown[-1] == "1 whose ranges meet are not listed: --all shows them"


def test_everything_has_those_that_meet_behind_the_others() -> None:
    shown = runs_text("worse", (PROBE,), (MEET, SLOWER), everything=True).splitlines()
    assert shown[-4:] == [
        "numbers whose ranges lie apart, then the others",
        "  ratio (range), below 1 is worse  answer  what",
        "  0.700 (0.600 to 0.800)           slower  stream: threads 2: copy",
        "  0.747 (0.900 to 1.100)           equal   stream: threads 2: triad",
    ]
    assert shown[0].startswith("run two next to one"), "and there is none that cannot be judged"


def test_where_no_ranges_meet_none_are_said_to() -> None:
    assert "whose ranges meet" not in runs_text("worse", (PROBE,), (SLOWER, FASTER))


def test_where_nothing_lies_apart_there_is_no_table_of_numbers() -> None:
    shown = runs_text("equal or better", (PROBE,), (MEET, replace(MEET, low=0.0, high=math.inf)))
    assert "lie apart" not in shown
    assert "cannot be judged" not in shown


def test_numbers_without_a_ratio_are_named_and_are_none_whose_ranges_meet() -> None:
    lone = replace(
        MEET, metric="system", ratio=math.nan, low=0.0, high=math.inf, answer="inconclusive"
    )
    shown = runs_text(
        "equal or better", (PROBE,), (MEET, replace(lone, why="0, then 0.5 second"))
    ).splitlines()
    assert shown[0] == "1 number of 2 cannot be judged:"
    assert shown[1].endswith(": system (0, then 0.5 second)")
    assert shown[-1].startswith("1 whose ranges meet")


def test_absurd_ratios_are_short() -> None:
    assert "34434 (34086 to 42813)" in runs_text("worse", (PROBE,), (WILD,))


def test_runs_without_a_number_say_so() -> None:
    assert "nothing to compare" in runs_text("cannot judge", (), ())


def test_why_a_number_that_is_not_marked_cannot_be_told_stands_beside_it() -> None:
    wide = replace(SLOWER, answer="inconclusive", why="the middle halves meet")
    shown = runs_text("worse", (PROBE,), (wide,))
    assert "copy (the middle halves meet)" in shown
    assert "cannot be judged" not in shown, "it has a ratio"


def test_what_differs_between_the_runs_stands_below_the_answer() -> None:
    shown = runs_text("worse", (PROBE,), (), changes=("host: one, then two",)).splitlines()
    assert shown[2:4] == [f"  {UNPAIRED}", "  host: one, then two"]
