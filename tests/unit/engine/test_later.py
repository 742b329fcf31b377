"""What is asked for in a thread of its own comes later, or raises then."""

import pytest

from flowos.engine._later import Later


def test_what_the_function_gives_is_given_each_time() -> None:
    later = Later(lambda: [1])
    assert later.result() is later.result()
    assert not later.failed


def test_what_the_function_raises_is_raised_each_time() -> None:
    def fails() -> int:
        raise ValueError("no")

    later = Later(fails)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            later.result()
    assert later.failed
