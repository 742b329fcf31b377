"""Pools as a person meets them: flowos.toml, fo.slice(pool=...), flowos pools."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HoldEvent
from flowos.model import Environment
from flowos.operations.settings import settings_page
from flowos.operations.settings_file import load_settings, settings_files
from tests.integration.conftest import called_here
from tests.waiting import PATIENCE_SECONDS, comes

FLOWOS = str(Path(sys.executable).with_name("flowos"))
TOML = """
[pools.test]
kind = "fake"
nodes = 3
cores = 2
script = ["wait 0.01 Priority"]

[pools.broken]
kind = "local"
cores = 100000
"""


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without settings, until some are written here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)
    return tmp_path


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


X, Y = fo.flow_input("x", fo.int64), fo.flow_input("y", fo.int64)
FLOW = fo.flow_output(add(X, Y))


def test_the_file_that_is_named_counts_before_the_folders_and_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_files() == ()
    Path("flowos.toml").mkdir()
    with pytest.raises(fo.SettingsError, match="toml: it is no file that can be read: rename"):
        load_settings()
    Path("flowos.toml").rmdir()
    own = tmp_path / "config/flowos/flowos.toml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert settings_files() == (own,)
    Path("flowos.toml").write_text("")
    assert settings_files() == (own, Path("flowos.toml"))
    named = tmp_path / "named.toml"
    named.write_text("[pools.named]")
    monkeypatch.setenv("FLOWOS_CONFIG", str(named))
    assert [pool.name for pool in load_settings().pools] == ["local", "named"]
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "nowhere"))
    with pytest.raises(fo.SettingsError, match="nowhere: there is no such file"):
        load_settings()
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "config"))
    with pytest.raises(fo.SettingsError, match=r"config: it is no file; name one, as .*toml$"):
        load_settings()
    named.chmod(0)
    named.parent.joinpath("loop").symlink_to("loop")
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "loop"))
    with pytest.raises(fo.SettingsError, match="loop: Too many levels of symbolic links"):
        load_settings()


def test_a_flow_runs_on_a_pool_and_tells_what_it_waits_for() -> None:
    Path("flowos.toml").write_text(TOML)
    events: list[HoldEvent] = []
    with fo.slice(FLOW, pool="test", nodes=2, on_event=events.append) as s:
        assert s.run(1, 2) == [3]
        assert s.run(x=3, y=4) == [7]
        assert list(s.map((i, i) for i in range(20))) == [[2 * i] for i in range(20)]
        assert len(s.nodes) == 2
        s.resize(3)
        assert len(s.nodes) == 3
        assert s.run(5, 6) == [11]
        with pytest.raises(fo.SliceRefused, match=r"^plan: nodes of a pool choose each for itself"):
            s.plan(1, 2)
    assert [(e.what, e.reason) for e in events] == [
        ("waiting", "Priority"),
        ("held", ""),
        ("resized", ""),
    ]
    with pytest.raises(fo.SliceFreed):
        s.run(1, 2)


def test_several_flows_run_on_a_slice_without_one() -> None:
    with fo.slice(pool="local") as s:
        assert s.run(FLOW, 1, 2) == [3]
        assert s.run(fo.flow_output(add(add(X, Y), 1)), 1, 2) == [4]
        with pytest.raises(fo.WiringError, match="the first argument is a flow, not 3"):
            s.run(3, 1, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("nodes", [1, (0, 1)])
def test_ports_are_run_on_a_slice_without_a_flow_and_made_ready_once(nodes: int) -> None:
    Path("flowos.toml").write_text("pools.ports = {kind = 'fake', nodes = 1}")
    total, more = add(X, Y), add(add(X, Y), 1)
    with fo.slice(pool="ports", nodes=nodes) as s:
        assert s.run(total, 1, 2) == s.run(total, x=1, y=2) == [3]
        assert s.run([total, more], 1, 2) == s.submit((total, more), 1, 2).result() == [3, 4]
        assert list(s.map(more, [(1, 2), (3, 4)])) == [[4], [8]]
        assert len(s._slices.all()) == 3
        for given in (3, [], [total, 3], "ab"):
            with pytest.raises(fo.WiringError, match=r"is a flow, not .* or give its ports"):
                s.map(given, [(1, 2)])  # type: ignore[arg-type]


def test_a_slice_inside_a_task_of_a_slice_does_not_hang() -> None:
    @fo.task
    def outer(x: fo.int64) -> fo.int64:
        with fo.slice(FLOW, pool="local", cores=1) as inner:
            return inner.run(x, 1)[0]  # type: ignore[return-value]

    with fo.slice(pool="local", cores=1) as s:
        assert s.run(fo.flow_output(outer(X)), 1) == [2]


def test_a_slice_is_freed_while_another_thread_runs_on_it() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @fo.task
    def waits(x: fo.int64) -> fo.int64:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return x

    s = fo.slice(fo.flow_output(waits(X)), pool="local")
    said: list[str] = []

    def run() -> None:
        with pytest.raises(fo.SliceFreed) as freed:
            s.run(1)
        said.append(str(freed.value))

    thread, freeing = threading.Thread(target=run), threading.Thread(target=s.free)
    thread.start()
    assert begun.wait(PATIENCE_SECONDS)
    freeing.start()
    until = time.monotonic() + PATIENCE_SECONDS
    while "over" not in repr(s) and time.monotonic() < until:
        time.sleep(0.01)
    go_on.set()
    freeing.join()
    thread.join()
    assert said


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"pool": "tset"}, "no pool 'tset' in flowos.toml; did you mean 'test'"),
        ({"pool": "zz"}, "no pool 'zz' in flowos.toml; its pools are local, test, broken"),
        ({"pool": "test", "nodes": 9}, "pool test: 9 nodes asked for, it has 3"),
        ({"pool": "test", "nodes": 0}, "nodes=0; expected a positive int"),
        ({"pool": "test", "nodes": True}, "nodes=True; expected a positive int"),
        ({"pool": "test", "seconds": 0}, "seconds=0; expected a number above 0"),
        ({"pool": "test", "seconds": 1e10}, "expected a number above 0 and below 1e9"),
        ({"pool": 3}, "pool=3; expected the name of a pool"),
        ({"pool": "test", "seconds": "x"}, "seconds='x'; expected a number above 0"),
        ({"pool": "test", "seconds": float("inf")}, "seconds=inf; expected a number above 0"),
        ({"pool": "local", "nodes": 2}, "pool local: 2 nodes asked for, it has 1"),
        ({"pool": "broken"}, "pool broken: cores = 100000, this node has"),
        ({"pool": "test", "nodes": (8, 0)}, "nodes=(8, 0); expected (MIN, MAX), with MIN"),
        ({"pool": "test", "nodes": (0, 0)}, "nodes=(0, 0); expected (MIN, MAX), with MIN"),
        ({"pool": "test", "nodes": (-1, 2)}, "nodes=(-1, 2); expected (MIN, MAX), with MIN"),
        ({"pool": "test", "nodes": (1, 2, 3)}, "expected a number or (MIN, MAX)"),
        ({"pool": "test", "nodes": (0, 9)}, "pool test: 9 nodes asked for, it has 3"),
        ({"pool": "local", "nodes": (0, 2)}, "pool local: 2 nodes asked for, it has 1"),
        ({"pool": "test", "nodes": 2, "idle_seconds": 3}, "idle_seconds is of a slice that grows"),
        ({"pool": "test", "nodes": (0, 2), "idle_seconds": 0}, "idle_seconds=0; expected a fin"),
        ({"pool": "test", "nodes": (0, 2), "lease_seconds": 9}, "lease_seconds is of a number of"),
        ({"nodes": 2}, "nodes is asked of a pool: add pool='local'"),
        ({"pool": "test", "cores": 3}, "slice: 3 cores asked for, this node has 2 for us"),
    ],
)
def test_what_a_pool_does_not_have_is_refused(how: dict[str, object], complaint: str) -> None:
    Path("flowos.toml").write_text(TOML)
    with pytest.raises(fo.SliceRefused) as refused:
        fo.slice(FLOW, **how)  # type: ignore[call-overload]
    assert complaint in str(refused.value)


def test_a_slice_grows_with_its_work_and_shrinks() -> None:
    Path("flowos.toml").write_text(TOML)
    with fo.slice(FLOW, pool="test", nodes=(0, 2), idle_seconds=0.2) as s:
        assert s.nodes == ()
        assert s.run(1, 1) == [2]
        assert comes(lambda: s.nodes == ())
        assert list(s.map((i, 1) for i in range(9))) == [[i + 1] for i in range(9)]
    with fo.slice(FLOW, pool="test", nodes=(0, 2), idle_seconds=100) as s:
        s.resize(2)
        assert len(s.nodes) == 2


GROWS = """
import flowos as fo

@fo.task
def add(x: int) -> int:
    return x + 1

flow = fo.flow_output(add(fo.flow_input("x", fo.int64)))
"""
GROWS_TOML = """
[pools.t]
kind = "fake"
nodes = 3
[pools.w]
kind = "fake"
nodes = 3
script = ["wait 60 Priority"]
"""


def test_a_flow_file_runs_on_as_many_nodes_as_there_is_work_for() -> None:
    Path("flowos.toml").write_text(GROWS_TOML)
    Path("flow.py").write_text(GROWS)
    for given, code, says in (
        (("--nodes", "0:2", "--idle-seconds", "5"), 0, "add = 4"),
        (("--nodes", "0:2", "--dry-run"), 0, "# bare, on 0 to 2 of pool t"),
        (("--nodes", "3:1", "--dry-run"), 2, "argument --nodes: 3:1: expected (MIN, MAX)"),
        (("--nodes", "0"), 2, "argument --nodes: 0: expected a positive int"),
        (("--nodes", "0:1:2"), 2, "argument --nodes: '0:1:2': expected 2, or 0:8"),
        (("--gpus", "-1"), 2, "argument --gpus: -1: expected an int of 0 or more"),
        (("--seconds", "1e9"), 2, "argument --seconds: 1e9: expected a number above 0 and below"),
        (("--nodes", "0:2", "--idle-seconds", "0"), 2, "--idle-seconds: 0: expected a finite"),
        (("--nodes", "4", "--dry-run"), 1, "4 nodes asked for"),
        (("--seconds", "nan", "--dry-run"), 2, "seconds"),
        (("x=y", "--dry-run"), 2, "input 'x' is given twice"),
        (("--nodes", "2:0"), 2, "argument --nodes: 2:0: expected (MIN, MAX)"),
        (("--nodes", "0:x"), 2, "argument --nodes: '0:x': expected 2, or 0:8"),
        (("--idle-seconds", "5"), 1, "idle_seconds is of a slice that grows"),
    ):
        done = flowos("run", "flow.py", "x=3", "--pool", "t", *given)
        assert (done.returncode, says in done.stdout + done.stderr) == (code, True)


def test_ctrl_c_while_the_first_node_is_waited_for_is_one_line() -> None:
    Path("flowos.toml").write_text(GROWS_TOML)
    Path("flow.py").write_text(GROWS)
    words = (FLOWOS, "run", "flow.py", "x=3", "--pool", "w", "--nodes", "0:2")
    program = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert program.stderr is not None
    assert program.stderr.readline() == "flowos run: waiting: Priority\n"
    program.send_signal(signal.SIGINT)
    assert program.stderr.read() == "flowos run: interrupted\n"
    assert program.wait(PATIENCE_SECONDS) != 0
    program.stderr.close()


@fo.task
def invert(x: fo.int64) -> fo.int64:
    return 1000 // x


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 1, 2, 150, 301])
def test_an_error_of_a_map_over_nodes_names_the_item_among_all(nodes: int, bad: int) -> None:
    Path("flowos.toml").write_text(TOML)
    values = [0 if i == bad else 1 for i in range(400)]
    with fo.slice(fo.flow_output(invert(X)), pool="test", nodes=nodes) as s:
        with pytest.raises(fo.TaskFailed, match=rf"^item {bad}: task 'invert' raised"):
            list(s.map(values))
        with pytest.raises(fo.ValueRefused, match=rf"^item {bad}: "):
            list(s.map([*([1] * bad), "a text", 1, 1]))


def test_a_slice_needs_a_flow_or_a_pool() -> None:
    with pytest.raises(fo.SliceRefused, match="give it a flow, or a pool"):
        fo.slice()  # type: ignore[call-overload]


def test_a_task_that_no_node_can_run_leaves_nothing_held() -> None:
    Path("flowos.toml").write_text(TOML.replace("script", "#"))
    large = fo.command(["true"], stdout="said", needs=fo.Needs(cores=3))
    for _ in range(4):
        with pytest.raises(fo.SliceRefused, match="needs 3 cores, the slice has 2"):
            fo.slice(fo.flow_output(large()), pool="test", nodes=3)
    with fo.slice(FLOW, pool="test", nodes=3) as s:
        assert s.run(1, 1) == [2]


def test_ctrl_c_while_a_slice_waits_for_its_nodes_leaves_nothing_held() -> None:
    Path("flowos.toml").write_text("[pools.one]\nkind = 'fake'\n")
    program = (
        "import signal\n"
        "import flowos as fo\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "with fo.slice(pool='one') as first:\n"
        "    try:\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "        fo.slice(pool='one')\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
        "with fo.slice(pool='one') as again:\n"
        "    print(again.nodes)\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n('one-1',)\n", "")


def flowos(*words: str) -> "subprocess.CompletedProcess[str]":
    return called_here([*words], Path.cwd(), dict(os.environ))


def test_the_command_shows_pools_and_asks_them() -> None:
    assert "local  local  1 node" in flowos("pools").stdout
    Path("flowos.toml").write_text(TOML)
    shown = flowos("pools")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "test  fake  3 nodes  2 cores each" in shown.stdout
    checked = flowos("pools", "--check")
    assert checked.returncode == 1
    assert "test-3  2 cores" in checked.stdout
    assert "cannot be used: pool broken: cores = 100000" in checked.stdout
    plain = json.loads(flowos("pools", "--check", "--json").stdout)
    assert [len(state["nodes"]) for state in plain] == [1, 3, 0]
    assert plain[2]["refused"]
    one = flowos("pools", "--check", "test")
    assert (one.returncode, "test-3  2 cores" in one.stdout) == (0, True)
    assert "local" not in one.stdout
    unknown = flowos("pools", "--check", "tset")
    said = "flowos pools: no pool 'tset' in flowos.toml; did you mean 'test'?\n"
    assert (unknown.returncode, unknown.stdout, unknown.stderr) == (2, "", said)


def test_the_check_finds_an_environment_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "flowos.toml").write_text('[pools.local]\nenv = "nope"\n')
    checked = flowos("pools", "--check")
    assert checked.returncode == 1
    assert "cannot be used: no image is called 'nope'" in checked.stdout


def test_the_command_says_a_mistake_in_one_line() -> None:
    Path("flowos.toml").write_text("[pools.a]\nnodez = 1\n")
    done = flowos("pools")
    assert (done.returncode, done.stdout) == (1, "")
    said = "flowos pools: flowos.toml:2: pools.a.nodez: no such key; did you mean 'nodes'?\n"
    assert done.stderr == said


def test_the_mark_that_some_editors_begin_text_with_is_passed_over() -> None:
    Path("flowos.toml").write_bytes(b"\xef\xbb\xbf[pools.local]\ncores = 1\n")
    assert [pool.cores for pool in load_settings().pools] == [1]


@pytest.mark.parametrize("content", [b"\xff", b"[pools.a]\nenv = '\xe9'"])
def test_what_is_no_text_is_refused(content: bytes) -> None:
    Path("flowos.toml").write_bytes(content)
    with pytest.raises(fo.SettingsError, match="it is no UTF-8 text"):
        load_settings()


def test_the_page_of_the_documentation_says_what_is_read() -> None:
    page = Path(__file__).parents[2] / "docs/flowos-toml.md"
    assert page.read_text() == settings_page(), "run: python tools/settings_page.py"


@pytest.mark.parametrize(
    ("kind", "more"),
    [("local", ""), ("fake", ""), ("sge", "queue = 'q'\npe = 'p'\nshared = '/tmp'")],
)
def test_only_slurm_boots_nodes_into_a_kernel(kind: str, more: str) -> None:
    Path("flowos.toml").write_text(f"[pools.one]\nkind = '{kind}'\n{more}")
    with pytest.raises(fo.SliceRefused) as refused:
        fo.slice(FLOW, pool="one", env="bare:kernel=B")
    assert str(refused.value) == (
        f"slice: kernel='B': pool 'one' ({kind}) boots no nodes into a kernel; a pool of kind "
        "slurm does"
    )


def test_a_node_that_is_there_boots_no_kernel() -> None:
    with pytest.raises(fo.EnvironmentRefused, match="kernel='B': only a slice of a pool of"):
        fo.slice(FLOW, env="bare:kernel=B").run(1, 2)
    Path("flowos.toml").write_text(f"[pools.one]\nkind = 'slurm'\nshared = '{Path.cwd()}'\n")
    with pytest.raises(fo.SliceRefused, match="kernel='-x'; expected letters"):
        fo.slice(FLOW, pool="one", env=Environment(kernel="-x"))
