import pytest

import flowos.model as m


def test_a_good_result_gives_its_outputs() -> None:
    result = m.RunResult(outputs=[1, 2], seconds=0.5)
    assert result.ok
    assert (result.get(), result.attempts) == ([1, 2], 1)


def test_a_bad_one_raises_its_error() -> None:
    result = m.RunResult(error=m.TaskFailed("no"), attempts=3)
    assert not result.ok
    with pytest.raises(m.TaskFailed, match="no"):
        result.get()
    assert result.outputs is None


def test_what_was_refused_before_anything_ran_took_no_time() -> None:
    refused = m.RunResult(error=m.ValueRefused("no"), attempts=0)
    assert (refused.attempts, refused.seconds) == (0, 0.0)


def test_a_run_that_lost_its_worker_at_once_had_made_one_attempt_and_may_begin_anew() -> None:
    lost = m.WorkerLost("its worker process is gone")
    assert (lost.attempts, lost.requeue) == (1, True)
