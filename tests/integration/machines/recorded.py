"""Machines that hwloc recorded, and what hwloc reads of them: both from its source package."""

import bz2
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).parents[3] / ".deps" / "hwloc"
Cpus = frozenset[int]

_ROOM_BYTES = 512 << 20
_LISTS = {
    "thread_siblings": "thread_siblings_list",
    "core_cpus": "thread_siblings_list",
    "core_siblings": "core_siblings_list",
    "package_cpus": "core_siblings_list",
    "shared_cpu_map": "shared_cpu_list",
    "cpumap": "cpulist",
}
_UNREAD = (
    "memory[0-9]*",
    "number_of_sets",
    "ways_of_associativity",
    "physical_line_partition",
    "power",
    "cpuidle",
)
"""A fourth of the recorded files, of which the collector reads none."""
_CACHES = {"i": "instruction", "d": "data", "": "unified"}
_MEMORIES = {"HBM": "HBM", "MCDRAM": "HBM", "NVM": "NVM", "GPUMemory": "GPU"}
_CPUSETS = (
    "dev/cpuset{}/cpus",
    "sys/fs/cgroup/cpuset{}/cpuset.cpus",
    "cgroup/unified{}/cpuset.cpus.effective",
)


@dataclass
class Machine:
    """What is compared. nodes: number -> CPUs, KiB, kind. caches: level, kind, KiB, CPUs."""

    threads: set[Cpus] = field(default_factory=set)
    cores: set[Cpus] = field(default_factory=set)
    sockets: set[Cpus] = field(default_factory=set)
    nodes: dict[int, tuple[Cpus, int, str]] = field(default_factory=dict)
    caches: set[tuple[int, str, int, Cpus]] = field(default_factory=set)


def names() -> list[str]:
    return sorted(file.name.removesuffix(".tar.bz2") for file in FOLDER.glob("*.tar.bz2"))


@contextmanager
def unpacked(name: str, folder: Path) -> Iterator[Path]:
    """As `_unpacked`, in memory where it has room: on a disk a tree's ten thousand files take
    many times as long to write and to remove."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < _ROOM_BYTES:
        yield _unpacked(name, folder)
        return
    with tempfile.TemporaryDirectory(prefix="flowos-recorded-", dir=memory) as place:
        yield _unpacked(name, Path(place))


def _unpacked(name: str, folder: Path) -> Path:
    """The recorded tree, with what hwloc does not record: masks of CPUs as lists too, as in kernels
    since 2.6.32, and the CPUs of our cpuset as in /proc/self/status."""
    archive = bz2.decompress((FOLDER / f"{name}.tar.bz2").read_bytes())
    left_out = [f"--exclude={name}" for name in _UNREAD]  # tarfile takes many times as long
    words = ("tar", "-x", "--no-same-owner", *left_out, "-C", str(folder))
    subprocess.run(words, input=archive, check=True)
    (root,) = folder.iterdir()
    for mask in (file for file in root.rglob("*") if file.name in _LISTS):
        as_list = mask.with_name(_LISTS[mask.name])
        as_list.write_text(_as_list(mask.read_text()))
    if cpus := _cpuset(root):
        (root / "proc/self/status").write_text(f"Cpus_allowed_list:\t{cpus}\n")
    return root


@cache
def _as_list(mask: str) -> str:
    """Most of a tree's thousands are the same."""
    return ",".join(map(str, sorted(_of_mask(mask)))) + "\n"


def _cpuset(root: Path) -> str:
    group = root / "proc/self/cpuset"
    if not group.exists():
        return ""
    files = (root / each.format(group.read_text().strip()) for each in _CPUSETS)
    return next((file.read_text().strip() for file in files if file.exists()), "")


def expected(name: str) -> Machine:
    """What hwloc's own test expects of this tree."""
    files = (FOLDER / f"{name}.{kind}output" for kind in ("kept.", "", "xml."))
    text = next(file for file in files if file.exists()).read_text()
    machine = Machine()
    objects = _xml_objects(text) if text.startswith("<?xml") else _objects(text.splitlines())
    _read(machine, list(objects))
    return machine


@dataclass
class _Object:
    kind: str
    number: int
    kilobytes: int
    memory: str = ""
    cpus: set[int] = field(default_factory=set)


def _objects(lines: list[str]) -> Iterator[_Object]:
    """Of lstopo's text: the CPUs of an object are those of the lines further in; those of a memory
    node are of what it hangs on."""
    above: list[tuple[int, _Object]] = []
    memory: list[tuple[_Object, _Object]] = []
    for line in lines:
        if line.startswith("depth "):
            break
        words = re.match(r" *(\w+)(?:\((\w+)\))?", line)
        number, size = (re.search(what, line) for what in (r"P#(\d+)", r"(?:local|size)=(\d+)KB"))
        depth = len(line) - len(line.lstrip())
        here = _Object(
            kind=words[1] if words else "",
            number=int(number[1]) if number else 0,
            kilobytes=int(size[1]) if size else 0,
            memory=_MEMORIES.get(words[2], "") if words else "",
        )
        above = [one for one in above if one[0] < depth]
        if here.kind == "PU":
            for each in (*(one for _, one in above), here):
                each.cpus.add(here.number)
        if here.kind == "NUMANode":
            memory.append((here, next(o for _, o in reversed(above) if o.kind != "MemCache")))
        above.append((depth, here))
        yield here
    for node, owner in memory:
        node.cpus = owner.cpus


def _xml_objects(text: str) -> Iterator[_Object]:
    for one in ElementTree.fromstring(text).iter("object"):
        size = int(one.get("local_memory") or one.get("cache_size") or 0) // 1024
        kind = "L1dCache" if one.get("type") == "L1Cache" else str(one.get("type"))
        cpus = _of_mask(one.get("cpuset") or "0")
        memory = _MEMORIES.get(one.get("subtype") or "", "")
        yield _Object(kind, int(one.get("os_index") or 0), size, memory, cpus)


def _of_mask(mask: str) -> set[int]:
    """The kernel's and hwloc's masks: words of 32 bits, the highest first."""
    words = [int(word or "0", 16) for word in mask.strip("\0\n").split(",")]
    return {
        32 * place + bit
        for place, word in enumerate(reversed(words))
        for bit in range(32)
        if word >> bit & 1
    }


def _read(machine: Machine, objects: list[_Object]) -> None:
    groups = {"PU": machine.threads, "Core": machine.cores, "Package": machine.sockets}
    for one in objects:
        cpus = frozenset(one.cpus)
        if one.kind in groups and cpus:
            groups[one.kind].add(cpus)
        elif one.kind == "NUMANode":
            gpus = one.memory == "GPU"  # hwloc places them by their PCI bus
            machine.nodes[one.number] = Cpus() if gpus else cpus, one.kilobytes, one.memory
        elif cpus and (cache := re.fullmatch(r"L(\d)([di]?)Cache", one.kind)):
            machine.caches.add((int(cache[1]), _CACHES[cache[2]], one.kilobytes, cpus))
