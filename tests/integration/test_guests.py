"""Clusters of other frameworks on a slice of this machine, and the notebook of a person."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine.guests import _guest
from flowos.model import LaunchFailed
from tests.guests import FLOWOS, answer_of, named_in, notebook
from tests.waiting import comes

NOTEBOOK = ["4950 here\n"]
SUM = sum(sum(range(i)) for i in range(20))
IMPORTED = """
import os, ray
import flowos as fo
os.environ["RAY_AUTH_TOKEN"] = 64 * "0"
assert ray._raylet.AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True)
del os.environ["RAY_AUTH_TOKEN"]
before = dict(os.environ)
with fo.slice(pool="local") as s:
    with s.guest("ray") as at:
        ray.init(at.address, logging_level="ERROR")
        print(sum(ray.get([ray.remote(lambda x: x * x).remote(i) for i in range(5)])))
        ray.shutdown()
        print(*at.folders)
    print({name for name in before if os.environ.get(name) != before[name]})
"""


def test_a_guest_answers_its_clients_and_leaves_nothing() -> None:
    pytest.importorskip("distributed")
    before = dict(os.environ)
    with fo.slice(pool="local") as s:
        with s.guest("dask") as at:
            assert repr(at) == f"<dask at {at.address}>"
            assert answer_of("dask", at) == [SUM, ["here"]]
            assert all(Path(folder).is_dir() for folder in at.folders)
            assert any(map(named_in, at.folders))
        assert not any(Path(folder).exists() for folder in at.folders)
        assert not any(map(named_in, at.folders))
        assert dict(os.environ) == before
        assert s.run(fo.flow_output(double(fo.flow_input("x", fo.int64))), 4) == [8]


def test_a_process_may_have_imported_ray_and_used_another_token_before() -> None:
    """Ray reads its variables when it is imported, and a token once."""
    pytest.importorskip("ray")
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    total, folder, changed = done.stdout.splitlines()
    assert (total, changed) == ("30", "set()")
    assert not Path(folder).exists()
    assert not named_in(folder)


SLOW_AGENT = """
import sys, time
if any(word.endswith("dashboard/agent.py") for word in sys.orig_argv):
    time.sleep(18)
"""


def test_a_ray_whose_agent_starts_slowly_comes_up_and_ends_with_its_slice_and_twice_is_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: a raylet waits 15 s for the port of its agent, and then aborts."""
    pytest.importorskip("ray")
    (tmp_path / "sitecustomize.py").write_text(SLOW_AGENT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with fo.slice(pool="local") as s:
        at = s.guest("ray")
        assert at.address
    assert not any(Path(folder).exists() for folder in at.folders)
    assert not any(map(named_in, at.folders))
    at.free()
    with pytest.raises(fo.SliceFreed):
        s.guest("ray")


@fo.task
def double(x: fo.int64) -> fo.int64:
    return 2 * x


DIES = """
import os, sys
import flowos as fo
with fo.slice(pool="local") as s, s.guest("dask") as at:
    print(*at.folders, flush=True)
    sys.stdin.read()
"""


def test_nothing_is_left_of_a_guest_whose_program_is_killed() -> None:
    pytest.importorskip("distributed")
    words = [sys.executable, "-c", DIES]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as program:
        assert program.stdout
        folders = program.stdout.readline().split()
        assert len(folders) == 2
        program.kill()
    assert comes(lambda: not any(Path(folder).exists() for folder in folders))
    assert comes(lambda: not any(map(named_in, folders)))


def test_what_is_not_there_is_one_line_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with fo.slice(pool="local") as s:
        with pytest.raises(fo.SliceRefused, match="guest 'sparc': expected one of dask, jupyter,"):
            s.guest("sparc")
        monkeypatch.setitem(sys.modules, "pyspark", None)
        with pytest.raises(fo.SliceRefused) as refused:
            s.guest("spark")
        assert str(refused.value) == "guest spark: it is not installed here: pip install pyspark"
        monkeypatch.undo()
        pytest.importorskip("pyspark")
        for name in ("bash", "dirname", "env"):
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        with pytest.raises(fo.SliceRefused) as refused:
            s.guest("spark")
        says = "guest spark: JAVA_HOME is not set on the node: apt-get install default-jre-headless"
        assert str(refused.value) == says


def test_a_guest_that_does_not_start_says_what_it_printed_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setenv("DASK_LOGGING__DISTRIBUTED", "nonsense")
    with fo.slice(pool="local") as s, pytest.raises(fo.SliceRefused) as refused:
        s.guest("dask")
    assert str(refused.value).startswith("guest dask: it does not start: it exited with code 1 on")
    assert "NONSENSE" in str(refused.value)


def test_a_node_that_cannot_be_made_ready_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise LaunchFailed("cannot make the run folder: No space left on device")

    pytest.importorskip("distributed")
    monkeypatch.setattr(_guest, "_entered", full)
    with fo.slice(pool="local") as s, pytest.raises(fo.SliceRefused) as refused:
        s.guest("dask")
    assert str(refused.value).startswith("guest dask: it does not start: cannot make the run fold")


def test_a_notebook_is_served_until_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jupyterlab")
    monkeypatch.chdir(tmp_path)
    with notebook() as (found, served):
        assert found["pool"] == "local"
        assert answer_of("jupyter", found["url"]) == NOTEBOOK
        served.send_signal(signal.SIGINT)
        _, said = served.communicate(timeout=300)
    assert served.returncode == 0
    assert said == f"flowos notebook: on node {found['node']} of pool local, until Ctrl-C\n"


def test_a_notebook_that_dies_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jupyterlab")
    monkeypatch.chdir(tmp_path)
    with notebook() as (_, served):
        (server,) = pids_of("jupyterlab", served.pid)
        os.kill(server, signal.SIGKILL)
        _, said = served.communicate(timeout=300)
    assert served.returncode == 1
    assert said.endswith("flowos notebook: it has ended: it exited with code 9\n")


def test_a_notebook_ends_with_its_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jupyterlab")
    monkeypatch.chdir(tmp_path)
    with notebook("--seconds", "20") as (_, served):
        _, said = served.communicate(timeout=300)
    assert served.returncode == 1
    assert said.endswith("flowos notebook: it has ended: its 20 s are over\n")


def test_a_guest_ends_with_the_node_of_its_head_and_with_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jupyterlab")
    lost = threading.Semaphore(0)
    settings = tmp_path / "flowos.toml"
    script = "lose 2 after 20; lose 1 after 30"
    settings.write_text(f"pools.two = {{kind = 'fake', nodes = 2, script = ['{script}']}}")
    monkeypatch.setenv("FLOWOS_CONFIG", str(settings))
    on_event = lambda event: lost.release() if event.what == "lost" else None  # noqa: E731
    with fo.slice(pool="two", nodes=2, on_event=on_event) as s, s.guest("jupyter") as at:
        assert lost.acquire(timeout=60)
        with pytest.raises(TimeoutError):
            at.wait(1)
        assert lost.acquire(timeout=60)
        assert at.wait(60).startswith("node two-1 is lost: the node does not answer")


def test_a_guest_ends_with_the_lease_of_its_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jupyterlab")
    settings = tmp_path / "flowos.toml"
    settings.write_text("pools.two = {kind = 'fake', nodes = 2, script = ['end after 20']}")
    monkeypatch.setenv("FLOWOS_CONFIG", str(settings))
    with fo.slice(pool="two", nodes=2) as s, s.guest("jupyter") as at:
        assert at.wait(60).startswith("the slice's lease ended after ")


def pids_of(word: str, ancestor: int) -> list[int]:
    """Processes started by another one, or by those that it started, with this word."""
    children = Path(f"/proc/{ancestor}/task").glob("*/children")
    pids = [int(pid) for place in children for pid in place.read_text().split()]
    found = [pid for each in pids for pid in pids_of(word, each)]
    named = [pid for pid in pids if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0")]
    return found or named


def test_what_a_notebook_would_start_is_shown() -> None:
    def flowos(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([FLOWOS, "notebook", *words], capture_output=True, text=True)

    shown = flowos("--dry-run", "--nodes", "1").stdout.splitlines()
    assert shown[0] == "# on the first of 1 of pool local"
    assert "-m jupyterlab" in shown[1]
    plain = json.loads(flowos("--dry-run", "--json").stdout)
    assert (plain["pool"], plain["nodes"]) == ("local", 1)
    assert "--ServerApp.ip=ADDRESS" in plain["command"]
    refused = flowos("--dry-run", "--pool", "nope")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "no pool 'nope'" in refused.stderr
    assert "no pool 'nope'" in flowos("--pool", "nope").stderr
