"""Programs that fetch, build and squash: found, asked for their version, run as any launch is."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from flowos.acts.measure import Emit, Progress
from flowos.engine import own_variables, run, start
from flowos.model import Argv, EnvironmentRefused, Exited, Launch, Outcome
from flowos.report import number

_VERSION_SECONDS = 20.0
_LOOK_SECONDS = 0.5
_ROOT = PurePath("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program ended; code -1: by a signal, or not at all."""

    code: int
    stdout: str
    stderr: str


def processors() -> int:
    return len(os.sched_getaffinity(0))


def is_here(program: str) -> bool:
    return shutil.which(program) is not None


def need(program: str, package: str, to: str) -> None:
    """EnvironmentRefused, with the line that installs it, if it is not here."""
    if not is_here(program):
        raise EnvironmentRefused(
            f"no {program} to {to}; mend: sudo apt-get install --no-install-recommends {package}"
        )


def version(argv: Argv, read: Callable[[str], str]) -> tuple[str, str]:
    """(program, version), for provenance."""
    ran = call(argv, seconds=_VERSION_SECONDS)
    return argv[0], read(ran.stdout + ran.stderr)


def call(
    argv: Argv,
    *,
    scratch: Path | None = None,
    hides: Sequence[str] = (),
    cwd: PurePath = _ROOT,
    seconds: float | None = None,
) -> Ran:
    """Run to the end; an interrupt ends it too."""
    launch = _launch(argv, scratch, hides, cwd, seconds)
    return _ran(run(launch))


def call_watched(
    argv: Argv, emit: Emit, doing: str, *, scratch: Path, cwd: PurePath = _ROOT
) -> Ran:
    """Run to the end; what it has put into `scratch` so far shows that it goes on."""
    running = start(_launch(argv, scratch, (), cwd, None))
    try:
        while True:
            try:
                return _ran(running.wait(_LOOK_SECONDS))
            except TimeoutError:
                emit(Progress(doing=f"{doing}  {number(_size(scratch), 'byte')}"))
    finally:
        running.stop()
        running.wait()


def launch_reading(argv: Argv, hides: Sequence[str]) -> Launch:
    """Of a program that reads its standard input."""
    return _launch(argv, None, hides, _ROOT, None)


def _launch(
    argv: Argv, scratch: Path | None, hides: Sequence[str], cwd: PurePath, seconds: float | None
) -> Launch:
    own = tuple(pair for pair in own_variables() if pair[0] not in hides)
    places = (("TMPDIR", str(scratch)),) if scratch else ()
    english = (("LC_ALL", "C.UTF-8"),)
    variables = tuple((dict(own) | dict(places) | dict(english)).items())
    return Launch(argv=argv, variables=variables, cwd=cwd, limit_seconds=seconds)


def _ran(outcome: Outcome) -> Ran:
    code = outcome.end.code if isinstance(outcome.end, Exited) else -1
    stderr = outcome.stderr.decode(errors="replace")
    if not isinstance(outcome.end, Exited):
        stderr += f"\n{outcome.end}"
    return Ran(code=code, stdout=outcome.stdout.decode(errors="replace"), stderr=stderr)


def ran(outcome: Outcome) -> Ran:
    return _ran(outcome)


def _size(folder: Path) -> int:
    """Files come and go meanwhile."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(at, name).lstat().st_size
            except OSError:
                continue
    return total
