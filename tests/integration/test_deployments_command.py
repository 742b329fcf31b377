"""`flowos measure --pool` where it cannot measure, and what is compared between deployments."""

import subprocess
import sys
from pathlib import Path

import pytest

FLOWOS = str(Path(sys.executable).with_name("flowos"))
OF_A_POOL = "--deployments, --nodes and --between are of a pool: give --pool NAME"


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    Path("flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 1\n')


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--deployments", "2"), OF_A_POOL),
        (("--between", "2"), OF_A_POOL),
        (("--nodes", "2"), OF_A_POOL),
        (("--pool", "two", "--env", "x"), "--env: not with --pool, which measures between nodes"),
        (("--pool", "two", "--dry-run"), "--dry-run: not with --pool, which measures between no"),
        (("--pool", "two", "--between", "-1"), "--between -1.0: give seconds, 0 or more"),
        (
            ("--pool", "two", "--only", "stream"),
            "probe 'stream' does not measure between nodes; mp",
        ),
        (("--pool", "tow"), "no pool 'tow' in"),
        (("--pool", "two", "--deployments", "0"), "0: expected a whole number"),
        (("--pool", "two", "--nodes", "1"), "--nodes 1: what is measured between nodes needs two"),
        (("--pool", "two"), "2 nodes asked for"),
        (("--pool", "two", "--nodes", "3"), "3 nodes asked for"),
    ],
)
def test_what_cannot_be_measured_between_nodes_is_one_line(
    words: tuple[str, ...], complaint: str
) -> None:
    done = subprocess.run((FLOWOS, "measure", *words), capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2)
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
