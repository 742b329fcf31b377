"""Collects raw facts of this machine, without interpreting them. Prints one JSON object.

usage: python collect.py [--scratch DIR] [--deps DIR] [--root DIR] [--kept]

Standard library only, Python 3.8 or newer, imports nothing of flowos: it runs where it measures.
  uname, uid, cpu_count
  files      path -> text of what the kernel says (procfs, sysfs, the cgroups on our path)
  binaries   path -> hexadecimal (the SMBIOS table, where we may read it)
  commands   what lscpu says (it asks the processor for the hypervisor's name)
  tried      what the kernel lets us do: name -> {"works": bool, "says": text}
  storage    {"folder", "free_bytes"} of what --scratch names, links resolved
  and the lists of collect_software.py, which runs meanwhile.
--scratch DIR is tried for unbuffered files; --deps DIR is an unpacked root to look below, too.
--kept is handed on to it, with standard input.
--root DIR reads only the files, from the dump of another machine.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MAX_BYTES = 4 << 20
SOFTWARE_SECONDS = 55.0
"""More than program_output.py ever gives."""
LSCPU_SECONDS = 3.0

FILES = (
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/driver/nvidia/gpus/*/information",
    "/proc/driver/nvidia/gpus/*/numa_status",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/infiniband/*/ports/*/link_layer",
    "/sys/class/infiniband/*/ports/*/rate",
    "/sys/class/infiniband/*/ports/*/state",
    "/sys/class/kfd/kfd/topology/nodes/*/name",
    "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/*/ndbus*/region*/dax*/target_node",
    "/sys/devices/cpu_atom/cpus",
    "/sys/devices/cpu_core/cpus",
    "/sys/devices/system/cpu/offline",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/node[0-9]*/access[01]/initiators/node[0-9]*/cpulist",
    "/sys/devices/system/node/node[0-9]*/access[01]/initiators/read_bandwidth",
    "/sys/devices/system/node/node[0-9]*/cpulist",
    "/sys/devices/system/node/node[0-9]*/distance",
    "/sys/devices/system/node/node[0-9]*/meminfo",
    "/sys/firmware/devicetree/base/model",
    "/sys/hypervisor/type",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
OF_EACH_CPU = (
    "cpu_capacity",
    "cpufreq/cpuinfo_max_freq",
    "topology/core_id",
    "topology/core_siblings_list",
    "topology/die_id",
    "topology/physical_package_id",
    "topology/thread_siblings_list",
)
OF_EACH_CACHE = ("coherency_line_size", "level", "shared_cpu_list", "size", "type")
OF_EACH_GROUP = (
    "cpu.cfs_period_us",
    "cpu.cfs_quota_us",
    "cpu.max",
    "memory.limit_in_bytes",
    "memory.max",
)
BINARIES = ("/sys/firmware/dmi/tables/DMI", "/sys/firmware/dmi/entries/17-*/raw")
DISPLAY, ACCELERATOR = "0x03", "0x12"

IO_URING_SETUP = 425
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
PERF_HARDWARE_CYCLES = (0, 0)
PERF_EXCLUDE_KERNEL_AND_HYPERVISOR = (1 << 5) | (1 << 6)


# --- files -----------------------------------------------------------------------------------


def read(root: Path, path: str) -> bytes | None:
    try:
        with (root / path[1:]).open("rb") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return None


def matching(root: Path, patterns: Iterable[str]) -> list[str]:
    """The paths under the root that match these patterns, without the root."""
    return [f"/{hit.relative_to(root)}" for each in patterns for hit in sorted(root.glob(each[1:]))]


def names(folder: Path, pattern: str) -> list[str]:
    try:
        return [each.name for each in folder.iterdir() if re.fullmatch(pattern, each.name)]
    except OSError:
        return []


def cpu_paths(root: Path) -> Iterable[str]:
    cpus = "/sys/devices/system/cpu"
    for cpu in names(root / cpus[1:], r"cpu\d+"):
        for name in OF_EACH_CPU:
            yield f"{cpus}/{cpu}/{name}"
        for index in names(root / cpus[1:] / cpu / "cache", r"index\d+"):
            for name in OF_EACH_CACHE:
                yield f"{cpus}/{cpu}/cache/{index}/{name}"


def cgroup_paths(ours: str, mounts: str) -> Iterable[str]:
    """The limits of every group from the mount down to ours, in each hierarchy of v1 and v2."""
    path_of: dict[str, str] = {}
    for line in ours.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        path_of.update((controller, path) for controller in controllers.split(","))
    for line in mounts.splitlines():
        words = line.split()
        if not re.search(r" - cgroup2? ", line) or len(words) < 10:
            continue
        options = [""] if " - cgroup2 " in line else words[-1].split(",")
        group = next((path_of[o] for o in options if o in path_of), None)
        if group is not None:
            yield from group_files(words[4], words[3], group)


def group_files(mount: str, mount_root: str, path: str) -> Iterable[str]:
    if mount_root != "/" and f"{path}/".startswith(f"{mount_root}/"):
        path = path[len(mount_root) :]
    steps = [step for step in path.split("/") if step not in ("", "..")]
    for depth in range(len(steps) + 1):
        for name in OF_EACH_GROUP:
            yield "/".join([mount, *steps[:depth], name])


def texts(root: Path, paths: Iterable[str]) -> dict[str, str]:
    contents = {path: read(root, path) for path in paths}
    return {
        path: content.decode("utf-8", "replace").rstrip("\0\n")
        for path, content in contents.items()
        if content is not None
    }


def all_files(root: Path) -> dict[str, str]:
    files = texts(root, matching(root, FILES))
    files.update(texts(root, cpu_paths(root)))
    groups, mounts = (files.get(f"/proc/self/{name}", "") for name in ("cgroup", "mountinfo"))
    files.update(texts(root, cgroup_paths(groups, mounts)))
    devices = texts(root, matching(root, ("/sys/bus/pci/devices/*/class",)))
    for path, kind in devices.items():
        if kind.startswith((DISPLAY, ACCELERATOR)):
            folder = path[: -len("class")]
            files.update(texts(root, [path, folder + "vendor", folder + "device"]))
    return files


def binaries(root: Path) -> dict[str, str]:
    contents = {path: read(root, path) for path in matching(root, BINARIES)}
    return {path: content.hex() for path, content in contents.items() if content}


# --- what the kernel lets us do --------------------------------------------------------------


def tried(action: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"works": True, "says": action()}
    except (OSError, AttributeError, KeyError) as error:
        says = (
            error.strerror if isinstance(error, OSError) else f"this Python or kernel lacks {error}"
        )
        return {"works": False, "says": says or str(error)}


def system_call(number: int, *arguments: Any) -> int:
    """Returns a file descriptor. Raises OSError if the call fails."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    found = call(ctypes.c_long(number), *arguments)
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(found)


def io_uring() -> str:
    os.close(system_call(IO_URING_SETUP, ctypes.c_long(4), ctypes.create_string_buffer(120)))
    return ""


def cycle_counter() -> str:
    """perf_event_open of the hardware's cycle counter for ourselves, user space only."""
    attributes = (ctypes.c_uint64 * 14)()
    kind, attributes[1] = PERF_HARDWARE_CYCLES
    attributes[0] = kind | (ctypes.sizeof(attributes) << 32)
    attributes[5] = PERF_EXCLUDE_KERNEL_AND_HYPERVISOR
    here, any_cpu, no_group = ctypes.c_long(0), ctypes.c_long(-1), ctypes.c_long(-1)
    number = PERF_EVENT_OPEN[os.uname().machine]
    os.close(system_call(number, attributes, here, any_cpu, no_group, ctypes.c_long(0)))
    return ""


def direct_io(folder: str) -> str:
    """Write and read one block past the page cache in this folder."""
    handle, path = tempfile.mkstemp(dir=folder, prefix=".flowos-")
    os.close(handle)
    block = mmap.mmap(-1, 4096)
    try:
        handle = os.open(path, os.O_RDWR | os.O_DIRECT)
        try:
            os.write(handle, block)
            os.preadv(handle, [block], 0)
        finally:
            os.close(handle)
    finally:
        Path(path).unlink()
    room = os.statvfs(folder)
    return f"{room.f_bavail * room.f_frsize / 1e9:.1f} GB free"


def storage(folder: str) -> dict[str, Any]:
    """Path and free bytes; a file system that counts no blocks, such as ramfs, has no size."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return {}
    free = {"free_bytes": room.f_bavail * room.f_frsize} if room.f_blocks else {}
    return {"folder": os.path.realpath(folder), **free}


def memory_file() -> str:
    os.close(os.memfd_create("flowos"))
    return ""


def pinning() -> str:
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    return ""


def all_tried(scratch: str) -> dict[str, Any]:
    return {
        "direct I/O": tried(lambda: direct_io(scratch)),
        "io_uring": tried(io_uring),
        "cycle counter": tried(cycle_counter),
        "memory files": tried(memory_file),
        "pinning": tried(pinning),
    }


# --- all together ----------------------------------------------------------------------------


def start_software(deps: str, kept: bool) -> subprocess.Popen[bytes]:
    program = str(Path(__file__).with_name("collect_software.py"))
    words = [sys.executable, program, "--deps", deps, *(["--kept"] if kept else [])]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def software(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    try:
        said, complaint = child.communicate(timeout=SOFTWARE_SECONDS)
        return dict(json.loads(said or complaint))
    except (subprocess.TimeoutExpired, ValueError) as error:
        child.kill()
        return {"software_fails": str(error)}


def lscpu() -> str:
    words, environment = ["lscpu"], dict(os.environ, LC_ALL="C")
    try:
        said = subprocess.run(words, stdout=subprocess.PIPE, env=environment, timeout=LSCPU_SECONDS)
        return said.stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


def of_this_machine(scratch: str) -> dict[str, Any]:
    """Facts that are not in a dump."""
    return {
        "uname": list(os.uname()),
        "uid": os.geteuid(),
        "cpu_count": os.cpu_count(),
        "commands": {"lscpu": lscpu()},
        "tried": all_tried(scratch),
        "storage": storage(scratch),
    }


def main() -> None:
    options = argparse.ArgumentParser(description="Collect what is to be known of this machine.")
    options.add_argument("--scratch", default=tempfile.gettempdir(), metavar="DIR")
    options.add_argument("--deps", default="", metavar="DIR")
    options.add_argument("--root", default="", metavar="DIR")
    options.add_argument("--kept", action="store_true")
    asked = options.parse_args()
    root = Path(asked.root or "/").resolve()
    answer: dict[str, Any] = {}
    if asked.root:
        answer.update(files=all_files(root), binaries=binaries(root))
    else:
        child = start_software(asked.deps, asked.kept)
        answer.update(
            of_this_machine(asked.scratch), files=all_files(root), binaries=binaries(root)
        )
        answer.update(software(child))
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
