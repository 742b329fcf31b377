"""What slurmdbd accounts for a slice and for the users of a pool, next to what FlowOS counts."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import comes

from .box import AccountingBox, Box

FLOWOS = str(Path(sys.executable).with_name("flowos"))
USER = pwd.getpwuid(os.geteuid()).pw_name
CPU_SECONDS, ARRAY_BYTES = 1.5, 200_000_000
"""What each of two tasks takes."""

BURNS = f"""
import sys, time
import flowos as fo

@fo.task
def burn(x: fo.int64) -> fo.int64:
    array = bytearray({ARRAY_BYTES})
    end = time.process_time() + {CPU_SECONDS}
    while time.process_time() < end:
        pass
    return x + 1

flow = fo.flow_output(burn(fo.flow_input("x", fo.int64)))
with fo.slice(flow, pool="c", nodes=2) as s:
    print(sum(x for (x,) in s.map([1, 2])), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def accounts(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with AccountingBox() as box:
        yield box


@pytest.fixture(autouse=True)
def cluster(accounts: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in accounts.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    lines = ("[pools.c]", 'kind = "slurm"', "nodes = 2", f'shared = "{accounts.shared}"')
    Path("flowos.toml").write_text("\n".join((*lines, "[pools.c.price]", "per_node_hour = 36")))


def told(*words: str) -> Any:
    done = subprocess.run((FLOWOS, *words, "--json"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def newest() -> dict[str, Any]:
    """The slice that was made last, as `flowos slice show` has it."""
    found: dict[str, Any] = told("slice", "show", told("slice", "ls")[0]["id"])
    return found


def test_what_slurm_accounts_is_what_tasks_used_while_a_slice_runs_and_after() -> None:
    pipe = subprocess.PIPE
    program = subprocess.Popen((sys.executable, "-c", BURNS), stdin=pipe, stdout=pipe, text=True)
    assert program.stdout
    assert program.stdout.readline() == "5\n"
    assert comes(lambda: newest()["accounts"]["cpu_seconds"] >= 2 * int(CPU_SECONDS))  # of sstat
    program.communicate("\n")
    assert comes(lambda: newest()["accounts"]["cpu_seconds"] >= 2 * CPU_SECONDS)  # of slurmdbd
    found = newest()
    ours, theirs = found["cpu_seconds"], found["accounts"]
    assert 2 * CPU_SECONDS <= ours <= theirs["cpu_seconds"] <= ours + 1
    assert found["max_rss_bytes"] == pytest.approx(theirs["max_rss_bytes"], rel=0.1)
    assert theirs["max_rss_bytes"] > ARRAY_BYTES
    assert theirs["joules"] is None
    tres = dict(theirs["tres"])
    assert tres["node"] == pytest.approx(found["node_seconds"], abs=4)  # whole seconds
    assert tres["cpu"] >= tres["node"]


def test_users_of_a_pool_are_told_with_what_they_used(accounts: Box) -> None:
    assert accounts.run("srun", "-N2", "sleep", "2").returncode == 0

    def used() -> list[dict[str, Any]]:
        pool = told("pools", "--check")[-1]
        assert pool["not_accounted"] is None
        users: list[dict[str, Any]] = pool["users"]
        return users

    assert comes(lambda: [user["node_seconds"] for user in used()] >= [4.0])
    (user,) = used()
    assert user["name"] == USER
    assert user["core_seconds"] >= user["node_seconds"]
    assert user["gpu_seconds"] == 0
