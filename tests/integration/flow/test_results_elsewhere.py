"""Kept results on nodes that are not this machine, which another node of the same kind finds."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import flowos as fo
from flowos.engine import (
    HeldSlice,
    Here,
    PreparedLaunch,
    SliceOptions,
    SliceUsage,
    here,
    open_slice,
    processor_lines,
    provider_of,
)
from flowos.engine._ray_slice import _AllNodes
from flowos.engine.cluster._node_files import NodeFiles, StagedFiles
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.launch._session import Elsewhere as Away
from flowos.engine.launch._session import LaunchSession
from flowos.engine.local._fake_provider import FakeNode
from flowos.engine.ray._ray_cluster import RayCluster
from flowos.model import Ask, Environment, Launch, LaunchFailed, Pairs, Pool
from tests.integration.flow.kept_tasks import logged
from tests.waiting import PATIENCE_SECONDS, comes


class Elsewhere(Here):
    """This machine as another node, with a PATH of its own; it is asked as those of a cluster."""

    is_here = False
    unreachable, starts = "", True

    def __init__(self, folder: Path, name: str = "n1") -> None:
        super().__init__(name)
        self._programs, shared = folder / "bin", folder / "shared"
        self._programs.mkdir(parents=True)
        shared.mkdir()
        self._session = LaunchSession(Away(lambda: shared, cpus=1))
        self._runtimes = Runtimes(self._session)
        self.files = NodeFiles(self, StagedFiles(shared, SharedCopies(lambda: shared)))

    def install(self, text: str) -> None:
        tool = self._programs / "tool"
        tool.write_text(f"#!/bin/sh\necho {text}\n")
        tool.chmod(0o755)

    def variables(self, env: Environment, task: Pairs = (), *, inherit: bool = True) -> Pairs:
        found = dict(super().variables(env, task, inherit=inherit))
        return tuple({**found, "PATH": f"{self._programs}:{found['PATH']}"}.items())

    def prepare(self, launch: Launch, **options: Any) -> PreparedLaunch:
        if not self.starts:
            raise LaunchFailed("nothing starts there")
        return super().prepare(launch, **options)

    def why_unreachable(self, ending_seconds: float = 0.0) -> str:  # noqa: ARG002
        return self.unreachable

    def architecture(self) -> str:
        return self.files.processor()[0]

    def compile_target(self) -> str:
        return self.files.processor()[1]

    def command_file_digests(self, argv: Sequence[str], path: str | None) -> tuple[bytes, ...]:
        return self.files.command_file_digests(argv, path)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Elsewhere]:
    node = Elsewhere(tmp_path / "there")
    yield node
    node.files.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Elsewhere]:
    other = Elsewhere(tmp_path / "other", "n2")
    yield other
    other.files.close()


def run(flow: fo.Flow, node: Here, journal: Path, *values: object) -> tuple[object, int]:
    """What it gives, and how many results were found."""
    used: list[SliceUsage] = []
    options = SliceOptions(journal=journal, on_usage=used.append)
    with open_slice(flow, node, options) as opened:
        return opened.run(*values), used[0].hits


def test_a_node_says_what_it_is_and_reads_its_files(node: Elsewhere, tmp_path: Path) -> None:
    node.install("one")
    assert node.architecture() == here().architecture()
    assert node.compile_target() == processor_lines()
    (data := tmp_path / "data").write_text("data")
    words, path = ["tool", str(data), "word"], dict(node.variables(fo.environment("bare")))["PATH"]
    assert node.command_file_digests(words, path) == here().command_file_digests(words, path)
    assert len(node.command_file_digests(words, path)) == 2
    shell = here().command_file_digests(["sh"], "/bin:/usr/bin")
    assert node.command_file_digests(["sh"], None) == shell
    assert node.command_file_digests([], None) == ()


def test_a_node_says_of_files_what_this_machine_would(
    node: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.install("one")
    programs = dict(node.variables(fo.environment("bare")))["PATH"]
    monkeypatch.setenv("PATH", programs)
    for asked in (node, here()):
        assert asked.command_file_digests(["tool"], programs)
        assert asked.command_file_digests(["tool"], None) == ()
        assert asked.command_file_digests(["sh"], None)
        with pytest.raises(OSError, match=r"Input/output error") as found:
            asked.command_file_digests(["none", "/proc/self/mem"], None)
        assert not isinstance(found.value, fo.TaskFailed)


def test_what_a_lost_neighbour_cannot_be_asked_is_lost_with_that_one(
    node: Elsewhere, other: Elsewhere, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("one")
    other.starts, other.unreachable = False, "; node n2 is lost"
    with pytest.raises(fo.WorkerLost, match=r"n2 cannot be asked .*; node n2 is lost") as found:
        node.files.stage_in(tmp_path / "file", [other.files])
    assert found.value.node == "n2"


def test_a_node_whose_worker_ends_while_it_is_asked_is_the_one_that_was_lost(
    other: Elsewhere, tmp_path: Path
) -> None:
    with (large := tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    assert other.architecture()
    assert other.files._lanes is not None
    (lane,) = other.files._lanes.lanes
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(other.command_file_digests, ["none", str(large)], None)
        assert comes(lambda: not lane.is_ready)
        other.starts, other.unreachable = False, "; node n2 is lost"
        assert lane._worker is not None
        lane._worker.kill()
        with pytest.raises(fo.WorkerLost, match="node n2 is lost") as found:
            asked.result(PATIENCE_SECONDS)
    assert found.value.node == "n2"


def test_a_result_is_found_until_the_program_on_the_node_is_another(
    node: Elsewhere, tmp_path: Path
) -> None:
    flow, journal = fo.flow_output(fo.command(["tool"], stdout="said")()), tmp_path / "journal"
    node.install("one")
    assert [run(flow, node, journal) for _ in range(2)] == [(["one\n"], 0), (["one\n"], 1)]
    node.install("other")
    assert [run(flow, node, journal) for _ in range(2)] == [(["other\n"], 0), (["other\n"], 1)]
    node.install("third")
    with open_slice(flow, node, SliceOptions(journal=journal)) as opened:
        assert opened.notes == (
            "task 'tool' runs again: a file of its command changed; 2 results of before are in "
            f"journal {journal}",
        )
    shutil.rmtree(journal / "tasks")  # as an older FlowOS keeps none
    node.install("fourth")
    with open_slice(flow, node, SliceOptions(journal=journal)) as opened:
        assert opened.notes == (
            "task 'tool' runs again: its code, what that names, Python, the image or node n1 "
            f"changed; 2 results of before are in journal {journal}",
        )


def test_what_this_machine_computed_serves_a_node_of_its_kind(
    node: Elsewhere, tmp_path: Path
) -> None:
    flow = fo.flow_output(logged(fo.flow_input("x", fo.int64), str(tmp_path / "log")))
    assert run(flow, here(), tmp_path / "journal", 1) == ([10], 0)
    assert run(flow, node, tmp_path / "journal", 1) == ([10], 1)


def test_a_node_on_which_nothing_starts_is_refused_unless_it_is_lost(
    node: Elsewhere, tmp_path: Path
) -> None:
    flow = fo.flow_output(fo.command(["tool"], stdout="said")())
    node.starts = False
    refused = r"task 'tool' cannot be kept: node n1 cannot be asked about .*nothing starts there; c"
    with pytest.raises(fo.SliceRefused, match=refused):
        run(flow, node, tmp_path / "journal")
    node.unreachable = "; node n1 is lost"
    with pytest.raises(fo.WorkerLost, match="nothing starts there; node n1 is lost"):
        run(flow, node, tmp_path / "journal")


def test_all_nodes_of_a_ray_count_for_what_any_of_them_computes() -> None:
    """By the kinds that there are, in any order; as this machine where nothing says of others."""
    one, other = Here("one"), Here("other")
    other.architecture, other.compile_target = lambda: "other", lambda: "model: b"  # type: ignore[method-assign]
    ours = here().architecture()
    for nodes, said in (
        ((), (ours, "")),
        ((one, one), (ours, "")),
        ((one, other), (" ".join(sorted((ours, "other"))), "model: b")),
        ((other, one, other), (" ".join(sorted((ours, "other"))), "model: b")),
    ):
        ray = _AllNodes(cast(RayCluster, SimpleNamespace(nodes=nodes)))
        assert (ray.architecture(), ray.compile_target().strip()) == said


def test_nodes_of_a_slice_take_results_of_their_own_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"apart-1": "x86_64", "apart-2": "aarch64", "apart-3": "x86_64"}
    monkeypatch.setattr(FakeNode, "architecture", lambda node: kinds[node.name])
    flow = fo.flow_output(logged(fo.flow_input("x", fo.int64), str(tmp_path / "log")))
    pool = Pool(name="apart", kind="fake", nodes=3, cores=1)
    used: list[SliceUsage] = []
    options = SliceOptions(journal=tmp_path / "journal", on_usage=used.append)
    with HeldSlice(provider_of(pool), Ask(nodes=3), options) as held:
        for on in held.opened(flow):
            assert [on.run(1) for _ in range(2)] == [[10], [10]]
    assert {each.node: each.hits for each in used} == {"apart-1": 1, "apart-2": 1, "apart-3": 2}
    assert (tmp_path / "log").read_text().splitlines() == ["1", "1"]
