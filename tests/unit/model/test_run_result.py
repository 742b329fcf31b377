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
