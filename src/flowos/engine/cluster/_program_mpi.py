"""Before ranks are started: was their program built with the MPI that starts them?

Guards of the launcher make another one fail, in that library's own words; this says it first, where
the program's file shows it.
"""

import mmap
import shutil
from pathlib import Path

from flowos.drivers import needed_libraries, other_mpi
from flowos.model import Launch, LaunchFailed


def refuse_other_mpi(launch: Launch, launcher: str) -> None:
    """Raises LaunchFailed if it was built with another one."""
    program = launch.argv[0]
    path = dict(launch.variables).get("PATH", "")
    found = str(launch.cwd / program) if "/" in program else shutil.which(program, path=path)
    libraries = _libraries(Path(found)) if found else ()
    if reason := other_mpi(launcher, program, libraries):
        raise LaunchFailed(f"{reason.text}; {reason.remedy}")


def _libraries(program: Path) -> tuple[str, ...]:
    try:
        with (
            program.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return needed_libraries(content)  # type: ignore[arg-type]  # sliced as bytes are
    except (OSError, ValueError):  # this machine does not see it, or it is empty
        return ()
