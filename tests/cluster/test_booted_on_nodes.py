"""An environment that is booted, asked for on nodes of a real Slurm: refused by name."""

from pathlib import Path

import pytest

import flowos as fo
from tests.environments.conftest import squash
from tests.waiting import comes

from .box import Box

FLOW = fo.flow_output(fo.command(["uname", "-r"], stdout="said")())


def test_a_booted_image_is_refused_with_the_name_of_the_node(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    (tmp_path / "flowos.toml").write_text(
        f'[pools.booted]\nkind = "slurm"\nnodes = 2\nshared = "{box.shared}"\n'
    )
    (tmp_path / "root/bin").mkdir(parents=True)
    squash(tmp_path / "root", tmp_path / "image.sqfs")
    image = tmp_path / "image.sqfs"
    with pytest.raises(fo.EnvironmentRefused) as refused:
        fo.slice(FLOW, pool="booted", nodes=1, env=f"{image}@qemu")
    said = str(refused.value)
    assert "it boots on this machine alone, not on node n1; use another runtime there" in said
    assert "image.sqfs" in said
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
