"""`flowos pools --check` of a pool that is a partition of a real cluster: each says one line."""

import json
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flowos as fo
from tests.waiting import comes

from .box import Box

FLOWOS = str(Path(sys.executable).with_name("flowos"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(variables: dict[str, str], *keys: str) -> tuple[int, str]:
    """Exit code of the check, and its last line but those of users, of a pool with these keys."""
    Path("flowos.toml").write_text("\n".join(("[pools.c]", 'kind = "slurm"', *keys, "")))
    words = (FLOWOS, "pools", "--check")
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.stderr == ""
    said = [line.strip() for line in done.stdout.splitlines()]
    return done.returncode, [line for line in said if "user" not in line][-1]


def test_a_pool_shows_the_nodes_that_the_cluster_has_for_it(box: Box) -> None:
    code, said = checked(box.variables, "nodes = 2", 'partition = "main"')
    assert code == 0
    assert re.match(r"n2 .*4 cores", said)


def test_a_pool_shows_its_users_and_storage(box: Box, folder: Path) -> None:
    holds = subprocess.Popen(("srun", "-N2", "sleep", "1000"), env={**os.environ, **box.variables})
    assert comes(lambda: "RUNNING" in box.ask("squeue", "--noheader", "--format=%T"))
    keys = ("nodes = 2", 'scratch = "/local"', f'shared = "{folder}"')
    Path("flowos.toml").write_text("\n".join(("[pools.c]", 'kind = "slurm"', *keys, "")))
    words = (FLOWOS, "pools", "--check", "--json")
    done = subprocess.run(words, env={**os.environ, **box.variables}, capture_output=True)
    holds.terminate()
    holds.wait()
    found = json.loads(done.stdout)[-1]
    (user,) = found["users"]
    assert (user["name"], user["nodes"], user["waiting"]) == (pwd.getpwuid(os.getuid())[0], 2, 0)
    assert user["node_seconds"] is None
    assert found["not_accounted"] == "sacct: Slurm accounting storage is disabled"
    shared, scratch = found["storage"]
    assert 0 < shared["free_bytes"] <= shared["total_bytes"]
    assert (scratch["total_bytes"], scratch["path"]) == (None, "/local")
    text = subprocess.run(
        (FLOWOS, "pools", "--check"), env={**os.environ, **box.variables}, capture_output=True
    ).stdout.decode()
    assert f"shared {folder}: " in text
    assert "what users have used is not known: sacct: Slurm accounting storage is disabled" in text


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (('partition = "mian"',), "the cluster has no partition 'mian'; did you mean 'main'?"),
        (("nodes = 3",), "3 nodes asked for, partition 'main' gives 2"),
        (("max_seconds = 7200",), "7200 s asked for, partition 'main' gives 3600 s at most"),
        (("cores = 64",), "0 of 2 have what each has to have: 64 cores asked for, n1 has 4"),
        (('gres = "gpu:1"',), "0 of 2 have what each has to have: 1 GPUs asked for, n1 has 0"),
    ],
)
def test_what_the_cluster_can_never_give_is_said_at_once(
    box: Box, keys: tuple[str, ...], complaint: str
) -> None:
    code, said = checked(box.variables, *keys)
    assert (code, said.partition("cannot be used: pool c: ")[1]) == (1, "cannot be used: pool c: ")
    assert said.endswith(complaint)


def test_a_machine_that_is_no_login_node_is_said_to_be_none(tmp_path: Path) -> None:
    path = str(Path(sys.executable).parent)
    assert checked({"PATH": path}) == (
        1,
        "cannot be used: pool c: no scontrol here: this machine is no login node of a Slurm "
        "cluster",
    )
    (tmp_path / "scontrol").write_text("#!/bin/sh\n")
    assert checked({"PATH": str(tmp_path)}) == (
        1,
        "cannot be used: pool c: scontrol cannot be started: Permission denied",
    )


def test_a_cluster_that_is_not_set_up_is_said_in_slurms_words(box: Box, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NoSuchKey=1\n")
    said = checked({**box.variables, "SLURM_CONF": str(tmp_path / "slurm.conf")})
    assert said == (1, "cannot be used: pool c: scontrol: Unable to process configuration file")


def test_a_slice_of_the_cluster_is_held_or_refused_in_one_line(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("flowos.toml").write_text('[pools.c]\nkind = "slurm"\nnodes = 2\n')
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    with fo.slice(pool="c", nodes=2) as s:
        assert s.nodes == ("n1", "n2")
    with pytest.raises(fo.SliceRefused, match="9 nodes asked for, partition 'main' gives 2"):
        fo.slice(pool="c", nodes=9)
