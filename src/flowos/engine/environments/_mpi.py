"""Before ranks are started from outside: is the same MPI in their image?

Asked once per image, runtime and mpirun: the image is entered once and held, and each question
joins it there. The answer is no proof for a program that brings an MPI of its own, so launchers
guard their ranks besides (see `Launcher.guards`).
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flowos.drivers import (
    ASKS_INSIDE,
    MpiSaid,
    family_of,
    incompatibility,
    launcher_named,
    mpi_said,
    mpis_in_files,
    wrong_mpirun,
)
from flowos.engine._ask import ask
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.launch._shared_container import HOLD, await_held
from flowos.model import Argv, Environment, EnvironmentRefused, Launch, LaunchFailed, Pairs

_LIMIT_SECONDS = 30.0
_LIBRARIES = (
    "usr/lib",
    "usr/lib64",
    "usr/lib/*-linux-gnu",
    "usr/lib/*-linux-gnu/*/lib",
    "usr/lib64/*/lib",
    "usr/local/lib",
    "usr/local/*/lib",
    "opt/*/lib",
)


class MpiCheck:
    """What was answered on a node. Methods may be called from any thread."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes
        self._outside: dict[str, str] = {}
        self._inside: dict[tuple[Environment, str], tuple[MpiSaid, ...]] = {}

    def check(
        self, env: Environment, launcher: str, mpirun: str = "", variables: Pairs = ()
    ) -> None:
        """Raises EnvironmentRefused if the MPI of this node does not fit that of the image.

        Raises LaunchFailed if there is no such mpirun, or it is of another MPI than the launcher's
        name says. variables: of the ranks; programs of an MPI are found on their PATH.
        """
        requested = family_of(launcher)
        if env.image is None or requested is None:
            return
        wrong = self.wrong_mpirun(launcher, mpirun)
        if wrong:
            raise LaunchFailed(wrong)
        says = self._said_outside(_program(launcher, mpirun))
        path = dict(variables).get("PATH", "")
        reason = incompatibility(requested, mpi_said(says), self.mpis_inside(env, path))
        if reason is not None:
            source = env.image.source
            asked = self._runtimes.session.sources.get(source, source)
            raise EnvironmentRefused(f"image {asked}: {reason.text}; {reason.remedy}")

    def wrong_mpirun(self, launcher: str, mpirun: str = "") -> str:
        """That it is of another MPI than the launcher's name says, and what to do; or "".

        Raises LaunchFailed if there is no such mpirun.
        """
        program = _program(launcher, mpirun)
        wrong = wrong_mpirun(launcher, program, self._said_outside(program))
        return f"{wrong.text}; {wrong.remedy}" if wrong else ""

    def usual_mpirun(self, launcher: str) -> str:
        """The mpirun of this launcher's MPI: Debian has mpiexec.mpich and mpirun.openmpi by name.

        "": the one that the launcher names itself, as it is of that MPI, or none is there by name.
        """
        requested = family_of(launcher)
        usual = _program(launcher, "")
        named = f"{usual}.{launcher}"
        if requested is None or shutil.which(named) is None:
            return ""
        said = mpi_said(self._said_outside(usual)) if shutil.which(usual) else None
        return "" if said is not None and said.family == requested else named

    def _said_outside(self, program: str) -> str:
        if program not in self._outside:
            self._outside[program] = _version_text(program)
        return self._outside[program]

    def mpis_inside(self, env: Environment, path: str) -> tuple[MpiSaid, ...]:
        """Those of the image. path: PATH of the ranks, on which programs of an MPI are found."""
        if (env, path) not in self._inside:
            self._inside[env, path] = self._ask_inside(env, path)
        return self._inside[env, path]

    def _ask_inside(self, env: Environment, path: str) -> tuple[MpiSaid, ...]:
        with self._held(env) as enter:
            said = [mpi_said(self._answer(argv, path, enter)) for argv in ASKS_INSIDE]
            found = tuple(mpi for mpi in said if mpi is not None)
            return found or mpis_in_files(_library_names(enter))

    @contextmanager
    def _held(self, env: Environment) -> Iterator[bytes]:
        """Enter the image and hold it: what a run folder's file `enter` says to join it."""
        holder = self._runtimes.prepare(Launch(argv=HOLD, env=env)).start()
        try:
            yield await_held(holder)
        finally:
            holder.stop(grace_seconds=0.0)
            holder.wait()

    def _answer(self, argv: Argv, path: str, enter: bytes) -> str:
        """What the program prints in there; nothing if there is none."""
        variables = (("PATH", path),) if path else ()
        prepared = self._runtimes.prepare(
            Launch(argv=argv, variables=variables, limit_seconds=_LIMIT_SECONDS)
        )
        (prepared.folder / "enter").write_bytes(enter)
        return prepared.start().wait().stdout.decode(errors="replace")


def _program(launcher: str, mpirun: str) -> str:
    return launcher_named(launcher, mpirun).wrap((), Launch(argv=("x",)))[0]


def _version_text(program: str) -> str:
    try:
        said = ask([program, "--version"], seconds=_LIMIT_SECONDS)
    except FileNotFoundError as error:
        raise LaunchFailed(f"no such launcher '{program}'") from error
    except OSError as error:
        raise LaunchFailed(f"'{program} --version': {error}") from error
    return said.stdout.decode(errors="replace")


def _library_names(enter: bytes) -> Iterator[str]:
    """Names of files; links are not followed, as they may lead out of the image."""
    root = Path(f"/proc/{enter.split()[0].decode()}/root")
    for pattern in _LIBRARIES:
        for file in root.glob(f"{pattern}/libmpi*.so.*"):
            yield file.name
