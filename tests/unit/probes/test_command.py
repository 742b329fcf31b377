import errno
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import (
    Argv,
    Case,
    Effort,
    Exited,
    Facts,
    Killed,
    Measurement,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.probes.command import MAX_LABEL, TimedCommand, labels

PROBE = TimedCommand()
MakeNode = Callable[..., Facts]
SLEEP, SHELL = ("sleep", "0.1"), ("sh", "-c", "printf '%s\\n' 'a  b'", "")


def cases_of(node: MakeNode, *commands: Argv, effort: Effort = "normal") -> tuple[Case, ...]:
    found = PROBE.cases(node(), MeasurementRequest(commands=commands, effort=effort))
    assert not isinstance(found, Unmeasured)
    return found


def measured(metric: str, median: float, label: str = "sleep 0.1", **more: str) -> Measurement:
    details = tuple({"seconds": "0.3", **more}.items())
    return Measurement(
        case=Case("command", levels=(("command", label),), details=details),
        metric=metric,
        unit="second",
        count=10,
        median=median,
        low=median,
        high=median,
        best=median,
    )


def failed(node: MakeNode, answer: object, stderr: bytes = b"") -> str:
    (case,) = cases_of(node, SLEEP)
    outcome = Outcome(end=Exited(77), stdout=json.dumps(answer).encode(), stderr=stderr)
    found = PROBE.read(case, outcome)
    assert isinstance(found, Unmeasured)
    return found.reason


def test_it_is_measured_only_where_a_command_is_named(node: MakeNode) -> None:
    answer = PROBE.cases(node(), MeasurementRequest())
    assert isinstance(answer, Unmeasured)
    assert "--" in answer.remedy
    assert PROBE.info.asked


def test_without_a_compiler_it_says_so(node: MakeNode) -> None:
    answer = PROBE.cases(node(compilers=()), MeasurementRequest(commands=(SLEEP,)))
    assert isinstance(answer, Unmeasured)
    assert "compiler" in answer.reason


def test_its_words_reach_the_program_as_they_are(node: MakeNode) -> None:
    odd = ("printf", "a\nb", "{scratch}", "--", "\udcff", "'\"")
    for argv in (SLEEP, SHELL, odd):
        (case,) = cases_of(node, argv, effort="quick")
        program = PROBE.program(case)
        assert program.argv == ("--seconds", "0.1", "--", *argv)
        assert program.as_caller
        assert not program.on_storage


def test_there_are_ten_runs_or_three_seconds_at_least_as_of_hyperfine(node: MakeNode) -> None:
    (case,) = cases_of(node, SLEEP)
    launches = 2 * PROBE.info.rounds  # each is a run, and more until they took so long
    assert launches >= 10
    assert launches * PROBE.seconds(case) >= 3


def test_failures_are_ignored_on_request(node: MakeNode) -> None:
    request = MeasurementRequest(commands=(SLEEP,), ignore_failure=True)
    found = PROBE.cases(node(), request)
    assert not isinstance(found, Unmeasured)
    (case,) = found
    assert "--ignore-failure" in PROBE.program(case).argv


def test_commands_have_short_names_of_their_own() -> None:
    found = labels((SLEEP, SLEEP, SLEEP, ("sh", "-c", "a\n\tb\a"), ("x" * 100,)))
    assert found[:4] == ("sleep 0.1", "sleep 0.1 #2", "sleep 0.1 #3", "sh -c 'a b?'")
    assert labels((("sh", "-c", "echo 'a b'"), ("it's", "$x'"))) == (
        "sh -c \"echo 'a b'\"",
        "\"it's\" '$x'\"'\"''",
    )
    assert len(found[4]) == MAX_LABEL
    assert found[4].endswith("...")


def test_what_it_says_last_is_told_of_a_failure(node: MakeNode) -> None:
    assert failed(node, {"exit": 3}, b"one\n two \n\n") == (
        "`sleep 0.1` failed with exit code 3: two"
    )
    assert failed(node, {"exit": 3}) == "`sleep 0.1` failed with exit code 3, and said nothing"
    assert failed(node, {"signal": 9}, b"\xff") == (
        "`sleep 0.1` was ended by signal 9: \N{REPLACEMENT CHARACTER}"
    )


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOENT, "no such command"),
        (errno.EACCES, "may not be executed"),
        (errno.EMFILE, "EMFILE"),
        (12345, "12345"),
    ],
)
def test_what_cannot_be_started_says_why(node: MakeNode, number: int, says: str) -> None:
    assert says in failed(node, {"errno": number})


@pytest.mark.parametrize("answer", [[], {}, {"exit": 1, "signal": 2}, "x"])
def test_an_answer_of_another_form_is_a_failure_too(node: MakeNode, answer: object) -> None:
    assert "failed with exit code 77" in failed(node, answer)


def test_the_time_limit_is_told_with_its_remedy_and_other_ends_as_they_are(node: MakeNode) -> None:
    (case,) = cases_of(node, SLEEP)
    late = PROBE.read(case, Outcome(end=Killed(15, "limit")))
    assert isinstance(late, Unmeasured)
    assert "did not end" in late.reason
    assert "--minutes" in late.remedy
    other = PROBE.read(case, Outcome(end=Killed(9)))
    assert isinstance(other, Unmeasured)
    assert "did not end" not in other.reason


def test_readings_are_those_of_the_program(node: MakeNode) -> None:
    (case,) = cases_of(node, SLEEP)
    raw = {"metric": "wall", "unit": "second", "values": [0.1], "notes": {"counters": "2"}}
    answer = json.dumps({"readings": [raw]}).encode()
    found = PROBE.read(case, Outcome(end=Exited(0), stdout=answer))
    assert not isinstance(found, Unmeasured)
    assert (found[0].metric, found[0].values, dict(found[0].notes)) == (
        "wall",
        (0.1,),
        {"counters": "2"},
    )


def test_one_command_has_all_its_numbers_and_several_their_times() -> None:
    alone = [measured("wall", 0.1), measured("user", 0.01)]
    assert [h.metric for h in PROBE.headlines(alone)][:4] == ["wall", "user", "system", "max_rss"]
    both = PROBE.headlines([*alone, measured("wall", 0.2, "other")])
    assert [(h.label, h.metric) for h in both] == [("sleep 0.1", "wall"), ("other", "wall")]
    assert both[1].fits(measured("wall", 0.2, "other"))
    assert not both[1].fits(alone[0])


def test_what_a_start_takes_is_said_of_short_commands() -> None:
    found = [measured("wall", 0.002), measured("process_start", 0.0005), measured("user", 0.001)]
    first, *rest = PROBE.findings(found)
    assert "takes 500 us here" in first
    assert "the 2 ms of `sleep 0.1` and not subtracted" in first
    assert len(rest) == 1
    assert "not counted" in rest[0]
    assert len(PROBE.findings([measured("wall", 2.5)])) == 1
    assert PROBE.findings([]) == ()


@pytest.mark.parametrize(
    ("number", "says"), [(errno.EACCES, "does not permit"), (errno.ENOENT, "no such counters")]
)
def test_counters_that_are_not_there_are_told_of_once(number: int, says: str) -> None:
    numbers = [
        measured("wall", 1.0, counters=str(number)),
        measured("wall", 2.0, "other", counters=str(number)),
    ]
    told = [line for line in PROBE.findings(numbers) if "instructions" in line]
    assert len(told) == 1
    assert says in told[0]


def test_between_environments_times_are_said() -> None:
    case = Case("command", levels=(("env", "bare"), ("command", "sleep 0.1")))
    wall = measured("wall", 0.1)
    found = [replace(wall, case=case.at(env=e)) for e in ("bare", "image")]
    assert PROBE.differences("bare", found)[0].startswith(
        "a run takes 100 ms in bare, 100 ms in image"
    )
    assert PROBE.differences("bare", [measured("user", 1.0)]) == ()
