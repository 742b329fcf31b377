"""Tasks that wait, as one program writes them to another."""

import json

from flowos.model import WaitingTask


def test_a_waiting_task_is_read_back_as_a_row_of_json() -> None:
    task = WaitingTask("flow", "n1", "score", "waits", "for the result of prepare", 3)
    assert WaitingTask(*json.loads(json.dumps(task))) == task


def test_a_row_that_says_no_number_is_of_one_task() -> None:
    assert WaitingTask("flow", "n1", "score", "runs").number == 1
