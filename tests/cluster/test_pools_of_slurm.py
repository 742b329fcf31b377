"""`flowos pools --check` of a pool that is a partition of a real cluster: each says one line."""

import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import flowos as fo
from flowos.store import open_store
from tests.waiting import comes

from .box import Box
from .in_process import flowos

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
    done = flowos("pools", "--check", **variables)
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
    done = flowos("pools", "--check", "--json", **box.variables)
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
    assert scratch["complaint"] == "it is on each node, and none is free now to look at it"
    text = flowos("pools", "--check", **box.variables).stdout
    assert f"shared {folder}: " in text
    assert "what users have used is not known: sacct: Slurm accounting storage is disabled" in text


STORAGE = """
[pools.c]
kind = "slurm"
nodes = 2
shared = "{shared}"
scratch = "/tmp"
scratch_tier = {{capacity_bytes = 1_000_000, read_bytes_per_second = 1e3}}
[pools.lacks]
kind = "slurm"
shared = "{shared}"
scratch = "/nowhere"
"""
BY_HAND = "srun --nodes=1 --ntasks=1 --exclusive flowos measure --only fio --scratch /tmp"


@pytest.fixture
def said(machines: Box) -> Callable[..., str]:
    """What a command prints that sees the nodes, and has a store that they see too."""
    pools = machines.folder / "pools.toml"
    pools.write_text(STORAGE.format(shared=machines.shared))
    variables = {**os.environ, **machines.variables, "FLOWOS_CONFIG": str(pools)}

    def said(*words: str) -> str:
        words = (*machines.enter, *words, "--store", str(machines.shared / "runs.db"))
        done = subprocess.run(words, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    open_store(str(machines.shared / "runs.db")).close()
    return said


def test_storage_is_shown_as_promised_as_a_node_sees_it_and_as_fio_measured_it(
    machines: Box, folder: Path, said: Callable[..., str]
) -> None:
    def storage() -> list[list[dict[str, Any]]]:
        pools = json.loads(said(FLOWOS, "pools", "--check", "--json"))
        return [each["storage"] for each in pools if each["pool"]["name"] != "local"]

    (shared, scratch), (_, lacking) = storage()
    assert lacking["complaint"].endswith("'/nowhere': No such file or directory")
    assert (shared["node"], shared["speed"], scratch["speed"]) == ("", None, None)
    assert scratch["node"] in {"n1", "n2"}
    assert 0 < scratch["free_bytes"] <= scratch["total_bytes"]
    assert scratch["measure"] == BY_HAND
    measure = BY_HAND.replace("flowos", FLOWOS, 1).split()
    said(*measure, "--quick", "--out", str(folder / "report"))
    (shared, scratch), _ = storage()
    assert shared["speed"] is None, "of the nodes' own storage it was"
    speed = scratch["speed"]
    assert speed["host"] in {"n1", "n2"}
    assert min(speed["read_bytes_per_second"], speed["write_bytes_per_second"]) > 1e6
    text = said(FLOWOS, "pools", "--check")
    assert f"not measured: flowos measure --only fio --scratch {machines.shared}" in text
    assert "promised: 1.00 MB, read 1.00 kB/s" in text
    assert f"by run {speed['run']} on n" in text
    assert machines.ask("squeue", "--noheader") == ""


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (('partition = "mian"',), "the cluster has no partition 'mian'; did you mean 'main'?"),
        (("nodes = 3",), "3 nodes asked for, partition 'main' gives 2"),
        (("max_seconds = 7200",), "7200 s asked for, partition 'main' gives 3600 s at most"),
        (("cores = 64",), "0 of 2 have what each has to have: 64 cores asked for, n1 has 4"),
        (
            ('constraint = "fast|icelake"',),
            "constraint='fast|icelake': no node of partition 'main' has 'fast'; its nodes have no "
            "features",
        ),
        (('gres = "gpu:1"',), "0 of 2 have what each has to have: 1 GPU asked for, n1 has 0"),
    ],
)
def test_what_the_cluster_can_never_give_is_said_at_once(
    box: Box, keys: tuple[str, ...], complaint: str
) -> None:
    code, said = checked(box.variables, *keys)
    assert (code, said.partition("cannot be used: pool c: ")[1]) == (1, "cannot be used: pool c: ")
    assert said.endswith(complaint)


@pytest.fixture
def featured(box: Box) -> Iterator[Box]:
    def have(features: str) -> None:
        words = (f"AvailableFeatures={features}", f"ActiveFeatures={features}")
        box.run("scontrol", "update", "NodeName=n1", *words)

    have("icelake,nvme")
    yield box
    have("")


def test_features_that_no_node_has_are_named_by_a_slice_as_by_the_check(featured: Box) -> None:
    has = "; its nodes have icelake, nvme"
    for constraint, complaint in (
        ("icelak", f"no node of partition 'main' has it{has}; did you mean 'icelake'?"),
        ("icelake|nosuch", f"no node of partition 'main' has 'nosuch'{has}"),
        ("[icelake", "its brackets do not match"),
    ):
        says = f"pool c: constraint='{constraint}': {complaint}"
        _, said = checked(featured.variables, f'constraint = "{constraint}"')
        assert said.endswith(f"cannot be used: {says}")
        assert held(featured) == says
    assert checked(featured.variables, 'constraint = "icelake&nvme"')[0] == 0
    checked(featured.variables, 'constraint = "icelake&nvme"', "nodes = 2")
    assert held(featured, nodes=2) == (
        "pool c: constraint='icelake&nvme': 2 nodes asked for, 1 of 2 of partition 'main' meets it"
        f"{has}"
    )


def held(box: Box, nodes: int = 1) -> str:
    """What a slice of the pool is refused with."""
    with patch.dict(os.environ, box.variables), pytest.raises(fo.SliceRefused) as refused:
        fo.slice(pool="c", nodes=nodes)
    return str(refused.value)


def test_a_shared_folder_that_is_not_there_is_said(box: Box) -> None:
    Path("flowos.toml").write_text('[pools.c]\nkind = "slurm"\nshared = "/no/such"\n')
    done = flowos("pools", "--check", **box.variables)
    assert done.returncode == 1
    said = held(box)
    assert said.startswith("pool c: shared folder /no/such: No such file or directory; make it, or")
    shown = " ".join(done.stdout.split())
    assert shown.endswith(f"cannot be used: {said}") or f"cannot be used: {said} " in shown
    assert shown.count("/no/such:") == 1


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
    none = checked({**box.variables, "SLURM_CONF": "/nope"})
    assert none == (1, "cannot be used: pool c: SLURM_CONF=/nope: there is no such file")
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


def test_cores_of_a_slice_and_of_its_tasks_are_asked_of_the_cluster(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no node has is refused before a job is held, and not by the node that came."""
    Path("flowos.toml").write_text('[pools.c]\nkind = "slurm"\nnodes = 2\n')
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    wide = fo.flow_output(fo.command(["true"], stdout="said", needs=fo.Needs(cores=9))())
    one = fo.flow_output(fo.command(["true"], stdout="said")())
    lacks = r"0 of 2 have what each has to have: 9 cores asked for, n1 has 4"
    heard: list[str] = []
    refused: tuple[dict[str, Any], ...] = ({"flow": wide}, {"flow": one, "cores": 9}, {"cores": 9})
    for how in refused:
        with pytest.raises(fo.SliceRefused, match=lacks):
            fo.slice(pool="c", on_event=lambda event: heard.append(event.what), **how)
    assert heard == []
    with fo.slice(pool="c", cores=2):
        assert box.ask("squeue", "--noheader", "--Format=MinCPUs:5").split() == ["2"]
