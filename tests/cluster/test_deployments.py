"""What is measured between nodes of a cloud, which are machines of their own each time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import comes

from .box import FLOWOS, Box
from .cloud_nodes import down, log

POOL = """\
[pools.cloud]
kind = "slurm"
partition = "cloud"
nodes = 2
shared = "{shared}"
"""


ONCE = (sys.executable, str(Path(__file__).with_name("measures_once.py")))


def flowos(
    box: Box, *words: str, program: tuple[str, ...] = (str(FLOWOS),)
) -> "subprocess.CompletedProcess[str]":
    variables = {**box.variables, "FLOWOS_CONFIG": str(box.folder / "pools.toml")}
    return subprocess.run(
        (*box.enter, *program, *words, "--store", f"sqlite:///{box.shared}/runs.db"),
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_latency_of_two_deployments_is_compared_and_their_machines_are_kept(
    tmp_path: Path,
) -> None:
    with Box(apart=True, nodes=1, cloud=2) as box:
        box.set_cloud()
        (box.folder / "pools.toml").write_text(POOL.format(shared=box.shared))
        words = ("--pool", "cloud", "--deployments", "2", "--between", "4", "--only", "mpi")
        out = ("--quick", "--json", "--out", str(tmp_path / "report"))
        for time in ((), ("--minutes", "2")):  # what a busy machine does not measure is stopped
            done = flowos(box, "measure", *words, *out, *time, program=ONCE)
            found = json.loads(done.stdout) if done.returncode == 0 else {"spreads": []}
            if "1" in _pairs(found["spreads"]):
                break
        assert done.returncode == 0, done.stderr
        assert not [note for note in found["notes"] if "got the machines of" in note]
        assert log(box).count(("create", "c1")) >= 2, "new machines each time"
        first, second = (run["deployment"] for run in found["runs"])
        assert [node["name"] for node in first["nodes"]] == ["c1", "c2"]
        assert first["of"] == second["of"]
        assert first["nodes"][0]["booted"] < second["nodes"][0]["booted"]
        latencies = [each for each in found["spreads"] if each["metric"] == "latency"]
        assert latencies
        for each in latencies:
            assert len(each["medians"]) == 2
            assert min(each["medians"]) > 1e-6, "over a link, not through memory"
            (verdict,) = each["verdicts"]
            assert (verdict["base"], verdict["other"]) == tuple(r["id"] for r in found["runs"])
        # As many as a node has cores, too, but a busy machine does not measure these in time.
        assert "1" in _pairs(found["spreads"])
        assert (
            f"deployment 2 of {first['of']}, pool cloud: c1 (booted "
            in (tmp_path / "report/deployment-2/report.md").read_text()
        )
        _compared_on_a_page(box, tmp_path, found["page"])
        again = flowos(box, "compare", "last", "--axis", "deployment", "--json")
        assert json.loads(again.stdout)["spreads"] == found["spreads"]
        shown = flowos(box, "compare", "last", "--axis", "deployment")
        assert "pool cloud, 2 deployments of nodes" in shown.stdout
        assert comes(lambda: down(box) == {"c1", "c2"})


def _pairs(spreads: list[dict[str, Any]]) -> set[str]:
    rates = (each for each in spreads if each["metric"] == "message_rate")
    return {dict(each["case"]["levels"])["pairs"] for each in rates}


def _compared_on_a_page(box: Box, folder: Path, page: str) -> None:
    assert page == str(folder / "report/deployments.html")
    compared = Path(page).read_text()
    assert "2 deployments of pool cloud, one after the other." in compared
    assert 'href="deployment-2/report.html"' in compared
    out = ("--out", str(folder / "again"))
    written = flowos(box, "compare", "last", "--axis", "deployment", *out)
    assert f"written: {folder}/again/deployments.html" in written.stderr
