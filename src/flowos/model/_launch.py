"""How a process is started, and how it ended."""

import operator
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, cast, get_args

from flowos._dataclasses import dataclass, field

Counts = tuple[tuple[str, int], ...]
"""(name, count) pairs, by name."""

DeviceNumbers = tuple[tuple[str, tuple[int | str, ...]], ...]
"""Names of devices, and which of a node's they are; GPUs ("gpu") as CUDA_VISIBLE_DEVICES says."""

if TYPE_CHECKING:
    GivenCounts = Mapping[str, int] | Counts
else:  # what it becomes, as it is read back
    GivenCounts = Counts

CUDA = "CUDA_VISIBLE_DEVICES"
"""The variable that says to CUDA, and to HIP, which GPUs a process has."""

Pairs = tuple[tuple[str, str], ...]
"""Ordered (name, value) pairs: variables, levels, binds, notes."""

Argv = tuple[str, ...]

MpiName = Literal["openmpi", "mpich", "mvapich", "intel", "other"]
"""MPIs, each by the name of the launcher that starts its ranks."""

MPIS: tuple[MpiName, ...] = get_args(MpiName)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Resources that a task needs on the node that runs it.

    cores: default 1. Commands and worker processes with an explicit number get as many CPUs of
        their own (`binds`); others count as one and may use idle CPUs.
    alone: no other task of this program's slices runs on the node meanwhile, and no `fo.measure`.
    remaining_seconds: it begins only while its nodes are held for so long yet; where they are not,
        its run ends with SliceRefused. Without an end of what is held there is always enough.
    nodes: of the slice, over which the ranks are spread evenly; by default as few as have the cores
        for them. Memory, GPUs and devices are needed on each.
    memory_bytes: of the node's memory; it is counted, and not enforced.
    gpus: GPUs that it has for itself. CUDA_VISIBLE_DEVICES says which ones it got.
    devices: other devices of the node that it has for itself, by name: {"fpga": 1}. Which ones it
        got, FLOWOS_DEVICES_FPGA says: their numbers on the node, with commas between.

    Raises ValueError for values that are no whole numbers, or too small, and for names that no
    device has.

    >>> fo.Needs(cores=2, gpus=1, devices={"fpga": 1}).words
    '1 GPU and 1 fpga and 2 cores'
    """

    cores: int = cast("int", None)
    memory_bytes: int = 0
    gpus: int = 0
    devices: GivenCounts = ()
    ranks: int = 1
    alone: bool = False
    nodes: int | None = None
    remaining_seconds: float = 0.0
    binds: bool = field(default=False, init=False, compare=False, repr=False)
    otherwise: "tuple[Needs, ...]" = field(default=(), init=False)

    def __post_init__(self) -> None:
        asked = cast("int | None", self.cores) is not None
        object.__setattr__(self, "binds", asked)
        object.__setattr__(self, "cores", self.cores if asked else 1)
        for name, minimum in (("cores", 1), ("ranks", 1), ("gpus", 0), ("memory_bytes", 0)):
            object.__setattr__(self, name, _whole(name, getattr(self, name), minimum))
        if self.nodes is not None:
            object.__setattr__(self, "nodes", _whole("nodes", self.nodes, 1))
            if self.nodes > self.ranks:
                raise ValueError(f"Needs(nodes={self.nodes}): more than its ranks, {self.ranks}")
        if not isinstance(self.alone, bool):
            raise ValueError(f"Needs(alone={self.alone!r}): expected True or False")
        if type(self.remaining_seconds) not in (int, float) or not self.remaining_seconds >= 0:
            words = f"Needs(remaining_seconds={self.remaining_seconds!r})"
            raise ValueError(f"{words}: expected a number of 0 or more")
        try:
            object.__setattr__(self, "devices", device_counts(self.devices))
        except ValueError as error:
            raise ValueError(f"Needs: {error}") from None

    @property
    def choices(self) -> "tuple[Needs, ...]":
        """These, then what would do instead, the better ones first."""
        return (self, *self.otherwise)

    @property
    def words(self) -> str:
        """What is needed, as people say it: 1 GPU, else 8 cores."""
        return ", else ".join(_amounts(each) for each in self.choices)

    @property
    def generic_resources(self) -> Counts:
        """The GPUs ("gpu") and other devices, by name."""
        return (("gpu", self.gpus), *self.device_counts) if self.gpus else self.device_counts

    @property
    def device_counts(self) -> Counts:
        """The devices but GPUs, by name."""
        return cast("Counts", self.devices)


def with_choices(first: Needs, others: "Sequence[Needs]") -> Needs:
    """The first is preferred, and the others do instead, the better ones first."""
    made = copy(first)
    object.__setattr__(made, "otherwise", tuple(others))
    return made


def _amounts(needs: Needs) -> str:
    words = [_amount(count, name) for name, count in _counts(needs)]
    words += [f"{needs.memory_bytes} bytes"] * (needs.memory_bytes > 0)
    words += ["the whole node"] * needs.alone
    words += [f"{needs.remaining_seconds:g} s left"] * (needs.remaining_seconds > 0)
    return " and ".join(words)


def _counts(needs: Needs) -> Counts:
    """Cores where they are more than one, or all that is needed."""
    cores = needs.cores * needs.ranks
    says_cores = cores > 1 or needs.binds or not (needs.generic_resources or needs.alone)
    return (*needs.generic_resources, *((("core", cores),) if says_cores else ()))


def _amount(count: int, name: str) -> str:
    """Devices of a cluster have names of one form."""
    from flowos.model._names import counted  # a bare `flowos exec` has no need of it

    nouns = {"gpu": "GPU", "core": "core"}
    return counted(count, nouns[name]) if name in nouns else f"{count} {name}"


def device_counts(given: object) -> Counts:
    """How many devices of each name, by name. Raises ValueError for names or counts that no device
    has."""
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        found = sorted((name, count) for name, count in cast("Counts", pairs))
    except (TypeError, ValueError):
        found = None
    if found is None or len(dict(found)) < len(found):
        raise ValueError(f"devices={given!r:.80}; expected a count for each name: {{'fpga': 1}}")
    for name, count in found:
        if not _is_device_name(name):
            raise ValueError(f"devices: {name!r:.80}; expected letters, digits, _- (not first)")
        if name == "gpu":
            raise ValueError("devices: 'gpu'; GPUs have a number of their own, gpus=")
        if type(count) is not int or count < 1:
            raise ValueError(f"devices: {name}={count!r:.80}; expected a positive int")
    return tuple(found)


def _is_device_name(name: object) -> bool:
    if not isinstance(name, str):
        return False
    return name.isascii() and name.replace("-", "_").isidentifier() and name[0] != "-"


def _whole(name: str, given: object, minimum: int) -> int:
    """The number as an int; accepts NumPy integers."""
    try:
        if isinstance(given, bool):
            raise TypeError
        number = operator.index(cast("int", given))
    except TypeError:
        raise ValueError(f"Needs({name}={given!r}): expected a whole number") from None
    if number < minimum:
        raise ValueError(f"Needs({name}={given!r}): at least {minimum}")
    return number


Form = Literal["folder", "squashfs", "sif", "oci-archive"]


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """How an image is to be run (OCI image configuration, or a runscript)."""

    entrypoint: Argv = ()
    command: Argv = ()
    variables: Pairs = ()
    cwd: PurePath | None = None


@dataclass(frozen=True, kw_only=True)
class Image:
    """A root file system. Its identity is the digest, never the name.

    digest: "sha256:HEX" of the file's bytes; for a folder "tree-sha256:HEX" over its sorted tree
    (path, mode, size, content, link); "" if it was not read. source: its absolute path.
    """

    form: Form
    digest: str
    source: PurePath
    config: ImageConfig = ImageConfig()


@dataclass(frozen=True, kw_only=True)
class LinuxKernel:
    """A Linux kernel, as the library of kernels has it.

    release: as `uname -r` says. image, initrd: files; the latter holds the modules, which are
    loaded in their order. parameters: on its command line, behind those that booting needs.
    """

    name: str = ""
    release: str = ""
    image: PurePath = PurePath()
    initrd: PurePath = PurePath()
    modules: Argv = ()
    parameters: Argv = ()


@dataclass(frozen=True, kw_only=True)
class Boot:
    """How an image is booted. kernel: at first its name alone; "" for the only one there is.

    accelerator: kvm, or tcg, which computes the instructions of the guest one by one; "" until it
    is known which works.
    """

    kernel: LinuxKernel = LinuxKernel()
    memory_bytes: int = 512 << 20
    accelerator: str = ""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The environment of a launch, as data. Without an image it is bare.

    runtime: a name in `drivers.RUNTIMES`, or "auto" for the first that can enter the image here.
    binds: (source, target) or (source, target + ":ro"). devices: CDI names (vendor/class=name).
    variables: override those of the image. boot: of a runtime that boots it. kernel: that a node of
    a pool is to have booted.

    >>> bare = fo.environment("bare", variables={"OMP_NUM_THREADS": "1"})
    >>> bare.label, bare.variables
    ('bare', (('OMP_NUM_THREADS', '1'),))
    """

    image: Image | None = None
    runtime: str = "bare"
    binds: Pairs = ()
    devices: tuple[str, ...] = ()
    variables: Pairs = ()
    boot: Boot | None = None
    kernel: str = ""

    @property
    def label(self) -> str:
        """Short name for people: bare, or the image's file name @ the runtime."""
        return f"{self.image.source.name}@{self.runtime}" if self.image else self.runtime


BARE = Environment()


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One process start (or one start of `ranks` processes), fully described.

    `variables` is the whole environment, apart from that of `env` and the variables that the
    launcher forwards; nothing is inherited implicitly. `terminal`: its standard streams are a
    terminal, which matters to runtimes that create new streams inside. `cpus`: CPUs that it may
    use; () for all of ours. `nodes`: names of those that the ranks are on; () for the one on which
    it is started.
    """

    argv: Argv
    env: Environment = BARE
    variables: Pairs = ()
    cwd: PurePath = PurePath("/")
    needs: Needs = Needs()
    ranks: int = 1
    limit_seconds: float | None = None
    terminal: bool = False
    cpus: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exited:
    code: int

    def __str__(self) -> str:
        return f"exit code {self.code}"


@dataclass(frozen=True)
class Killed:
    """Ended by a signal. `by`: our time limit, our request, or another process."""

    signal: int
    by: Literal["limit", "request", "other"] = "other"

    def __str__(self) -> str:
        of_ours = {"limit": ", at its time limit", "request": ", on request", "other": ""}
        return f"signal {self.signal}{of_ours[self.by]}"


@dataclass(frozen=True)
class NotStarted:
    """The command could not be started: not found, not executable, no such folder.

    code: exit code of a shell: 127 not found, 126 not executable, 125 anything else.
    """

    reason: str
    code: int = field(default=125, compare=False)

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class RuntimeFailed:
    """The launcher or runtime failed before the command could start."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Lost:
    """How it ended is unknown."""

    reason: str

    def __str__(self) -> str:
        return self.reason


End = Exited | Killed | NotStarted | RuntimeFailed | Lost


@dataclass(frozen=True, kw_only=True)
class CpuTimes:
    """Seconds of all CPUs of a machine together, as /proc/stat counts them."""

    busy: float = 0.0
    idle: float = 0.0
    steal: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Resources used by all processes of a launch together.

    cpus: what the node did from start to end, that of rank 0; None where it is this machine.
    memory_stalled_seconds, io_stalled_seconds: for how long some process there waited for memory,
        for storage; None if not counted.
    disk_bytes: what the disks of that node read and wrote meanwhile; None if not counted.
    own_disk_bytes: what the launch read and wrote itself, wherever it lay; None if not counted.
    """

    wall_seconds: float = 0.0
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0
    cpus: CpuTimes | None = None
    memory_stalled_seconds: float | None = None
    io_stalled_seconds: float | None = None
    disk_bytes: int | None = None
    own_disk_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a launch ended, its output, and its resource usage.

    >>> run = fo.command(["sh", "-c", "echo hello; exit 3"], outcome="end")
    >>> with fo.slice(run()) as s:
    ...     (outcome,) = s.run()
    >>> outcome.ok, outcome.end, outcome.stdout.split()
    (False, Exited(code=3), [b'hello'])
    """

    end: End
    stdout: bytes = b""
    stderr: bytes = b""
    usage: Usage = Usage()

    @property
    def ok(self) -> bool:
        return self.end == Exited(0)
