"""What a measuring program printed, as readings; whatever it printed."""

import json

import pytest

from flowos.model import Exited, Killed, MeasureError, Outcome, Unmeasured
from flowos.probes._base import read_answer

READING = {"metric": "triad", "unit": "byte/s", "values": [1, 2.5], "levels": {"n": 8}}


def outcome(code: int, out: str = "", err: str = "") -> Outcome:
    return Outcome(end=Exited(code), stdout=out.encode(), stderr=err.encode())


def test_readings_keep_levels_as_text_and_values_as_numbers() -> None:
    answer = read_answer(outcome(0, json.dumps({"readings": [READING]})))
    assert not isinstance(answer, Unmeasured)
    assert answer[0].values == (1.0, 2.5)
    assert answer[0].levels == (("n", "8"),)
    assert answer[0].notes == ()


def test_exit_77_is_unmeasured_with_reason_and_remedy() -> None:
    answer = read_answer(outcome(77, '{"cannot": "no AVX", "remedy": "another cpu"}'))
    assert answer == Unmeasured(reason="no AVX", remedy="another cpu")


def test_a_failed_check_says_what_the_program_complained_of() -> None:
    answer = read_answer(outcome(1, "", "a\nb\nc\nwrong sum"))
    assert isinstance(answer, Unmeasured)
    assert answer.reason.endswith("b / c / wrong sum")


def test_the_first_complaint_of_the_program_itself_goes_before_its_launchers() -> None:
    failed = outcome(1, "", "mpirun: a rank failed\npairs: wrong data\npairs: and more\n")
    assert read_answer(failed, "pairs") == Unmeasured(reason="wrong data")
    assert read_answer(failed) == Unmeasured(
        reason="the program's own check failed: mpirun: a rank failed / pairs: wrong data /"
        " pairs: and more"
    )
    warned = outcome(0, json.dumps({"readings": [READING]}), "pairs: slow\n")
    assert not isinstance(read_answer(warned, "pairs"), Unmeasured)


def test_a_killed_program_is_unmeasured() -> None:
    answer = read_answer(Outcome(end=Killed(9)))
    assert isinstance(answer, Unmeasured)
    assert "9" in answer.reason


@pytest.mark.parametrize(
    "out", ["not JSON", "[]", "{}", '{"readings": []}', '{"readings": [{"metric": "x"}]}', "7"]
)
def test_an_answer_that_cannot_be_read_is_a_measure_error(out: str) -> None:
    with pytest.raises(MeasureError, match="cannot be read"):
        read_answer(outcome(0, out))
