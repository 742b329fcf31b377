"""What commands say on standard error by -q, by -v, and by neither."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Flowos = Callable[..., subprocess.CompletedProcess[str]]

FLOW = """
import flowos as fo

@fo.task
def twice(n: int) -> int:
    return 2 * n

flow = fo.flow_output(twice(fo.flow_input("n", int)))
"""


def test_a_note_is_said_unless_it_is_to_be_quiet(flowos: Flowos, variables: dict[str, str]) -> None:
    variables["FLOWOS_POOLS_LOCAL_NOSUCH"] = "1"
    loud, quiet = flowos("config"), flowos("config", "-q")
    assert "FLOWOS_POOLS_LOCAL_NOSUCH: no table and key has this name" in loud.stderr
    assert (quiet.stdout, quiet.stderr) == (loud.stdout, "")


@pytest.mark.parametrize(
    "words", ["-q image ls", "image -q ls", "image ls -q", "--set pools.local.cores=1 -q list"]
)
def test_either_may_stand_anywhere(flowos: Flowos, words: str) -> None:
    assert flowos(*words.split()).stderr == ""
    verbose = words.replace("-q", "-v").split()
    assert flowos(*verbose).stdout == flowos(*words.split()).stdout


@pytest.mark.parametrize(
    "words", ["-q list -v", "list -q -v", "image -q ls -v", "-v image ls -q", "-q -v list"]
)
def test_both_at_once_are_refused_wherever_they_stand(flowos: Flowos, words: str) -> None:
    (line,) = flowos(*words.split(), code=2).stderr.splitlines()
    assert "not allowed with" in line


def test_both_behind_a_flows_file_are_refused_too(flowos: Flowos, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    for words in (("-q", "flow.py", "n=1", "-v"), ("flow.py", "n=1", "-q", "-v")):
        found = [tmp_path / word if word == "flow.py" else word for word in words]
        (line,) = flowos("run", *found, code=2).stderr.splitlines()
        assert "not allowed with" in line


def test_an_error_is_said_all_the_same(flowos: Flowos) -> None:
    assert "no run 'nosuch' in " in flowos("show", "-q", "nosuch", code=2).stderr


@pytest.mark.parametrize("words", ["ps", "slice ls"])
def test_a_store_that_cannot_be_read_is_said_all_the_same(
    flowos: Flowos, variables: dict[str, str], tmp_path: Path, words: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    variables["XDG_DATA_HOME"] = str(tmp_path / "file")
    loud, quiet = flowos(*words.split()), flowos(*words.split(), "-q")
    assert f"{tmp_path / 'file'}" in loud.stderr
    assert (quiet.stdout, quiet.stderr) == (loud.stdout, loud.stderr)


def test_what_is_started_is_said_if_asked_for(flowos: Flowos) -> None:
    assert flowos("exec", "--", "true").stderr == ""
    (line,) = flowos("exec", "-v", "--", "true", "-q").stderr.splitlines()
    assert line.startswith("flowos exec: starts /")
    assert line.endswith(" -- true -q")
    assert flowos("exec", "--", "true").stderr == ""


def test_tools_that_are_asked_are_said_too(flowos: Flowos, tmp_path: Path) -> None:
    said = flowos("doctor", "-v", "--scratch", tmp_path, codes=(0, 1)).stderr.splitlines()
    assert said
    assert all(line.startswith("flowos doctor: starts ") for line in said)


def test_both_may_stand_behind_a_flows_file(flowos: Flowos, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    words = ("run", tmp_path / "flow.py", "n=3")
    for more in ("-q", "-v"):
        assert flowos(*words, more).stdout == "twice = 6\n"
    said = flowos(*words, "--workers", "process", "-v").stderr
    assert "flowos run: starts /" in said
    assert flowos(*words, "--workers", "process", "-q").stderr == ""
