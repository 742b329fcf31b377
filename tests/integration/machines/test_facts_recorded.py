"""Facts of the machines that hwloc recorded, compared with hwloc's own output."""

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest.mock import patch

import pytest

from flowos.model import Facts, LogicalCpu
from flowos.probes.facts import read_facts

from .recorded import FOLDER, Cpus, Machine, expected, names, unpacked

COLLECTOR = Path(read_facts.__code__.co_filename).parent / "programs" / "collect.py"

MASKED = "the cpuset forbids memory of nodes: what the machine has is still listed"
HIDDEN = "its expectation was made with options that leave this out"
PHI = "the size of the memory-side cache is in a file that hwloc's own program writes as root"
CONTRADICTS = "one mask was falsified: hwloc drops what overlaps, we list what the kernel says"

EXCUSED: dict[tuple[str, str], str] = {
    ("16amd64-4n4c-cgroup-distance-merge", "caches"): HIDDEN,
    ("16amd64-4n4c-cgroup-distance-merge", "nodes"): MASKED,
    ("16amd64-8n2c-cpusets", "nodes"): MASKED,
    ("2i386-2c-nohugepage", "caches"): HIDDEN,
    ("2ps3-2t", "nodes"): "neither memory nor nodes were recorded",
    ("32amd64-4s2n4c-cgroup2", "nodes"): MASKED,
    ("40intel64-4n10c+pci-conflicts", "sockets"): CONTRADICTS,
    ("40intel64-4n10c+pci-conflicts", "caches"): CONTRADICTS,
    ("4em64t-2c2t-ignore-reorder", "caches"): HIDDEN,
    ("4em64t-2c2t-ignore-reorder", "nodes"): HIDDEN,
    ("4fake-4gr1nu1pu", "nodes"): MASKED,
    ("64amd64-4s2n4ca2co", "cores"): "Bulldozer's modules: the kernel says threads of one core",
    ("64intel64-fakeKNL-A2A-cache", "caches"): PHI,
    ("64intel64-fakeKNL-SNC4-hybrid", "caches"): PHI,
    ("8em64t-2s2ca2c-buggynuma", "nodes"): "its firmware gives every node all CPUs",
    ("8ia64-2s2c2t", "caches"): "the kernel gives each thread of a core its own caches",
}
"""What is read otherwise, and why: each of these is known to differ, so that none gets stale."""


@pytest.fixture(scope="module")
def recorded() -> None:
    if not names():
        pytest.fail(f"no recorded machines in {FOLDER}: tools/setup test fetches them")


def as_compared(facts: Facts) -> Machine:
    here = Cpus(facts.allowed)

    def shared(key: Callable[[LogicalCpu], int]) -> set[Cpus]:
        keys = {key(cpu) for cpu in facts.usable}
        return {Cpus(cpu.number for cpu in facts.usable if key(cpu) == k) for k in keys}

    return Machine(
        threads=shared(lambda cpu: cpu.number),
        cores=shared(lambda cpu: cpu.core),
        sockets=shared(lambda cpu: cpu.socket),
        nodes={
            node.number: (here.intersection(node.cpus), node.memory_bytes // 1024, node.kind)
            for node in facts.nodes
            if node.memory_bytes
        },
        caches={
            (cache.level, cache.kind, cache.size_bytes // 1024, here.intersection(cache.cpus))
            for cache in facts.caches
            if here.intersection(cache.cpus)
        },
    )


@cache
def collect() -> Callable[[], None]:
    """The collector's `main`: to start a Python for each machine takes as long as to read it."""
    found = spec_from_file_location("collect", COLLECTOR)
    assert found
    assert found.loader
    module = module_from_spec(found)
    found.loader.exec_module(module)
    main: Callable[[], None] = module.main
    return main


def read(root: Path) -> Facts:
    said = io.StringIO()
    words = [str(COLLECTOR), "--root", str(root)]
    with patch.object(sys, "argv", words), redirect_stdout(said):
        collect()()
    return read_facts(json.loads(said.getvalue()))


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("name", names() or ["none"])
def test_a_recorded_machine_is_read_as_hwloc_reads_it(name: str, tmp_path: Path) -> None:
    with unpacked(name, tmp_path) as root:
        ours, theirs = as_compared(read(root)), expected(name)
    everything = Cpus(cpu for each in theirs.threads for cpu in each)
    theirs.cores = theirs.cores or ours.cores  # a kernel that reports none: each thread is one
    theirs.sockets = theirs.sockets or {everything}
    for part in ("threads", "cores", "sockets", "nodes", "caches"):
        same = getattr(ours, part) == getattr(theirs, part)
        excuse = EXCUSED.get((name, part))
        assert same is (excuse is None), (part, excuse, getattr(ours, part), getattr(theirs, part))


@pytest.mark.usefixtures("recorded")
def test_only_recorded_machines_are_excused() -> None:
    assert {name for name, _ in EXCUSED} <= set(names())


@pytest.mark.usefixtures("recorded")
def test_the_only_node_that_is_online_has_its_own_cpus_and_memory_alone(tmp_path: Path) -> None:
    with unpacked("offline-cpu0-node0", tmp_path) as root:
        facts = read(root)
    (node,) = facts.nodes
    assert len(facts.cpus) == 17
    assert (node.number, len(node.cpus), node.memory_bytes) == (1, 8, 64 << 30)
