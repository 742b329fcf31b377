"""`flowos cloud` on a machine without Slurm: sizes are shown, and all else is one clear line."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS

FLOWOS = str(Path(sys.executable).with_name("flowos"))
TABLE = '[cloud.a]\ndriver = "fake"\nfolder = "{0}"\nuser_data = "{0}/boot"\nlog = "{0}/log"\n'


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without settings, until some are written here, and without Slurm's commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def cloud(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run((FLOWOS, "cloud", *words), capture_output=True, text=True, timeout=300)


def test_sizes_are_shown_the_cheapest_first_with_their_source() -> None:
    shown = cloud("sizes", "--gpus", "1", "--region", "us-east-1")
    assert (shown.returncode, shown.stderr) == (0, "")
    first, second, *_, source = shown.stdout.splitlines()
    assert first.split()[:2] == ["ec2", "g6.4xlarge"]
    assert "1 L4" in first
    assert "50 Gbit/s" in second
    assert source.startswith("# ")
    plain = json.loads(cloud("sizes", "--vcpus", "100", "--json").stdout)
    assert {"c7a.metal-48xl", "Standard_HB120rs_v3"} <= {size["name"] for size in plain}
    dollars = [size["price"] for size in plain if size["currency"] == "USD"]
    assert dollars == sorted(dollars)
    assert [size["currency"] for size in plain[len(dollars) :]] == ["JPY"]
    assert cloud("sizes", "--memory", "9999").stdout == "no size of the catalogue has all of that\n"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("reconcile",), 1, "flowos cloud: no flowos.toml: it has no table [cloud.NAME]; see docs"),
        (("suspend", "c1", "--wait"), 1, "flowos cloud: no flowos.toml: it has no table"),
        (("resume", "c[1"), 1, "flowos cloud: Slurm names nodes 'c[1': brackets or commas that"),
        (("resume", "--wait"), 2, "the following arguments are required: NODES"),
        (("reconcile", "--min-age", "-1"), 2, "argument --min-age: -1: expected seconds, from 0"),
        (("sizes", "--gpus", "0"), 2, "argument --gpus: 0: expected a whole number"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], code: int, complaint: str) -> None:
    done = cloud(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_without_slurm_it_is_said(tmp_path: Path) -> None:
    Path("flowos.toml").write_text(TABLE.format(tmp_path))
    Path("boot").write_text("")
    done = cloud("reconcile")
    assert (done.returncode, done.stderr) == (
        1,
        "flowos cloud: no scontrol here: this machine is no login node of a Slurm cluster\n",
    )


def test_a_program_in_the_background_writes_its_log(tmp_path: Path) -> None:
    Path("flowos.toml").write_text(TABLE.format(tmp_path))
    Path("boot").write_text("")
    done = cloud("suspend", "c1", "--json")
    work = json.loads(done.stdout)
    assert (done.returncode, work["log"]) == (0, str(tmp_path / "log"))
    until = time.monotonic() + PATIENCE_SECONDS
    while not (log := Path("log").read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    assert log.startswith("flowos cloud: no scontrol here")


def test_settings_that_name_no_place_for_the_log_are_refused(tmp_path: Path) -> None:
    Path("flowos.toml").write_text(TABLE.format(tmp_path).replace("/log", "/no/log"))
    done = cloud("suspend", "c1")
    assert (done.returncode, done.stderr) == (
        1,
        f"flowos cloud: {tmp_path}/no/log: No such file or directory\n",
    )
    assert os.listdir(tmp_path) == ["flowos.toml"]  # noqa: PTH208
