"""`flowos pools --check` of a pool that is a queue of a real Grid Engine: each says one line."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.drivers.allocators.sge import by_hand_words
from flowos.engine import provider_of
from flowos.model import Ask, Pool

from .grid import Grid
from .in_process import flowos

QUEUE = ('queue = "main.q"', 'pe = "nodes"')
CANNOT = "cannot be used: pool c: "


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def checked(variables: dict[str, str], *keys: str) -> tuple[int, str]:
    """Exit code of the check, and its last line, of a pool with these keys."""
    Path("flowos.toml").write_text("\n".join(("[pools.c]", 'kind = "sge"', *keys, "")))
    done = flowos("pools", "--check", **variables)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()[-1].strip()


def test_a_pool_shows_what_the_cluster_has_for_it(grid: Grid) -> None:
    code, said = checked(grid.outside, "nodes = 2", *QUEUE)
    assert code == 0
    assert said.startswith("n2 ")


def test_the_command_that_measures_on_a_node_runs_there(grid: Grid) -> None:
    words = by_hand_words(Pool(name="c", kind="sge", queue="main.q", pe="nodes"), ("echo", "here"))
    variables = {**os.environ, **grid.outside}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (('queue = "mian.q"', 'pe = "x"'), "no queue 'mian.q'; did you mean 'main.q'?"),
        (
            ('queue = "main.q"', 'pe = "node"'),
            "no parallel environment in queue 'main.q': 'node'; did you mean 'nodes'?",
        ),
        (
            ('queue = "main.q"', 'pe = "mixed"'),
            "parallel environment 'mixed' gives slots as they come ($fill_up); one whose "
            "allocation_rule is a number gives whole nodes",
        ),
        (
            ("nodes = 2", 'queue = "main.q"', 'pe = "one"'),
            "parallel environment 'one' gives slots of one node",
        ),
        (("nodes = 3", *QUEUE), "3 nodes asked for, 2 of 2 have what each has to have"),
        (
            ("nodes = 300", *QUEUE),
            "300 nodes asked for, parallel environment 'nodes' has 999 slots",
        ),
    ],
)
def test_what_the_cluster_can_never_give_is_said_at_once(
    grid: Grid, keys: tuple[str, ...], complaint: str
) -> None:
    code, said = checked(grid.outside, *keys)
    assert (code, said[: len(CANNOT)]) == (1, CANNOT)
    assert said.endswith(complaint)


def test_a_machine_that_is_no_login_node_is_said_to_be_none(tmp_path: Path, grid: Grid) -> None:
    path = str(Path(sys.executable).parent)
    assert checked({"PATH": path}, *QUEUE) == (
        1,
        f"{CANNOT}no qconf here: this machine is no login node of a Grid Engine cluster",
    )
    (tmp_path / "qconf").write_text("#!/bin/sh\n")
    assert checked({"PATH": str(tmp_path)}, *QUEUE) == (
        1,
        f"{CANNOT}qconf cannot be started: Permission denied",
    )
    assert checked({**grid.outside, "SGE_EXECD_PORT": "abc"}, *QUEUE) == (
        1,
        f"{CANNOT}SGE_EXECD_PORT='abc': expected a port, 1 to 65535",
    )
    nowhere = {**grid.outside, "SGE_QMASTER_PORT": "9"}
    code, said = checked(nowhere, *QUEUE)
    assert (code, "unable to send message to qmaster using port 9" in said) == (1, True)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"nodes": 9}, "9 nodes asked for, 2 of 2 have"),
        ({"lease_seconds": 60.0}, "lease_seconds: what it holds ends with this program"),
        ({"topology": "pack"}, "Grid Engine does not place nodes"),
        ({"gpus": 1}, "1 GPU asked for, n1 has 0"),
    ],
)
def test_what_grid_engine_cannot_give_a_slice_is_refused_in_one_line(
    grid: Grid, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], complaint: str
) -> None:
    for name, value in grid.outside.items():
        monkeypatch.setenv(name, value)
    pool = Pool(name="c", kind="sge", nodes=2, queue="main.q", pe="nodes")
    with pytest.raises(fo.SliceRefused, match=complaint):
        provider_of(pool).check(Ask(**asked))
