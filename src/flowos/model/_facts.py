"""What a program found out about a node in an environment. Bytes, hertz, cpu numbers of Linux."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalCpu:
    """One hardware thread that is online. `core` and `socket` are made unique per machine."""

    number: int
    core: int
    socket: int
    node: int
    kind: Literal["", "performance", "efficiency"] = ""
    nominal_hz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    level: int
    kind: Literal["data", "instruction", "unified"]
    size_bytes: int
    line_bytes: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """`cpus`: its own; of memory that has none, those with the shortest way to it.

    kind: "" is what most memory is; HBM is faster than other memory of the machine, NVM persistent,
    and that of a GPU is no place for what the CPUs work on.
    """

    number: int
    cpus: tuple[int, ...]
    memory_bytes: int
    kind: Literal["", "HBM", "NVM", "GPU"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """`name` is what people type (gcc-12); `family` decides the flags."""

    name: str
    family: Literal["gcc", "clang", "icx", "nvc", "other"]
    language: Literal["c", "c++"]
    version: str
    path: PurePath
    openmp: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mpi:
    """`cxx`: its C++ compiler, where it made a program of C++20 with OpenMP."""

    name: str
    family: Literal["openmpi", "mpich", "intel", "mvapich", "other"]
    version: str
    compiler: PurePath
    starter: PurePath
    cxx: PurePath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blas:
    """A BLAS library for dlopen; `symbol` is a pattern such as `{}_` or `scipy_{}_64_`."""

    name: str
    family: Literal["openblas", "blis", "mkl", "other"]
    version: str
    path: PurePath
    symbol: str = "{}_"
    integer_bytes: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that a probe drives (fio, likwid-bench)."""

    name: str
    version: str
    path: PurePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Nominal figures of the memory, where DMI is readable or the person gave them."""

    channels: int | None = None
    transfers_per_second: float | None = None
    bytes_per_second: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemFacts:
    """The file system of the folder that a person wants measured; what is unknown is "" or None."""

    file_system: str = ""
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Something that the kernel lets us do, or not; `says` is its complaint or a detail."""

    name: str
    works: bool
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something that could not be found or read: what is lost by it, and what would mend it."""

    what: str
    loses: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A node as seen from inside one environment."""

    host: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str
    cpus: tuple[LogicalCpu, ...]
    allowed: tuple[int, ...]
    quota_cpus: float | None = None
    memory_bytes: int = 0
    memory_limit_bytes: int | None = None
    caches: tuple[Cache, ...] = ()
    nodes: tuple[NumaNode, ...] = ()
    instruction_sets: tuple[str, ...] = ()
    memory: Memory = Memory()
    hypervisor: str = ""
    gpus: tuple[str, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    mpis: tuple[Mpi, ...] = ()
    blas: tuple[Blas, ...] = ()
    tools: tuple[Tool, ...] = ()
    missing: tuple[Missing, ...] = ()
    tried: tuple[Tried, ...] = ()
    storage: FileSystemFacts = FileSystemFacts()

    @property
    def usable(self) -> tuple[LogicalCpu, ...]:
        """The hardware threads that we may run on."""
        return tuple(c for c in self.cpus if c.number in self.allowed)

    @property
    def usable_memory_bytes(self) -> int:
        """As much of it as the cgroup allows; 0 where nothing is known."""
        limits = [b for b in (self.memory_bytes, self.memory_limit_bytes) if b]
        return min(limits, default=0)

    @property
    def one_per_core(self) -> tuple[LogicalCpu, ...]:
        """The first usable hardware thread of each core, by number."""
        first: dict[int, LogicalCpu] = {}
        for cpu in sorted(self.usable, key=lambda c: c.number):
            first.setdefault(cpu.core, cpu)
        return tuple(first.values())

    def tool(self, name: str) -> Tool | None:
        return next((t for t in self.tools if t.name == name), None)
