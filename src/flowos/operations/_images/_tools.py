"""Runs the programs that fetch, build and squash images, as launches."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass
from flowos.engine import Capture, here
from flowos.model import (
    BARE,
    Argv,
    EnvironmentRefused,
    Exited,
    Launch,
    OnProgress,
    Outcome,
    Pairs,
    Progress,
)
from flowos.report import number, safe

_VERSION_SECONDS = 20.0
_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 10.0
_NOWHERE = PurePath("/")
_MAX_OUTPUT_BYTES = 1 << 20
_STEP = re.compile(rb"^STEP \d+/\d+: .*", re.MULTILINE)
_STEP_BYTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program ended; code -1: by a signal, or not at all."""

    code: int
    stdout: str
    stderr: str


class _Output(Capture):
    """What a program prints, up to a bound. step: the last line by which a builder names a step."""

    def __init__(self) -> None:
        super().__init__(_MAX_OUTPUT_BYTES)
        self.step = ""
        self._line = b""

    def add(self, data: bytes) -> None:
        super().add(data)
        seen = self._line + data
        if steps := _STEP.findall(seen):
            self.step = safe(steps[-1][:_STEP_BYTES].decode(errors="replace"))
        self._line = seen[seen.rfind(b"\n") + 1 :][:_STEP_BYTES]


def processors() -> int:
    return len(os.sched_getaffinity(0))


def is_here(program: str) -> bool:
    return shutil.which(program) is not None


def need(program: str, package: str, to: str) -> None:
    """Raises EnvironmentRefused, with the command that installs it, if it is not found."""
    if not is_here(program):
        raise EnvironmentRefused(f"no {program} to {to}; mend: {install_line(package)}")


def install_line(packages: str) -> str:
    return f"sudo apt-get install --no-install-recommends {packages}"


def version(argv: Argv, read: Callable[[str], str]) -> tuple[str, str]:
    """(program, version), for provenance."""
    ran = call(argv, seconds=_VERSION_SECONDS)
    return argv[0], read(ran.stdout + ran.stderr)


def call(
    argv: Argv,
    *,
    scratch: Path | None = None,
    variables: Pairs = (),
    seconds: float | None = None,
) -> Ran:
    """Run a program and wait for its end; an interrupt stops it too."""
    return ran(here().run(launch_of(argv, scratch=scratch, variables=variables, seconds=seconds)))


def call_watched(
    argv: Argv,
    on_progress: OnProgress,
    doing: str,
    *,
    scratch: Path,
    variables: Pairs = (),
    cwd: PurePath = _NOWHERE,
    grace_seconds: float = _GRACE_SECONDS,
) -> Ran:
    """Run a program and wait for its end; its progress is the step that it names, else the size of
    `scratch`. Of what it prints, the middle may be left out.

    grace_seconds: its time to clean up when we are interrupted.
    """
    launch = launch_of(argv, scratch=scratch, variables=variables, cwd=cwd)
    out, err = _Output(), _Output()
    running = here().start(launch, captures=(out, err))
    try:
        while True:
            size = size_of(scratch)
            has = number(size, "byte") if size else ""
            on_progress(Progress(doing=doing, detail=out.step or err.step or has))
            with suppress(TimeoutError):
                return ran(running.wait(_LOOK_SECONDS))
    finally:
        running.stop(grace_seconds)
        running.wait()


def launch_of(
    argv: Argv,
    *,
    scratch: Path | None = None,
    variables: Pairs = (),
    env_blocked: Sequence[str] = (),
    cwd: PurePath = _NOWHERE,
    seconds: float | None = None,
) -> Launch:
    """A launch with our own variables, messages in English, and temporary files in `scratch`."""
    own = {name: value for name, value in here().variables(BARE) if name not in env_blocked}
    own.setdefault("USER", str(os.geteuid()))  # Charliecloud requires it
    own |= {"LC_ALL": "C.UTF-8"} | ({"TMPDIR": str(scratch)} if scratch else {})
    return Launch(
        argv=argv,
        variables=tuple((own | dict(variables)).items()),
        cwd=cwd,
        limit_seconds=seconds,
    )


def ran(outcome: Outcome) -> Ran:
    stdout, stderr = (out.decode(errors="replace") for out in (outcome.stdout, outcome.stderr))
    if isinstance(outcome.end, Exited):
        return Ran(code=outcome.end.code, stdout=stdout, stderr=stderr)
    return Ran(code=-1, stdout=stdout, stderr=f"{stderr}\n{outcome.end}")


def size_of(folder: Path) -> int:
    """The size of all files; those that are removed meanwhile are skipped."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(at, name).lstat().st_size
    return total
