import pytest

from flowos.model import End, Exited, Killed, Lost, NotStarted, Outcome, RuntimeFailed


def test_only_an_exit_with_zero_is_ok() -> None:
    assert Outcome(end=Exited(0)).ok
    assert not Outcome(end=Exited(1)).ok
    assert not Outcome(end=Killed(9)).ok


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (Exited(3), "exit code 3"),
        (Killed(9), "signal 9"),
        (Killed(15, "limit"), "signal 15, at its time limit"),
        (Killed(2, "request"), "signal 2, on request"),
        (NotStarted("no such file"), "no such file"),
        (RuntimeFailed("no such image"), "no such image"),
        (Lost("the node is gone"), "the node is gone"),
    ],
)
def test_an_end_is_told_in_words(end: End, said: str) -> None:
    assert str(end) == said
