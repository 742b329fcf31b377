"""The key of a call: what its results depend on, and nothing else."""

import os
import statistics
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast
from unittest.mock import patch

import pytest

import flowos as fo
from flowos.engine import Node, here
from flowos.engine.flow._inside import Surroundings
from flowos.engine.results._call_key import CallKey
from flowos.model import BARE, Environment, Flow, Image, flow_output, gang
from flowos.plan import Stage, compile_flow


@dataclass
class Elsewhere:
    """What another node says of itself, and of files. digests: by word, or by the value of PATH."""

    machine: str = "x86_64"
    lines: str = "model: a"
    digests: dict[str, str] | None = None
    error: Exception | None = None

    def architecture(self) -> str:
        if self.error is not None:
            raise self.error
        return self.machine

    def compile_target(self) -> str:
        return self.lines

    def variables(self, *_: object, **__: object) -> tuple[tuple[str, str], ...]:
        return (("PATH", os.environ["PATH"]),)

    def command_file_digests(self, argv: Sequence[str], path: str | None) -> tuple[bytes, ...]:
        known = self.digests or {}
        return tuple(known[word].encode() for word in (str(path), *argv) if word in known)


def stage_key(stage: Stage, path: str = "/bin", **around: Any) -> CallKey:
    with patch.dict(os.environ, PATH=path):
        return CallKey(stage, Surroundings(**{"node": here(), **around}))


def key(
    task: Any,
    *values: object,
    env: Environment = BARE,
    path: str = "/bin",
    node: Elsewhere | None = None,
) -> bytes:
    ports = [fo.flow_input(port.name, port.type) for port in task.inputs]
    made = task(*ports)
    flow = made if isinstance(made, Flow) else flow_output(made)
    (stage,) = compile_flow(flow, fuse="none").stages
    at = here() if node is None else cast(Node, node)
    return stage_key(stage, path, env=env, node=at)(values)


def in_image(digest: str, **more: Any) -> Environment:
    image = Image(form="squashfs", digest=f"sha256:{digest}", source=PurePath("/image"))
    return Environment(image=image, runtime="bwrap", **more)


@fo.task
def add(x: fo.any_, y: fo.any_) -> fo.any_:
    return x + y


def plus(x: Any, y: Any) -> Any:
    return x + y


def test_inputs_count_by_their_place_and_type() -> None:
    calls = [(1, 2), (2, 1), (1, 2.0), (True, 2), ("1", 2), ((1, 2), ()), ((1,), (2,))]
    assert len({key(add, *values) for values in calls}) == len(calls)
    assert key(add, [1], {}) == key(add, [1], {})


def test_the_name_of_a_task_does_not_count_and_its_outputs_do() -> None:
    ports = {"iport_nametypes": (fo.any_, fo.any_), "fun": plus}
    one = fo.task({**ports, "task_name": "one", "oport_nametypes": fo.any_})
    other = fo.task({**ports, "task_name": "other", "oport_nametypes": fo.any_})
    typed = fo.task({**ports, "task_name": "one", "oport_nametypes": fo.int64})
    assert key(one, 1, 2) == key(other, 1, 2)
    assert key(one, 1, 2) != key(typed, 1, 2)


def test_needs_retries_and_limits_do_not_count_and_a_version_does() -> None:
    before = key(fo.task(plus_typed()), 1, 2)
    assert key(fo.task(plus_typed(), needs=fo.Needs(cores=2), retries=3), 1, 2) == before
    assert key(fo.task(plus_typed(), cache=True), 1, 2) == before
    versions = {key(fo.task(plus_typed(), cache=name), 1, 2) for name in ("v1", "v2")}
    assert len({before, *versions}) == 3


def plus_typed() -> Any:
    def plus(x: fo.any_, y: fo.any_) -> fo.any_:
        return x + y

    return plus


def test_the_image_and_its_variables_count_and_its_runtime_does_not() -> None:
    seen = {
        key(add, 1, 2),
        key(add, 1, 2, env=in_image("a")),
        key(add, 1, 2, env=in_image("b")),
        key(add, 1, 2, env=in_image("a", variables=(("A", "1"),))),
    }
    assert len(seen) == 4
    assert key(add, 1, 2, env=in_image("a", binds=(("/x", "/y"),))) in seen


def test_the_version_of_python_counts_for_python_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    command = fo.command(["true"], stdout="said")
    before = key(add, 1, 2), key(command)
    monkeypatch.setattr("sys.version_info", (3, 99, 0, "final", 0))
    assert key(add, 1, 2) != before[0]
    assert key(command) == before[1]


def test_keys_of_this_machine_are_what_they_were_so_that_old_results_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the version before nodes were asked wrote them, on a machine of this architecture."""
    monkeypatch.setattr("sys.version_info", (3, 11, 0, "final", 0))
    monkeypatch.setattr(type(here()), "architecture", lambda _: "x86_64")
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    ports = {"iport_nametypes": (("data", fo.any_),), "oport_nametypes": fo.any_}
    mean = fo.task({**ports, "task_name": "mean", "fun": statistics.mean})
    command, ranks = fo.command(["tool", "a"]), fo.Needs(ranks=2)
    inside, path = in_image("a", variables=(("A", "1"),)), str(tmp_path)
    found = [
        key(mean, [1, 2]),
        key(mean, [1, 2], env=inside),
        key(command, path=path),
        key(fo.command(["none", "/dev/null"]), env=inside, path=path),
        key(gang(fo.command(["tool", "a"], needs=ranks), mpi="mpich"), path=path),
    ]
    assert [each.hex() for each in found] == [
        "f4ae284e06d051bf7b82751c8ab18d2a82f91b93bc1f2f9a36bb1727d3cc1225",
        "60f1d11819c793449a566d7004a8274a658c2cd70a64eaed04a0a0d6df822bc2",
        "6d18cab5d1f624fd86dd0329436704bf6318858d1f60e61c82842b22b36a7be6",
        "6e589211eaa87605d8f536ea889a40ca1328757e81cd3c75e4ddce256a586edc",
        "8415d2b4c9e51e2c48ff47e5833c70189dab713356764a6f0514ed60e0b2d349",
    ]


def test_the_architecture_of_the_node_counts_and_its_name_does_not() -> None:
    command = fo.command(["none"], stdout="said")
    for task, values in ((add, (1, 2)), (command, ())):
        same = Elsewhere(here().architecture())
        assert key(task, *values, node=same) == key(task, *values)
        machines = ("x86_64", "aarch64")
        assert len({key(task, *values, node=Elsewhere(each)) for each in machines}) == 2


def test_the_processor_of_another_node_counts_for_code_that_is_compiled_there_alone() -> None:
    vector = fo.array(fo.float64, ("n",))
    code = 'extern "C" int f(const double* x, long n, double* y) { return 0; }'
    compiled = fo.cxx(code, "f", inputs={"x": vector}, outputs={"y": vector})
    nodes = [Elsewhere(lines=lines) for lines in ("", "model: a", "model: b")]
    assert len({key(compiled, 1, node=node) for node in nodes}) == 3
    assert len({key(add, 1, 2, node=node) for node in nodes}) == 1
    assert len({key(fo.command(["none"]), node=node) for node in nodes}) == 1


@pytest.mark.parametrize(("language", "program"), [("r", "Rscript"), ("julia", "julia")])
def test_the_program_of_a_language_counts_as_the_node_has_it(language: str, program: str) -> None:
    vector = fo.array(fo.float64, ("n",))
    define = getattr(fo, language)
    task = define("f = 1\n", "f", inputs={"x": vector}, outputs={"y": vector})
    nodes = [Elsewhere(digests=each) for each in ({}, {program: "1"}, {program: "2"})]
    assert len({key(task, 1, node=node) for node in nodes}) == 3
    assert len({key(add, 1, 2, node=node) for node in nodes}) == 1
    other = define("f = 2\n", "f", inputs={"x": vector}, outputs={"y": vector})
    assert key(task, 1) != key(other, 1)


def test_files_of_a_command_count_as_the_node_has_them() -> None:
    command = fo.command(["tool", "/etc/passwd"])
    said = [{}, {"/there": "1"}, {"/there": "2"}, {"/there": "1", "/etc/passwd": "3"}]
    nodes = [Elsewhere(digests=each) for each in said]
    assert len({key(command, path="/there", node=node) for node in nodes}) == len(nodes)


def test_a_node_that_cannot_be_asked_is_refused_and_a_lost_one_is_lost() -> None:
    why = r"slice: results of task 'add' cannot be kept: no way; cache=False leaves the task out"
    with pytest.raises(fo.SliceRefused, match=why):
        key(add, 1, 2, node=Elsewhere(error=fo.TaskFailed("no way")))
    with pytest.raises(fo.WorkerLost, match="gone"):
        key(add, 1, 2, node=Elsewhere(error=fo.WorkerLost("gone")))


def test_all_that_makes_a_command_line_counts(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    commands: list[Any] = [
        fo.command(["tool", "a"]),
        fo.command(["tool", "b"]),
        fo.command(["tool", "a", "b"]),
        fo.command(["tool", "ab"]),
        fo.command(["tool", ("a", "b")]),
        fo.command(["tool", "a"], variables={"A": "1"}),
        fo.command(["tool", "a"], inherit=False),
        fo.command(["tool", "a"], stderr="stderr"),
        gang(fo.command(["tool", "a"]), mpi="openmpi"),
        gang(fo.command(["tool", "a"]), mpi="mpich"),
        gang(fo.command(["tool", "a"], needs=fo.Needs(ranks=2)), mpi="mpich"),
    ]
    assert len({key(each, path=str(tmp_path)) for each in commands}) == len(commands)
    before = key(commands[0], path=str(tmp_path))
    assert key(commands[0]) != before  # there is no such program elsewhere
    assert key(fo.command(["tool", "a"], limit_seconds=9), path=str(tmp_path)) == before
    tool.write_text("#!/bin/sh\nexit\n")
    assert key(commands[0], path=str(tmp_path)) != before


def test_which_outputs_are_read_counts() -> None:
    @fo.task
    def both(x: fo.int64) -> tuple[int, int]:
        return x, x + 1

    x = fo.flow_input("x", fo.int64)
    first, second = both(x)
    flows = [flow_output(first), flow_output(second), flow_output(first, second)]
    stages = [compile_flow(flow, fuse="none").stages[0] for flow in flows]
    assert len({stage_key(stage)([1]) for stage in stages}) == 3


def test_a_file_that_is_gone_is_refused_by_name(tmp_path: Path) -> None:
    @fo.task
    def size(path: fo.File) -> fo.int64:
        return path.stat().st_size

    with pytest.raises(fo.ValueRefused, match=r"task 'size', input 'path': .*No such file"):
        key(size, tmp_path / "none")


def call_key(task: Any) -> CallKey:
    (stage,) = compile_flow(flow_output(task(fo.flow_input("x", fo.any_))), fuse="none").stages
    return stage_key(stage)


def own_task(source: str) -> Any:
    space: dict[str, Any] = {"__name__": "own_watched"}
    exec(source, space)
    ports = {"iport_nametypes": (("x", fo.any_),), "oport_nametypes": fo.any_}
    return fo.task({**ports, "task_name": "t", "fun": space["f"]}), space


def test_a_name_with_another_value_while_the_slice_is_open_counts_for_this_slice_alone() -> None:
    task, space = own_task("W = 2\ndef g(x): return W * x\ndef f(x): return g(x)")
    open_key = call_key(task)
    before = open_key([1])
    space["W"] = 30
    changed = open_key([1])
    assert changed == open_key([1])
    fresh = call_key(task)([1])
    assert len({before, changed, fresh}) == 3  # workers of the open slice may have the 2
    space["W"] = 2
    assert open_key([1]) == before


def test_an_equal_value_and_what_the_task_sets_itself_change_nothing() -> None:
    task, space = own_task(
        "W, M = [1], None\ndef f(x):\n  global M\n  M = M or object()\n  return W, M, x"
    )
    open_key = call_key(task)
    before = open_key([1])
    space["W"] = [1]
    assert open_key([1]) == before
    space["f"](1)
    assert open_key([1]) == before


def test_a_value_without_a_digest_is_never_found_and_ends_no_run() -> None:
    task, space = own_task("W = 2\ndef f(x): return W, x")
    open_key = call_key(task)
    space["W"] = threading.Lock()
    first = open_key([1])
    space["W"] = threading.Lock()
    assert first != open_key([1])
