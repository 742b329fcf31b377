"""Environments of a run are looked up once, and before nodes of a pool are held once more."""

from pathlib import Path

import pytest

import flowos as fo
from flowos.model import Environment
from flowos.operations.environment import environment


@pytest.mark.parametrize(("pool", "times"), [(None, 1), ("looked", 2)])
def test_an_environment_is_looked_up_once_for_each_run(
    pool: str | None, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    Path("flowos.toml").write_text('[pools.looked]\nkind = "fake"\nnodes = 2\n')
    words: list[str] = []

    def counted(word: str) -> Environment:
        words.append(word)
        return environment(word)

    monkeypatch.setattr("flowos.operations.measure._prepare.environment", counted)
    fo.measure("parallel_io", pool=pool, seconds=1, scratch=".")
    assert words == ["bare"] * times
