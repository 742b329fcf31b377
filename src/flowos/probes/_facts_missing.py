"""What could not be found, what is lost without it, and the command that mends it."""

import re
from collections.abc import Iterator, Mapping, Sequence

from flowos._dataclasses import dataclass
from flowos.model import Argv, Facts, Missing, Tried
from flowos.probes._facts_tree import Tree, word
from flowos.probes._measure_command import measure_command

C_COMPILER = "C compiler"
OPENMP = "OpenMP"
MPI = "MPI"
BLAS = "BLAS library"
FIO = "fio"
TORCH = "PyTorch"
BROWSER = "browser"
LIKWID = "likwid-bench"
PERFTEST = "perftest"
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
    PERFTEST: {"": "perftest"},
}

Raw = Mapping[str, Sequence[Mapping[str, object]]]
"""What was collected: "compilers", "mpis", "libraries", "tools"."""
_FOUND_AMONG = {C_COMPILER: "compilers", OPENMP: "compilers", MPI: "mpis", BLAS: "libraries"}
_FOUND_AS = {BROWSER: "chromium", PERFTEST: "ib_write_bw"}
"""The name of a tool, where it is another."""
_LATE = re.compile("no answer in|not looked at")
"""Of what program_output.py says of a program that had too little time."""
_LATER = "look again when the machine is less busy"
NOT_IN_TIME = Missing(
    what="software",
    loses="compilers, MPIs, libraries and tools were not found in time: little can be measured",
    remedy=_LATER,
)


@dataclass(frozen=True, slots=True)
class Remedies:
    """Writes commands: with the system's package manager, with sudo if we are not root.

    of_pool: as of `measure_command`.
    """

    command: str
    sudo: str
    of_pool: Argv

    def measure(self, *options: str) -> str:
        return measure_command(*options, of_pool=self.of_pool)

    def line(self, packages: str) -> str:
        if not self.command:
            return f"install {packages} with your package manager"
        return f"{self.sudo}{self.command} {packages}"

    def of(self, what: str) -> str:
        names = _PACKAGES[what]
        return self.line(names.get(self.command.split(" ")[0], names[""]))


def remedies_for(os_release: str, uid: object, of_pool: Argv) -> Remedies:
    ids = " ".join(re.findall(r'(?m)^ID(?:_LIKE)?="?([^"\n]*)', os_release)).lower()
    command = next((line for pattern, line in _INSTALL if re.search(pattern, ids)), "")
    return Remedies(command, "" if uid == 0 else "sudo ", of_pool)


def missing_of(facts: Facts, tree: Tree, raw: Raw, by: Remedies) -> tuple[Missing, ...]:
    """All that is missing in the facts, the most important first."""
    return (
        *_missing_programs(facts, raw, by),
        *_broken(raw, by),
        *_without_threads(facts, by),
        *missing_figures(facts, tree, by),
    )


def _missing_programs(facts: Facts, raw: Raw, by: Remedies) -> Iterator[Missing]:
    c = [compiler for compiler in facts.compilers if compiler.language == "c"]
    tools = {tool.name for tool in facts.tools}
    losses: tuple[tuple[str, bool, str], ...] = (
        (C_COMPILER, bool(c), "nothing can be measured: programs are compiled where they measure"),
        (OPENMP, any(each.openmp for each in c), "STREAM over threads is not measured"),
        (MPI, bool(facts.mpis), "message passing is not measured"),
        (BLAS, bool(facts.blas), "GEMM is not measured"),
        (FIO, "fio" in tools, "storage is not measured"),
        (BROWSER, "chromium" in tools, "the report is not tried in a browser by the tests"),
        (LIKWID, "likwid-bench" in tools, "STREAM is not compared with likwid-bench"),
    )
    if any(port.is_active for port in facts.rdma):
        losses = (*losses, (PERFTEST, "ib_write_bw" in tools, "RDMA is not measured"))
    for what, there, loses in losses:
        if not there:
            remedy = _LATER if _was_late(what, raw) else by.of(what)
            yield Missing(what=what, loses=loses, remedy=remedy)
    if facts.gpus and "torch" not in tools:
        remedy = "pip install torch, in a build for CUDA"
        yield Missing(what=TORCH, loses="GPUs are not measured", remedy=remedy)


def _was_late(what: str, raw: Raw) -> bool:
    """Whether something that it may be was there, and had too little time."""
    if what in _FOUND_AMONG:
        return any(map(_is_late, raw.get(_FOUND_AMONG[what], ())))
    name = _FOUND_AS.get(what, what)
    return any(_is_late(tool) for tool in raw.get("tools", ()) if word(tool, "name") == name)


def _is_late(entry: Mapping[str, object]) -> bool:
    return bool(_LATE.search(word(entry, "fails")))


def _broken(raw: Raw, by: Remedies) -> Iterator[Missing]:
    """What was found and does not work, with its own error message."""
    for part, role in (("compilers", "compiler"), ("mpis", "MPI"), ("libraries", "BLAS library")):
        for entry in raw.get(part, ()):
            path = word(entry, "path") or word(entry, "compiler")
            if path and word(entry, "fails"):
                loses = f"this {role} is left out: {_first_line(word(entry, 'fails'))}"
                repair = _LATER if _is_late(entry) else _repair(part, by)
                yield Missing(what=path, loses=loses, remedy=repair)
            elif part == "mpis" and path and not word(entry, "mpirun"):
                loses = "this MPI is left out: no mpirun or mpiexec next to it"
                yield Missing(what=path, loses=loses, remedy=by.of(MPI))


def _repair(part: str, by: Remedies) -> str:
    if part == "libraries":
        return "reinstall it, or leave it"
    return by.of(C_COMPILER if part == "compilers" else MPI)


def _without_threads(facts: Facts, by: Remedies) -> Iterator[Missing]:
    """Families of compilers none of which has OpenMP (Debian has one runtime for all clangs)."""
    c = [compiler for compiler in facts.compilers if compiler.language == "c"]
    threaded = {compiler.family for compiler in c if compiler.openmp}
    for compiler in c:
        if compiler.family not in threaded:
            version = re.search(r"-\d+$", compiler.name)
            debian = f"libomp{version[0] if version else ''}-dev"
            clang = by.line(debian if "apt" in by.command else "libomp-devel")
            yield Missing(
                what=str(compiler.path),
                loses="this compiler has no OpenMP, so STREAM is not compared with it",
                remedy=clang if compiler.family == "clang" else by.of(OPENMP),
            )


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"error|cannot|not found|No such", line)]
    return (wrong or lines or [""])[0][:160]


def missing_figures(facts: Facts, tree: Tree, by: Remedies) -> Iterator[Missing]:
    """What the machine does not say, or does not allow."""
    yield from _missing_figures(facts, tree, by)
    yield from _not_allowed(facts, by)


def _missing_figures(facts: Facts, tree: Tree, by: Remedies) -> Iterator[Missing]:
    if facts.memory.bytes_per_second is None:
        yield Missing(
            what=MEMORY_SPEED,
            loses=f"measured speeds get no share of it; it is channels x rate{_dmi(facts, by)}",
            remedy=by.measure("--nominal", "memory_bytes_per_second=VALUE"),
        )
    if any(cpu.nominal_hz is None for cpu in facts.cpus):
        yield Missing(
            what=CLOCK,
            loses="measured flop rates get no share of it; it is the maker's highest clock",
            remedy=by.measure("--nominal", "clock_hz=VALUE"),
        )
    if not facts.caches:
        yield Missing(
            what=CACHES,
            loses="the kernel lists none; only the working-set curve shows the caches",
            remedy="none needed",
        )
    if not facts.instruction_sets:
        yield Missing(
            what=INSTRUCTION_SETS,
            loses="none that FlowOS knows; flop ceilings are not measured",
            remedy="none: FlowOS has kernels for x86-64 and 64-bit Arm",
        )
    if offline := tree.text("/sys/devices/system/cpu/offline"):
        yield Missing(
            what=OFFLINE,
            loses=f"CPUs {offline} are not used",
            remedy=f"echo 1 | {by.sudo}tee /sys/devices/system/cpu/cpuN/online",
        )


def _dmi(facts: Facts, by: Remedies) -> str:
    """The remedy on real hardware: where an administrator finds the data."""
    return "" if facts.hypervisor or not by.sudo else ", see `sudo dmidecode -t memory`"


_NOT_ALLOWED: Mapping[str, tuple[str, str]] = {
    "direct I/O": ("storage is not measured past the page cache; take a folder on a disk", ""),
    "io_uring": (
        "fio measures with libaio instead; a container's seccomp profile may forbid it",
        "sudo sysctl kernel.io_uring_disabled=0",
    ),
    "cycle counter": (
        "the clock is measured by dependent additions alone",
        "sudo sysctl kernel.perf_event_paranoid=2",
    ),
    "memory files": ("arrays between processes are copied", "use Linux 3.17 or newer"),
    "pinning": ("threads wander between cores, so numbers scatter", "allow sched_setaffinity here"),
}
"""What the collector tried -> what is lost if it fails, and the remedy; "": another folder."""


_WHY = {
    ("cycle counter", "No such file or directory"): "the processor shows none",
    ("cycle counter", "Operation not supported"): "the processor shows none",
    ("direct I/O", "Invalid argument"): "the file system of this folder has none",
    ("direct I/O", "Operation not supported"): "the file system of this folder has none",
}
_OFTEN = {
    "Permission denied": "not allowed here",
    "Operation not permitted": "not allowed here",
    "Function not implemented": "the kernel has none",
    "No such file or directory": "there is no such folder or device",
}
"""The kernel's answer (errno) -> its meaning for what was tried."""


def _in_words(tried: Tried) -> str:
    return _WHY.get((tried.name, tried.says)) or _OFTEN.get(tried.says, tried.says)


def _not_allowed(facts: Facts, by: Remedies) -> Iterator[Missing]:
    for tried in facts.tried:
        if not tried.works:
            loses, remedy = _NOT_ALLOWED.get(tried.name, ("", "none known"))
            if tried.name == "cycle counter" and facts.hypervisor:
                remedy = "none here: the hypervisor hides the counters"
            why = _in_words(tried)
            says = f"{why}: {loses}" if why else loses
            remedy = remedy or by.measure("--scratch", "DIR")
            yield Missing(what=tried.name, loses=says, remedy=remedy)
