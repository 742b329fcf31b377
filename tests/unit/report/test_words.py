"""Commands are set as commands and words as words; lines break around commands."""

from dataclasses import replace

import pytest

from flowos.model import Advice, Case, Measurement, Trust, Verdict
from flowos.report import HeadlineNumber, Report, html, markdown, text, wrapped
from flowos.report._words import (
    gain_of,
    label_of,
    ratio_text,
    remedy_of,
    share_text,
    spans_of,
    untrusted_of,
)

from .reports import bounded, measured

COMMAND_A, OR = [("a", True)], [(" or ", False)]


@pytest.mark.parametrize(
    ("remedy", "pieces"),
    [
        ("apt install fio", [("apt install fio", True)]),
        ("flowos measure --minutes 9", [("flowos measure --minutes 9", True)]),
        ("none here: hidden", [("none here: hidden", False)]),
        ("more time: `flowos x`", [("more time: ", False), ("flowos x", True)]),
        ("`export A=1`", [("export A=1", True)]),
        ("`a` or `b` or `c`", [*COMMAND_A, *OR, ("b", True), *OR, ("c", True)]),
        ("an odd ` sign", [("an odd ` sign", False)]),
        ("", []),
    ],
)
def test_a_remedy_that_is_a_command_is_told_from_words(
    remedy: str, pieces: list[tuple[str, bool]]
) -> None:
    assert [span for span in spans_of(remedy_of(remedy)) if span[0]] == pieces


def test_a_command_stays_on_one_line() -> None:
    command = "`flowos measure --only stream --minutes 9`"
    lines = wrapped(f"{'words ' * 14}and {command} then", "  ", "    ")
    assert len(lines) == 2
    assert any(command in line for line in lines)
    assert lines[0].startswith("  words")
    assert lines[1].startswith("    ")


def test_no_word_is_broken() -> None:
    assert wrapped("up to an-option-with-hyphens", width=12) == ["up to", "an-option-with-hyphens"]


def test_a_run_that_ended_early_says_so_and_why(small: Report) -> None:
    early = replace(small, run=replace(small.run, ended="", ended_early="it was interrupted"))
    for rendered in (text(early), markdown(early), html(early)):
        assert "The run ended early, as it was interrupted: this is what it had" in rendered
    assert "early" not in text(small) + markdown(small)
    assert "The run was ended early" in text(replace(small, run=replace(small.run, ended="")))


def a_number(*marks: str, metric: str = "m", ceiling: bool = False) -> Measurement:
    return Measurement(
        case=Case("p"), metric=metric, unit="1", count=1, median=1.0, low=1.0, high=1.0, best=1.0,
        trust=Trust(marks=marks), ceiling=ceiling,
    )  # fmt: skip


def test_doubts_are_told_by_their_first_mark_the_most_frequent_first() -> None:
    one, two, three = a_number("load 3", "late"), a_number("stolen 1", "late"), a_number("stolen 2")
    found = untrusted_of([a_number(), one, two, three])
    assert [(untrusted.why, untrusted.numbers) for untrusted in found] == [
        ("stolen 1", (two, three)),
        ("load 3", (one,)),
    ]


@pytest.mark.parametrize(
    ("ratio", "shown"), [(9.9994, "9.999"), (10.0, "10.0"), (10.26, "10.3"), (0.5, "0.500")]
)
def test_a_ratio_has_three_decimals_below_ten(ratio: float, shown: str) -> None:
    known = Verdict(
        probe="p", axis="a", base="x", other="y", rest=(), metric="m", ratio=ratio, low=ratio,
        high=ratio, margin=0.03, rounds=4, answer="inconclusive",
    )  # fmt: skip
    assert ratio_text(known) == f"{shown} ({shown} to {shown})"


@pytest.mark.parametrize(("gain", "shown"), [(1.05, "x1.05"), (2.0, "x2.00"), (57.31, "x57.3")])
def test_a_worth_has_three_digits(gain: float, shown: str) -> None:
    assert gain_of(Advice(do="x", gain=gain, why="y")) == shown


def test_a_ceiling_has_no_measured_ceiling_and_a_number_without_one_an_unknown_one() -> None:
    kinds = ("measured", "nominal")
    assert [share_text(a_number(), kind) for kind in kinds] == ["unknown", "unknown"]
    of_ceiling = [share_text(a_number(ceiling=True), kind) for kind in kinds]
    assert (of_ceiling[0] != "unknown", of_ceiling[1]) == (True, "unknown")


def test_of_a_ceiling_that_was_not_reached_no_share_is_shown() -> None:
    for rate, words in ((58e9, "102% of 56.9 Gflop/s"), (107e9, "ceiling not reached: 56.9 Gfl")):
        number = bounded(measured(rate, unit="flop/s"), 56.9e9, "flops")
        assert share_text(number, "measured").startswith(words)
    nominal = bounded(measured(107e9, unit="flop/s"), 56.9e9, "a data sheet", "nominal")
    assert share_text(nominal, "nominal") == "188% of 56.9 Gflop/s"


def test_a_headline_of_arithmetic_names_cores_and_instruction_set() -> None:
    for levels, label in (
        ({"cores": "1", "isa": "avx2"}, "Ceiling (1 core, isa avx2)"),
        ({"cores": "2", "isa": "avx512"}, "Ceiling (2 cores, isa avx512)"),
        ({"cores": "2"}, "Ceiling"),
    ):
        headline = HeadlineNumber(label="Ceiling", measured=measured(1.0, **levels))
        assert label_of(headline) == label
