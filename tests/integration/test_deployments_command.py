"""`flowos measure --pool` where it cannot measure, and what is compared between deployments."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flowos.model import Baseline, BaselineNumber, MachineKind
from flowos.operations._alike_runs import kind_of
from flowos.operations._facts import facts
from flowos.report import baseline_json

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
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
        (("--pool", "two", "--matrix", "x.mtx"), "--matrix: not with --pool, whose nodes may not"),
        (("--pool", "two", "--between", "9"), "--between: of several deployments: add --deploym"),
        (
            ("--pool", "two", "--env", "bare", "--env", "bare", "--only", "startup"),
            "probe 'startup' does not measure between nodes in several environments; mpi, metadata",
        ),
        (("--pool", "two", "--env", "x"), "no image is called 'x'"),
        (("--pool", "tow", "--dry-run"), "no pool 'tow' in"),
        (("--pool", "two", "--between", "-1"), "--between -1.0: give seconds, from 0 to below 1e6"),
        (
            ("--pool", "two", "--only", "stream"),
            "probe 'stream' does not measure between nodes; mp",
        ),
        (("--pool", "tow"), "no pool 'tow' in"),
        (("--pool", "two", "--deployments", "0"), "0: expected a whole number"),
        (("--pool", "two", "--nodes", "0"), "0: expected a whole number"),
        (("--pool", "two"), "2 nodes asked for"),
        (("--pool", "two", "--nodes", "3"), "3 nodes asked for"),
    ],
)
def test_what_cannot_be_measured_between_nodes_is_one_line(
    words: tuple[str, ...], complaint: str, flowos: Flowos
) -> None:
    done = flowos("measure", *words, codes=(1, 2))
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_dry_run_holds_no_node(tmp_path: Path, flowos: Flowos) -> None:
    done = flowos("measure", "--pool", "two", "--only", "parallel_io", "--dry-run")
    assert "parallel_io clients=2" in done.stdout
    assert done.stderr.endswith(
        "no node is held for this: they are taken to be like this machine\n"
    )
    both = ("--env", "bare", "--env", "bare", "--only", "metadata")
    several = flowos("measure", "--pool", "two", *both, "--quick", "--dry-run")
    assert "metadata env=bare#2 " in several.stdout
    assert " -n 4 metadata-" in several.stdout, "two processes on each node"
    words = ("--suite", "abci", "--only", "11", "--pool", "two", "--dry-run", "--json")
    suite = flowos("measure", *words)
    (step,) = json.loads(suite.stdout)["steps"]
    assert "clients=2" in "".join(step["cases"])
    assert not (tmp_path / "runs.db").exists()


@pytest.mark.parametrize(
    ("nodes", "words", "complaint"),
    [
        (2, (), "the baseline is between 2 nodes: give --pool NAME"),
        (2, ("--pool", "two", "--nodes", "3"), "--nodes 3: the baseline is of 2"),
        (2, ("--pool", "two", "--deployments", "2"), "--deployments and --between: not with --che"),
    ],
)
def test_a_baseline_is_checked_between_as_many_nodes(
    nodes: int, words: tuple[str, ...], complaint: str, flowos: Flowos, kind: MachineKind
) -> None:
    write_baseline(nodes, kind)
    done = flowos("measure", "--check", "b.json", *words, code=2)
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_of_a_pool_are_checked_against_a_baseline(
    nodes: int, flowos: Flowos, kind: MachineKind
) -> None:
    Path("flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')
    write_baseline(nodes, kind)
    words = ("--check", "b.json", "--pool", "two", "--minutes", "0.2", "--scratch", ".")
    done = flowos("measure", *words, "--json", codes=range(256))
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"]
    (verdict,) = found["verdicts"]
    assert verdict["number"]["median"] == 1e12
    assert 0 < verdict["value"] < 1e12, "no disk writes as much"


DEPLOYED = ("--pool", "two", "--nodes", "2", "--only", "mpi", "--quick", "--scratch", ".")


@pytest.mark.parametrize("words", [(), ("--deployments", "1")])
@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("lose 2 after 4", "node two-2 was lost: the node does not answer"),
        ("end after 4", "its slice ended after 4 s"),
    ],
)
def test_nodes_that_are_lost_end_their_deployment_and_it_is_said(
    step: str, why: str, words: tuple[str, ...], flowos_process: Flowos
) -> None:
    """In processes of their own, as a pool of this process lacks the lost node from then on."""
    Path("flowos.toml").write_text(f'[pools.two]\nkind = "fake"\nnodes = 2\nscript = ["{step}"]\n')
    done = flowos_process("measure", *DEPLOYED, *words, "--minutes", "2", "--json", code=1)
    place = "deployment 1 of 1" if words else "flowos measure"
    assert f"{place}: {why}; what was measured until then is kept" in done.stderr.splitlines()
    found = json.loads(done.stdout)
    (run,) = found["runs"] if words else [found["report"]["run"]]
    assert run["ended_early"] == why


def test_a_deployment_that_is_refused_hides_none_before_it(flowos: Flowos) -> None:
    Path("flowos.toml").write_text(
        '[pools.two]\nkind = "fake"\nnodes = 2\nscript = ["wait 0 ok", "refuse quota exceeded"]\n'
    )
    done = flowos("measure", *DEPLOYED, "--minutes", "0.05", "--deployments", "3", code=1)
    assert "pool two, 1 deployment of nodes:" in done.stdout
    said = "deployment 2 of 3: pool two: quota exceeded; the runs before it are kept"
    assert said in done.stderr.splitlines()


def test_where_nothing_is_measured_the_reason_is_said(flowos: Flowos) -> None:
    Path("flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')
    words = [word if word != "mpi" else "parallel_io" for word in DEPLOYED]
    done = flowos("measure", *words, "--deployments", "1", "--minutes", "0.001", code=1)
    assert "parallel_io was not measured: " in done.stderr.splitlines()[-1]
    alone = flowos("measure", *words, "--minutes", "0.001", code=1)
    assert "the time was out before its turn" in alone.stdout


def test_what_is_to_be_measured_anew_is_so_on_as_many_nodes_of_the_pool(
    flowos: Flowos,
) -> None:
    Path("flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')
    done = flowos("measure", *DEPLOYED, "--minutes", "0.001", "--json", code=1)
    missing = json.loads(done.stdout)["report"]["run"]["facts"]["missing"]
    commands = [m["remedy"] for m in missing if m["remedy"].startswith("flowos measure ")]
    if not commands:
        pytest.skip("this machine says all that is asked of it")
    assert all(command.endswith(" --pool two --nodes 2") for command in commands)


@pytest.fixture(scope="module")
def kind() -> MachineKind:
    """Of this machine."""
    return kind_of(facts())


def write_baseline(nodes: int, kind: MachineKind) -> None:
    """Of a write between so many nodes, faster than there is."""
    number = BaselineNumber(
        probe="parallel_io",
        levels=(
            ("clients", "2"),
            ("files", "own"),
            ("direct", "yes"),
            *((("nodes", str(nodes)),) if nodes > 1 else ()),
            ("workload", "sequential write"),
        ),
        metric="bandwidth",
        unit="byte/s",
        median=1e12,
        spread=0.01,
        runs=3,
        machines=1,
        tolerance=0.05,
    )
    baseline = Baseline(
        kind=kind,
        made="2026-01-01T00:00:00Z",
        version="0",
        runs=("a", "b", "c"),
        machines=("m",),
        probes=("parallel_io",),
        effort="quick",
        nodes=nodes,
        error=0.05,
        max_tolerance=0.25,
        numbers=(number,),
    )
    Path("b.json").write_text(baseline_json(baseline))
