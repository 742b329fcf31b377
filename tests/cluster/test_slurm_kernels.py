"""Nodes of a real Slurm that are booted into a kernel, by programs of `flowos kernel publish`.

A power cycle is a machine started anew, whose BMC is one of ours.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .box import FLOWOS, Box

_SLICE = """
import sys
import flowos as fo

@fo.task
def kernel(name: str) -> str:
    import pathlib
    return pathlib.Path(name).read_text().partition("flowos.kernel=")[2].strip()

flow = fo.flow_output(kernel(fo.flow_input("name", str)))
said = []
try:
    _, name, env, nodes = sys.argv
    with fo.slice(flow, env=env, pool="c", nodes=int(nodes), on_event=said.append) as s:
        print(*s.run(name), *[note for note in s.notes if "boot" in note])
except fo.FlowosError as error:
    print(type(error).__name__, error)
print(*[f"{each.what}: {each.reason}" for each in said if each.what in ("booting", "waiting")])
"""

_LEASED = """
import sys
import flowos as fo

s = fo.slice(pool="c", nodes=1, env=sys.argv[1], lease_seconds=300)
s.leave()
try:
    fo.attach(s.held.id, "bare:kernel=other")
except fo.SliceRefused as error:
    print(str(error).removeprefix(f"slice {s.held.id} "))
with fo.attach(s.held.id, sys.argv[1]) as s:
    print(s.run(fo.flow_output(fo.command(["echo", "runs"])())))
"""


@pytest.fixture(scope="module")
def kernels() -> Iterator[Box]:
    with Box(apart=True, kernels=("kernelA", "kernelB"), resume_seconds=15) as box:
        yield box


@pytest.fixture(autouse=True)
def settings(kernels: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in kernels.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    monkeypatch.chdir(tmp_path)
    write(kernels)


def write(box: Box, *lines: str) -> None:
    pool = ("[pools.c]", 'kind = "slurm"', "nodes = 2", f'shared = "{box.shared}"', *lines)
    Path("flowos.toml").write_text("\n".join(pool))


def run(box: Box, *words: str) -> str:
    """What is printed by a program on the login node."""
    command = (*box.enter, *words)
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def held(box: Box, env: str, nodes: int = 2) -> list[str]:
    """What its slice says, and its events."""
    return run(box, sys.executable, "-c", _SLICE, "/proc/cmdline", env, str(nodes)).splitlines()


def test_nodes_are_booted_once_and_boot_seconds_are_apart(kernels: Box) -> None:
    lines = held(kernels, "bare:kernel=kernelB")
    assert len(lines) == 2, "\n".join(lines)
    result, events = lines
    found = re.fullmatch(r"kernelB booted n1, n2 into kernelB: (\d+\.\d) s", result)
    assert found, result
    assert events == "booting: n1, n2 into kernelB"
    assert [kernels.boots(name) for name in kernels.nodes] == [1, 1]
    assert held(kernels, "bare:kernel=kernelB") == ["kernelB", ""]
    assert [kernels.boots(name) for name in kernels.nodes] == [1, 1]
    again, first = json.loads(run(kernels, str(FLOWOS), "slice", "ls", "--json"))
    assert first["booted_seconds"] == pytest.approx(float(found[1]), abs=0.5)
    assert first["waited_seconds"] >= 0
    (since,) = {node["since"] for node in first["nodes"]}
    assert since - first["asked"] == pytest.approx(
        first["waited_seconds"] + first["booted_seconds"], abs=0.01
    )
    assert again["booted_seconds"] == 0
    shown = run(kernels, str(FLOWOS), "slice", "show", first["id"])
    assert "asked for 2 nodes, kernel kernelB at" in shown
    assert f"  booted n1, n2 into kernelB: {first['booted_seconds']:.1f} s" in shown
    assert "booted" not in run(kernels, str(FLOWOS), "slice", "show", again["id"])


def test_a_pool_may_name_its_kernel_and_what_none_has_is_refused(
    kernels: Box, tmp_path: Path
) -> None:
    before = [kernels.boots(name) for name in kernels.nodes]
    write(kernels, 'env = "bare:kernel=kernelC"', 'constraint = "kernelB"')
    (tmp_path / "flow.py").write_text(
        "import flowos as fo\nf = fo.flow_output(fo.command(['true'])())\n"
    )
    assert run(
        kernels, str(FLOWOS), "run", str(tmp_path / "flow.py"), "--pool", "c", "--dry-run"
    ) == ("flowos run: pool c: no node has a kernel 'kernelC'; did you mean 'kernelB'?\n")
    assert held(kernels, "bare:kernel=kernelA") == [
        "SliceRefused pool c: Unable to allocate resources: Invalid feature specification",
        "",
    ]
    assert [kernels.boots(name) for name in kernels.nodes] == before


def active(box: Box) -> tuple[str, str]:
    """Kernel of the nodes, and the other one."""
    found = box.ask("sinfo", "--noheader", "--format=%b")
    return found, "kernelA" if found == "kernelB" else "kernelB"


def test_a_lease_keeps_the_kernel_of_its_nodes(kernels: Box) -> None:
    kernel, _ = active(kernels)
    refused, ran = run(kernels, sys.executable, "-c", _LEASED, f"bare:kernel={kernel}").splitlines()
    assert refused == f"has nodes with kernel '{kernel}', not 'other'"
    assert "runs" in ran


def test_nodes_of_a_job_around_the_program_are_not_booted(kernels: Box) -> None:
    kernel, other = active(kernels)
    for asked, said in ((kernel, kernel), (other, "SliceRefused pool c: kernel ")):
        words = (sys.executable, "-c", _SLICE, "/proc/cmdline", f"bare:kernel={asked}", "1")
        around = run(kernels, "salloc", "--quiet", "--nodes=1", "--exclusive", *words)
        assert around.startswith(said), around
    assert "around this program did not boot it" in around


def test_a_node_that_does_not_come_back_is_named_and_nothing_is_held(kernels: Box) -> None:
    _, other = active(kernels)
    for name in kernels.nodes:
        (kernels.folder / name / "broken").touch()
    result, events = held(kernels, f"bare:kernel={other}", nodes=1)
    assert re.fullmatch(
        rf"SliceRefused pool c: n\d did not come back with kernel '{other}': reboot timed out",
        result,
    )
    assert re.fullmatch(rf"booting: n\d into {other}", events)
    assert kernels.ask("squeue", "--noheader") == ""
