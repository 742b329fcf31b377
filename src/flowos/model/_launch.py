"""How one process is started, and how it ended."""

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

Pairs = tuple[tuple[str, str], ...]
"""Ordered (name, value) pairs: variables, levels, binds, notes."""

Argv = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a task wants from the node that runs it.

    `alone` means that nothing else of ours runs on the node meanwhile, as a measurement needs.
    """

    cores: int = 1
    memory_bytes: int = 0
    gpus: int = 0
    devices: tuple[str, ...] = ()
    ranks: int = 1
    alone: bool = False

    def __post_init__(self) -> None:
        for name, least in (("cores", 1), ("ranks", 1), ("gpus", 0), ("memory_bytes", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"Needs({name}={getattr(self, name)!r}): at least {least}")


Form = Literal["folder", "squashfs", "sif", "oci-archive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """What an image says of how it wants to be run (OCI image configuration, or a runscript)."""

    entrypoint: Argv = ()
    command: Argv = ()
    variables: Pairs = ()
    cwd: PurePath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A root file system. Identity is the digest, never the name.

    digest: "sha256:HEX" of the file's bytes; of a folder "tree-sha256:HEX" over its sorted tree
    (path, mode, size, content, link). source: where it lies, absolute.
    """

    form: Form
    digest: str
    source: PurePath
    config: ImageConfig = ImageConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Data: in what a launch runs. No image means bare.

    runtime: a name of `drivers.RUNTIMES`, or "auto" for the first that can enter the image here.
    binds: (source, target) or (source, target + ":ro"). devices: CDI names (vendor/class=name).
    variables: beside those of the image, which they override.
    """

    image: Image | None = None
    runtime: str = "bare"
    binds: Pairs = ()
    devices: tuple[str, ...] = ()
    variables: Pairs = ()

    @property
    def label(self) -> str:
        """How people tell it apart: bare, or the image's file name @ the runtime."""
        return f"{self.image.source.name}@{self.runtime}" if self.image else self.runtime


BARE = Environment()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process start (or one start of `ranks` processes), fully described.

    `variables` is the whole environment beside that of `env` and what the launcher passes through;
    nothing is inherited unsaid. `terminal`: its standard streams are a terminal, which a runtime
    that makes new streams inside must know.
    """

    argv: Argv
    env: Environment = BARE
    variables: Pairs = ()
    cwd: PurePath = field(default_factory=lambda: PurePath("/"))
    needs: Needs = field(default_factory=Needs)
    ranks: int = 1
    limit_seconds: float | None = None
    terminal: bool = False


@dataclass(frozen=True, slots=True)
class Exited:
    code: int


@dataclass(frozen=True, slots=True)
class Killed:
    """Ended by a signal. `by` says whose: ours at the time limit, ours on request, or another's."""

    signal: int
    by: Literal["limit", "request", "other"] = "other"


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The command could not be started: not found, not executable, no such folder.

    code: what a shell would exit with: 127 nothing there, 126 not executable, 125 anything else.
    """

    reason: str
    code: int = field(default=125, compare=False)


@dataclass(frozen=True, slots=True)
class RuntimeFailed:
    """The launcher or runtime failed before the command could start."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Nobody could say how it ended."""

    reason: str


End = Exited | Killed | NotStarted | RuntimeFailed | Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a launch used, all its processes together."""

    wall_seconds: float = 0.0
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a launch ended, what it printed, what it used."""

    end: End
    stdout: bytes = b""
    stderr: bytes = b""
    usage: Usage = field(default_factory=Usage)

    @property
    def ok(self) -> bool:
        return self.end == Exited(0)
