"""`flowos cloud` on a machine without Slurm: sizes are shown, and all else is one clear line."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS, comes

FLOWOS = str(Path(sys.executable).with_name("flowos"))
TABLE = '[cloud.a]\ndriver = "fake"\nfolder = "{0}"\nuser_data = "{0}/boot"\nlog = "{0}/log"\n'


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without settings, until some are written here, and without Slurm's commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sh").symlink_to("/bin/sh")


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


SCONTROL = """\
#!/bin/sh
[ $1 = show ] && echo ClusterName = hpc && exit
echo "$*" >>{}/said
"""


def slurm(folder: Path, node: str, state: str) -> None:
    """Commands of a Slurm that has this node."""
    texts = {
        "sinfo": f"#!/bin/sh\necho '{node}|{state}+cloud|2026-11-29T01:00:00|none'\n",
        "squeue": "#!/bin/sh\n",
        "scontrol": SCONTROL.format(folder),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def tables(folder: Path, **nodes: str) -> str:
    """Fake clouds by their name, with their nodes, each in a folder of its own."""
    (folder / "boot").write_text("exec /bin/sleep 1000\n")
    return "".join(
        f"{TABLE.format(folder).replace('cloud.a', f'cloud.{name}')}nodes = '{of}'\n".replace(
            f'folder = "{folder}"', f'folder = "{folder}/{name}"'
        )
        for name, of in nodes.items()
    )


def said_in_slurm(folder: Path) -> str:
    said = folder / "said"
    assert comes(lambda: said.exists() and "State=DRAIN" in said.read_text())
    return said.read_text()


def test_a_log_that_cannot_be_written_is_named_and_the_work_goes_on(tmp_path: Path) -> None:
    slurm(tmp_path, "c1", "idle")
    Path("flowos.toml").write_text(
        tables(tmp_path, a="c1").replace("/log", "/no/log") + "answers = ['create: QuotaExceeded']"
    )
    done = cloud("resume", "c1")
    complaint = f"cloud.a.log: {tmp_path}/no/log: No such file or directory; name a file"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"flowos cloud: {complaint}")
    assert "a: quota: QuotaExceeded" in said_in_slurm(tmp_path)


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ("c[4-8]", "cloud.b.nodes: c4 is in cloud.a too; leave it in one of them"),
        ("c[5-", "cloud.b.nodes: 'c[5-': brackets or commas that do not match"),
    ],
)
def test_nodes_that_cannot_be_are_said_in_slurm(tmp_path: Path, nodes: str, complaint: str) -> None:
    slurm(tmp_path, "c1", "idle")
    Path("flowos.toml").write_text(tables(tmp_path, a="c[1-4]", b=nodes))
    done = cloud("resume", "c1")
    assert (done.returncode, done.stderr) == (1, f"flowos cloud: flowos.toml:12: {complaint}\n")
    assert complaint in said_in_slurm(tmp_path)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("suspend", "c[1-2]", "--wait"), "idle"),
        (("reconcile", "--min-age", "0"), "powered_down"),
    ],
)
def test_a_cloud_that_is_broken_keeps_no_machine_of_another_running(
    tmp_path: Path, words: tuple[str, ...], state: str
) -> None:
    settings = tables(tmp_path, a="c1", b="c2")
    Path("flowos.toml").write_text(settings)
    slurm(tmp_path, "c2", "idle")
    assert cloud("resume", "c2", "--wait").returncode == 0
    Path("flowos.toml").write_text(settings.replace("/boot", "/no", 1))
    slurm(tmp_path, "c2", state)
    done = cloud(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("flowos cloud: cloud.a.user_data: ")
    assert done.stdout.startswith("c2: machine hpc-c2-")
    assert not list(Path("b").glob("*.json"))


def test_prices_of_pools_keep_no_machine_running(tmp_path: Path) -> None:
    pool = '[pools.hpc]\nkind = "fake"\nsize = "none"\n'
    Path("flowos.toml").write_text(tables(tmp_path, a="c1") + pool)
    slurm(tmp_path, "c1", "idle")
    assert cloud("suspend", "c1", "--wait").returncode == 0


def test_a_machine_whose_node_was_powered_down_meanwhile_is_no_success(tmp_path: Path) -> None:
    Path("flowos.toml").write_text(tables(tmp_path, a="c1"))
    slurm(tmp_path, "c1", "powered_down")
    done = cloud("resume", "c1", "--wait")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith(": its node was powered down meanwhile\n")
    assert not Path("said").exists()


def test_a_cloud_that_does_not_say_what_runs_is_no_machine(tmp_path: Path) -> None:
    Path("flowos.toml").write_text(tables(tmp_path, a="c1") + "answers = ['list: QuotaExceeded']")
    slurm(tmp_path, "c1", "idle")
    done = cloud("suspend", "c1", "--wait")
    assert (done.returncode, done.stdout) == (
        1,
        "c1: it is not known whether a machine runs: a: quota: QuotaExceeded\n",
    )
