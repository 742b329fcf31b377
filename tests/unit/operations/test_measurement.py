"""What `fo.measure` refuses, in one line, before anything is measured."""

from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.model import UsageError


@pytest.mark.parametrize(
    ("probes", "given", "says"),
    [
        ((), {"commands": "sleep 1"}, "commands='sleep 1' (str); expected a list"),
        ((), {"commands": None}, "commands=None (NoneType); expected a list"),
        ((), {"commands": ["echo 'a"]}, "expected whole words (No closing quotation)"),
        ((), {"commands": [1]}, "commands=1 (int); expected each a text or a list of words"),
        ((), {"commands": [b"ls"]}, "expected each a text or a list of words"),
        ((), {"env": None}, "env=None (NoneType); expected a list"),
        ((), {"env": [3]}, "env=[3] (list); expected names"),
        ((["stream"],), {}, "expected names"),
        (("stream",), {"commands": ["true"]}, "give probes or commands, not both"),
        ((), {"effort": ["x"]}, "expected one of quick, normal, full"),
        ((), {"scratch": 3}, "scratch=3 (int); expected a folder"),
        ((), {"seconds": "3"}, "seconds='3' (str); expected a number above 0"),
        ((), {"seconds": True}, "seconds=True (bool); expected a number above 0"),
        ((), {"seconds": float("nan")}, "expected a number above 0"),
        ((), {"on_progress": 5}, "on_progress=5 (int); expected a function"),
        ((), {"nodes": 2}, "nodes is asked of a pool: add pool='NAME'"),
        ((), {"pool": 5}, "pool=5 (int); expected the name of a pool"),
        ((), {"pool": "local", "nodes": 0}, "nodes=0 (int); expected a whole number, 1 or more"),
        ((), {"pool": "local", "nodes": (2, 3)}, "nodes=(2, 3) (tuple); expected a whole number"),
        ((), {"pool": "local", "nodes": True}, "nodes=True (bool); expected a whole number"),
        ((), {"pool": "local", "commands": ["true"]}, "commands: not with pool, whose nodes may"),
    ],
)
def test_what_cannot_be_measured_is_one_line(probes: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        fo.measure(*probes, **given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_was_removed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the current folder was removed"):
        fo.measure("clock")
