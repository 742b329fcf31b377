"""Properties of a node, as detected in an environment. Bytes, hertz, cpu numbers of Linux."""

from pathlib import PurePath
from typing import Literal

from flowos._dataclasses import dataclass, field
from flowos.model._launch import Argv, MpiName


@dataclass(frozen=True, kw_only=True)
class LogicalCpu:
    """One online hardware thread. `core` and `socket` are unique within the machine."""

    number: int
    core: int
    socket: int
    node: int
    kind: Literal["", "performance", "efficiency"] = ""
    nominal_hz: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cache:
    level: int
    kind: Literal["data", "instruction", "unified"]
    size_bytes: int
    line_bytes: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class NumaNode:
    """`cpus`: its own; for memory without cpus, those nearest to it.

    kind: "" is the kind of most memory; HBM is faster than the machine's other memory, NVM is
    persistent; memory of a GPU is unsuitable for data of the CPUs.
    """

    number: int
    cpus: tuple[int, ...]
    memory_bytes: int
    kind: Literal["", "HBM", "NVM", "GPU"] = ""


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """`name` is the command (gcc-12); `family` decides the flags."""

    name: str
    family: Literal["gcc", "clang", "icx", "nvc", "other"]
    language: Literal["c", "c++"]
    version: str
    path: PurePath
    openmp: bool = False


@dataclass(frozen=True, kw_only=True)
class Mpi:
    """mpirun: starts its programs. cxx: its C++ compiler, if it can build C++20 with OpenMP.

    cxx_calls: the compiler that this one calls, and flags that it adds, but for those that name
    files of MPI; () where it is not known. cxx_version: of that compiler.
    """

    name: str
    family: MpiName
    version: str
    compiler: PurePath
    mpirun: PurePath = field(metadata={"formerly": "starter"})
    cxx: PurePath | None = None
    cxx_calls: Argv = ()
    cxx_version: str = ""


@dataclass(frozen=True, kw_only=True)
class Blas:
    """A BLAS library for dlopen; `symbol` is a pattern such as `{}_` or `scipy_{}_64_`."""

    name: str
    family: Literal["openblas", "blis", "mkl", "other"]
    version: str
    path: PurePath
    symbol: str = "{}_"
    integer_bytes: int = 4


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program that a probe runs (fio, xhpl). mpi: family of the MPI whose library it loads."""

    name: str
    version: str
    path: PurePath
    mpi: Literal["", "openmpi", "mpich"] = ""


@dataclass(frozen=True, kw_only=True)
class CudaDevice:
    """A GPU of NVIDIA, as its driver describes it; number: as CUDA counts them here.

    bus_bits: the width of its memory's bus. capability: (major, minor).
    """

    number: int
    name: str
    memory_bytes: int = 0
    multiprocessors: int = 0
    clock_hz: float = 0.0
    memory_clock_hz: float = 0.0
    bus_bits: int = 0
    cache_bytes: int = 0
    capability: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class RdmaPort:
    """A port of an RDMA device. link_layer: InfiniBand, or Ethernet (RoCE, iWARP).

    number: from 1 on. state: the kernel's word, such as ACTIVE. speed: such as 4X QDR.
    bytes_per_second: of data, without what the line code adds; 0 if it is not known.
    """

    device: str
    number: int
    link_layer: str = ""
    state: str = ""
    speed: str = ""
    bytes_per_second: float = 0.0

    @property
    def is_active(self) -> bool:
        return self.state == "ACTIVE"


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Nominal figures of the memory, from DMI if it is readable, or from the user."""

    channels: int | None = None
    transfers_per_second: float | None = None
    bytes_per_second: float | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class FileSystemFacts:
    """File system of the folder to be measured; unknown values are "" or None."""

    file_system: str = ""
    free_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A trial of what the kernel permits; `says` is its error message or a detail."""

    name: str
    works: bool
    says: str = ""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Something that could not be found or read: the consequence, and the remedy."""

    what: str
    loses: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
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
    cuda: tuple[CudaDevice, ...] = ()
    rdma: tuple[RdmaPort, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    mpis: tuple[Mpi, ...] = ()
    blas: tuple[Blas, ...] = ()
    tools: tuple[Tool, ...] = ()
    missing: tuple[Missing, ...] = ()
    tried: tuple[Tried, ...] = ()
    storage: FileSystemFacts = FileSystemFacts()

    @property
    def usable(self) -> tuple[LogicalCpu, ...]:
        """The hardware threads that we may use."""
        return tuple(c for c in self.cpus if c.number in self.allowed)

    @property
    def usable_memory_bytes(self) -> int:
        """Memory that the cgroup allows us to use; 0 if unknown."""
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
