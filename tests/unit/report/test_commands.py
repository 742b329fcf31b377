"""Commands of a person: their times are the headlines, without the words on ceilings."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import Argv, MeasurementRequest, lower_is_better
from flowos.report import Report, html, markdown, number, text

TITLE = "Commands side by side"


def with_commands(report: Report, *commands: Argv) -> Report:
    verdicts = report.verdicts if len(commands) > 1 else ()
    request = MeasurementRequest(commands=commands)
    return replace(report, run=replace(report.run, request=request), verdicts=verdicts, advice=None)


@pytest.mark.parametrize("render", [text, html])
def test_the_verdicts_on_commands_come_before_what_is_missing(
    render: Callable[[Report], str], small: Report
) -> None:
    said = render(with_commands(small, ("a",), ("b",)))
    before, _, after = said.partition(TITLE)
    assert "no MPI was found" not in before
    assert "no MPI was found" in after


@pytest.mark.parametrize("render", [text, markdown, html])
def test_a_command_has_no_ceiling_and_no_settings(
    render: Callable[[Report], str], small: Report
) -> None:
    said = render(with_commands(small, ("a",)))
    assert "A number is the median of its repetitions." in " ".join(said.split())
    assert "A ceiling is the best" not in " ".join(said.split())
    assert TITLE not in said


def test_the_page_of_a_command_says_what_was_found(small: Report) -> None:
    found = replace(small, findings=("it is quick",))
    assert 'class="meter"' in html(found)
    page = html(with_commands(found, ("a",)))
    assert "What was found" in page
    assert 'class="meter"' not in page
    assert "What to change" not in page


def test_less_memory_and_work_are_better_and_have_units() -> None:
    assert all(map(lower_is_better, ("second", "byte", "instruction", "cycle")))
    assert not any(map(lower_is_better, ("byte/s", "flop/s", "1", "Hz")))
    assert number(1.2e9, "instruction") == "1.20 Ginstructions"
    assert number(3.4e6, "cycle") == "3.40 Mcycles"
