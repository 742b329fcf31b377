"""Commands are set as commands and words as words; lines break around commands."""

from dataclasses import replace

import pytest

from flowos.report import Report, html, markdown, text
from flowos.report._words import remedy_of, spans_of
from flowos.report._wrap import wrapped


@pytest.mark.parametrize(
    ("remedy", "pieces"),
    [
        ("apt install fio", [("apt install fio", True)]),
        ("flowos measure --minutes 9", [("flowos measure --minutes 9", True)]),
        ("none here: hidden", [("none here: hidden", False)]),
        ("more time: `flowos x`", [("more time: ", False), ("flowos x", True)]),
        ("`export A=1`", [("export A=1", True)]),
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


def test_a_run_that_ended_early_says_so_and_why(small: Report) -> None:
    early = replace(small, run=replace(small.run, ended="", ended_early="it was interrupted"))
    for rendered in (text(early), markdown(early), html(early)):
        assert "The run ended early, as it was interrupted: this is what it had" in rendered
    assert "early" not in text(small) + markdown(small)
    assert "The run was ended early" in text(replace(small, run=replace(small.run, ended="")))
