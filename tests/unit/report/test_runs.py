"""Two runs beside each other: what lies apart first, the rest on demand."""

from dataclasses import replace

from flowos.report import runs_text

from .conftest import VERDICT

MEET = replace(
    VERDICT, axis="run", base="one", other="two", rounds=0, low=0.9, high=1.1, why="not interleaved"
)
SLOWER = replace(MEET, ratio=0.7, low=0.6, high=0.8, metric="copy")
FASTER = replace(MEET, probe="clock", metric="clock", ratio=2.0, low=1.9, high=2.1, rest=())
WILD = replace(MEET, probe="fio", ratio=34433.585, low=34085.969, high=42812.829, metric="rate")


def test_what_lies_apart_comes_after_the_sum_the_farthest_first() -> None:
    lines = runs_text((MEET, SLOWER, FASTER)).splitlines()
    assert lines[:3] == [
        "run two beside one: 3 numbers; of 2 the ranges lie apart",
        "not interleaved",
        "",
    ]
    assert [line.split(" (")[0].strip() for line in lines[3:6]] == ["ratio", "2.000", "0.700"]
    assert lines[4].endswith(" clock")
    assert lines[5].endswith(" stream: threads 2: copy")
    assert lines[6:] == ["", "1 whose ranges meet are not listed: --all shows them"]


def test_everything_has_those_that_meet_behind_the_others() -> None:
    lines = runs_text((MEET, SLOWER), everything=True).splitlines()
    assert [line.split()[0] for line in lines[4:]] == ["0.700", "0.747"]


def test_where_nothing_lies_apart_there_is_no_table() -> None:
    first, *rest = runs_text((MEET,)).splitlines()
    assert first == "run two beside one: 1 number; of none the ranges lie apart"
    assert "ratio" not in "".join(rest)


def test_absurd_ratios_are_short() -> None:
    assert "34434 (34086 to 42813)" in runs_text((WILD,))


def test_runs_without_a_common_case_say_so() -> None:
    assert runs_text(()) == "nothing to compare: no case is in both\n"
