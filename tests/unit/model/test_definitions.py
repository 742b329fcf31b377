"""Definitions of tasks: what they are unless more is said, names and variables of commands."""

import inspect
from typing import Any

import pytest

from flowos.model import Command, WiringError, command, task


def len_of(text: str) -> int:
    return len(text)


def test_editors_are_shown_each_option_of_a_task_and_what_it_is_without() -> None:
    parameters = inspect.signature(task).parameters.values()
    options = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    made = task(len_of)
    assert [*options] == ["name", "needs", "retries", "requeue", "limit_seconds", "cache"]
    assert (options["retries"], options["requeue"]) == (made.retries, made.requeue) == (0, True)


def test_a_command_runs_once_in_our_environment_unless_it_says_otherwise() -> None:
    usual, alone = command(["true"]), command(["true"], inherit=False, retries=1)
    assert isinstance(usual.body, Command)
    assert isinstance(alone.body, Command)
    assert (usual.body.inherit, usual.retries) == (True, 0)
    assert (alone.body.inherit, alone.retries) == (False, 1)
    assert Command(argv=("true",)) == Command(argv=("true",), inherit=True)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/printf", ""], "printf"),
        (["", "printf"], "command"),
        ([("./", "solve"), "x"], "command"),
    ],
)
def test_a_command_has_the_name_of_its_program(words: list[object], name: str) -> None:
    assert command(words).name == name


@pytest.mark.parametrize("name", ["", "A=B", "A\0B", 3, None])
def test_a_variable_has_a_name_that_programs_can_read(name: Any) -> None:
    with pytest.raises(WiringError, match=r"^command 'env': no variable has the name ") as caught:
        command(["env"], variables={name: "x"})
    assert "\0" not in str(caught.value)
