from flowos.model import Exited, Killed, Outcome


def test_only_an_exit_with_zero_is_ok() -> None:
    assert Outcome(end=Exited(0)).ok
    assert not Outcome(end=Exited(1)).ok
    assert not Outcome(end=Killed(9)).ok
