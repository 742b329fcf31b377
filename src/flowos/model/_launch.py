"""How a process is started, and how it ended."""

import operator
from pathlib import PurePath
from typing import Literal, cast

from flowos._dataclasses import dataclass, field

Pairs = tuple[tuple[str, str], ...]
"""Ordered (name, value) pairs: variables, levels, binds, notes."""

Argv = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Resources that a task needs on the node that runs it.

    cores: default 1. Commands and worker processes with an explicit number get as many CPUs of
        their own (`binds`); others count as one and may use idle CPUs.
    alone: no other work of ours runs on the node meanwhile, as measurements require.

    Raises ValueError for values that are no whole numbers, or too small.
    """

    cores: int = cast("int", None)
    memory_bytes: int = 0
    gpus: int = 0
    devices: tuple[str, ...] = ()
    ranks: int = 1
    alone: bool = False
    binds: bool = field(default=False, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        asked = cast("int | None", self.cores) is not None
        object.__setattr__(self, "binds", asked)
        object.__setattr__(self, "cores", self.cores if asked else 1)
        for name, least in (("cores", 1), ("ranks", 1), ("gpus", 0), ("memory_bytes", 0)):
            object.__setattr__(self, name, _whole(name, getattr(self, name), least))
        if not isinstance(self.alone, bool):
            raise ValueError(f"Needs(alone={self.alone!r}): expected True or False")
        devices: object = self.devices
        if not isinstance(devices, tuple) or not all(isinstance(d, str) for d in devices):
            raise ValueError(f"Needs(devices={devices!r}): expected a tuple of texts")


def _whole(name: str, given: object, least: int) -> int:
    """The number as an int; accepts NumPy integers."""
    try:
        if isinstance(given, bool):
            raise TypeError
        number = operator.index(cast("int", given))
    except TypeError:
        raise ValueError(f"Needs({name}={given!r}): expected a whole number") from None
    if number < least:
        raise ValueError(f"Needs({name}={given!r}): at least {least}")
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
    (path, mode, size, content, link). source: its absolute path.
    """

    form: Form
    digest: str
    source: PurePath
    config: ImageConfig = ImageConfig()


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The environment of a launch, as data. Without an image it is bare.

    runtime: a name in `drivers.RUNTIMES`, or "auto" for the first that can enter the image here.
    binds: (source, target) or (source, target + ":ro"). devices: CDI names (vendor/class=name).
    variables: override those of the image.
    """

    image: Image | None = None
    runtime: str = "bare"
    binds: Pairs = ()
    devices: tuple[str, ...] = ()
    variables: Pairs = ()

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
    use; () for all of ours.
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


@dataclass(frozen=True)
class Exited:
    code: int


@dataclass(frozen=True)
class Killed:
    """Ended by a signal. `by`: our time limit, our request, or another process."""

    signal: int
    by: Literal["limit", "request", "other"] = "other"


@dataclass(frozen=True)
class NotStarted:
    """The command could not be started: not found, not executable, no such folder.

    code: exit code of a shell: 127 not found, 126 not executable, 125 anything else.
    """

    reason: str
    code: int = field(default=125, compare=False)


@dataclass(frozen=True)
class RuntimeFailed:
    """The launcher or runtime failed before the command could start."""

    reason: str


@dataclass(frozen=True)
class Lost:
    """How it ended is unknown."""

    reason: str


End = Exited | Killed | NotStarted | RuntimeFailed | Lost


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Resources used by all processes of a launch together."""

    wall_seconds: float = 0.0
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a launch ended, its output, and its resource usage."""

    end: End
    stdout: bytes = b""
    stderr: bytes = b""
    usage: Usage = Usage()

    @property
    def ok(self) -> bool:
        return self.end == Exited(0)
