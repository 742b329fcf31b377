"""What could not be found, what is lost by it, and the command that mends it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flowos.model import Facts, Missing
from flowos.probes._facts_tree import Tree, word

C_COMPILER = "C compiler"
OPENMP = "OpenMP"
MPI = "MPI"
BLAS = "BLAS library"
FIO = "fio"
BROWSER = "browser"
LIKWID = "likwid-bench"
MEMORY_SPEED = "nominal memory speed"
CLOCK = "nominal clock"
CACHES = "cache sizes"
INSTRUCTION_SETS = "instruction sets"
OFFLINE = "CPUs that are offline"

_INSTALL = (
    (r"debian|ubuntu", "apt install"),
    (r"fedora|rhel|centos", "dnf install"),
    (r"suse", "zypper install"),
    (r"arch", "pacman -S"),
    (r"alpine", "apk add"),
)
"""os-release's ID and ID_LIKE -> its package manager."""

_PACKAGES: Mapping[str, Mapping[str, str]] = {
    C_COMPILER: {"apt": "gcc libc6-dev", "apk": "gcc musl-dev", "": "gcc"},
    OPENMP: {"apt": "gcc libgomp1", "": "gcc"},
    MPI: {
        "apt": "openmpi-bin libopenmpi-dev",
        "dnf": "openmpi-devel",
        "zypper": "openmpi4-devel",
        "": "openmpi",
    },
    BLAS: {"apt": "libopenblas0-pthread", "": "openblas"},
    FIO: {"": "fio"},
    BROWSER: {"": "chromium"},
    LIKWID: {"": "likwid"},
}


@dataclass(frozen=True, slots=True)
class Installer:
    """Words the command that installs: the system's package manager, sudo where we are not root."""

    command: str
    sudo: str

    def line(self, packages: str) -> str:
        if not self.command:
            return f"install {packages} with your package manager"
        return f"{self.sudo}{self.command} {packages}"

    def of(self, what: str) -> str:
        names = _PACKAGES[what]
        return self.line(names.get(self.command.split(" ")[0], names[""]))


def installer_of(os_release: str, uid: object) -> Installer:
    ids = " ".join(re.findall(r'(?m)^ID(?:_LIKE)?="?([^"\n]*)', os_release)).lower()
    command = next((line for pattern, line in _INSTALL if re.search(pattern, ids)), "")
    return Installer(command, "" if uid == 0 else "sudo ")


def missing_of(
    facts: Facts, tree: Tree, raw: Mapping[str, Sequence[Mapping[str, object]]], by: Installer
) -> tuple[Missing, ...]:
    """All that is absent from the facts, what matters most first."""
    return (
        *_missing_programs(facts, by),
        *_broken(raw, by),
        *_missing_figures(facts, tree, by),
        *_not_allowed(facts),
    )


def _missing_programs(facts: Facts, by: Installer) -> Iterator[Missing]:
    c = [compiler for compiler in facts.compilers if compiler.language == "c"]
    tools = {tool.name for tool in facts.tools}
    losses = (
        (C_COMPILER, bool(c), "nothing can be measured: programs are compiled where they measure"),
        (OPENMP, any(each.openmp for each in c), "STREAM over threads is not measured"),
        (MPI, bool(facts.mpis), "message passing is not measured"),
        (BLAS, bool(facts.blas), "GEMM is not measured"),
        (FIO, "fio" in tools, "storage is not measured"),
        (BROWSER, "chromium" in tools, "the report is not tried in a browser by the tests"),
        (LIKWID, "likwid-bench" in tools, "STREAM is not compared with likwid-bench"),
    )
    for what, there, loses in losses:
        if not there:
            yield Missing(what=what, loses=loses, remedy=by.of(what))


def _broken(raw: Mapping[str, Sequence[Mapping[str, object]]], by: Installer) -> Iterator[Missing]:
    """What is there and does not work, with its own complaint."""
    for part, role in (("compilers", "compiler"), ("mpis", "MPI"), ("libraries", "BLAS library")):
        for entry in raw.get(part, ()):
            path = word(entry, "path") or word(entry, "compiler")
            if path and word(entry, "fails"):
                loses = f"this {role} is left out: {_first_line(word(entry, 'fails'))}"
                yield Missing(what=path, loses=loses, remedy=_repair(part, by))
            elif part == "mpis" and path and not word(entry, "starter"):
                loses = "this MPI is left out: no mpirun or mpiexec beside it"
                yield Missing(what=path, loses=loses, remedy=by.of(MPI))
            elif part == "compilers" and path and entry.get("openmp") is not True:
                loses = "this compiler builds nothing with threads: no OpenMP"
                yield Missing(what=path, loses=loses, remedy=_openmp(path, by))


def _repair(part: str, by: Installer) -> str:
    if part == "libraries":
        return "reinstall it, or leave it"
    return by.of(C_COMPILER if part == "compilers" else MPI)


def _openmp(path: str, by: Installer) -> str:
    """Debian has an OpenMP runtime for each version of clang."""
    match = re.search(r"/clang(?:\+\+)?(-\d+)?$", path)
    if not match:
        return by.of(OPENMP)
    return by.line(f"libomp{match[1] or ''}-dev" if "apt" in by.command else "libomp-devel")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"error|cannot|not found|No such", line)]
    return (wrong or lines or [""])[0][:160]


def _missing_figures(facts: Facts, tree: Tree, by: Installer) -> Iterator[Missing]:
    if facts.memory.bytes_per_second is None:
        yield Missing(
            what=MEMORY_SPEED,
            loses="no share of the nominal memory speed; the measured ceiling stays",
            remedy=_memory_remedy(facts, by),
        )
    if any(cpu.nominal_hz is None for cpu in facts.cpus):
        yield Missing(
            what=CLOCK,
            loses="no share of the nominal flop ceiling; the measured ceiling stays",
            remedy="flowos measure --nominal clock_hz=VALUE (the maker's highest clock)",
        )
    if not facts.caches:
        yield Missing(
            what=CACHES,
            loses="arrays are sized by memory alone; the working-set curve finds the caches",
            remedy="none needed",
        )
    if not facts.instruction_sets:
        yield Missing(
            what=INSTRUCTION_SETS,
            loses="the flop ceiling is not measured per instruction set",
            remedy="none: this processor's are not known to FlowOS",
        )
    if offline := tree.text("/sys/devices/system/cpu/offline"):
        yield Missing(
            what=OFFLINE,
            loses=f"CPUs {offline} are not used",
            remedy="echo 1 | sudo tee /sys/devices/system/cpu/cpuN/online",
        )


def _memory_remedy(facts: Facts, by: Installer) -> str:
    give = "flowos measure --nominal memory_bytes_per_second=VALUE"
    if facts.hypervisor or not by.sudo:
        return f"{give} (channels x transfers/s x 8)"
    return f"{give}; VALUE from: sudo dmidecode -t memory"


_NOT_ALLOWED = {
    "direct I/O": (
        "storage cannot be measured past the page cache in this folder",
        "choose a folder on a disk: flowos measure --scratch DIR",
    ),
    "io_uring": (
        "fio measures with libaio instead",
        "sudo sysctl kernel.io_uring_disabled=0 (in a container: allow it in its seccomp profile)",
    ),
    "cycle counter": (
        "no hardware counters; the clock is measured by dependent additions",
        "none in a virtual machine; else: sudo sysctl kernel.perf_event_paranoid=2",
    ),
    "memory files": ("arrays between processes are copied", "use a kernel of 3.17 or newer"),
    "pinning": ("threads wander between cores, so numbers scatter", "allow sched_setaffinity"),
}
"""What the collector tried -> what is lost where it fails, and what mends it."""


def _not_allowed(facts: Facts) -> Iterator[Missing]:
    for tried in facts.tried:
        if not tried.works:
            loses, remedy = _NOT_ALLOWED.get(tried.name, ("", ""))
            yield Missing(what=tried.name, loses=f"{loses} ({tried.says})", remedy=remedy)
