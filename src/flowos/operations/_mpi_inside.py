"""Can an MPI program that is started from outside run in an environment?"""

import re
from pathlib import Path

from flowos import engine
from flowos.model import Exited, MeasureError, NotStarted
from flowos.operations._prepared_environments import PreparedEnvironment
from flowos.probes import Program

_MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_TRACED = (("LD_TRACE_LOADED_OBJECTS", "1"),)
_LIMIT_SECONDS = 30.0


def check_mpi_program(program: Program, binary: Path, place: PreparedEnvironment) -> None:
    """FlowosError: why this program, started by that starter, cannot run in the environment.

    The MPI of both sides is compared; then the environment's own loader is asked for the libraries
    that the program would get there.
    """
    traced = Program(argv=(), variables=_TRACED, limit_seconds=_LIMIT_SECONDS)
    launch = place.launch((str(binary),), traced)
    engine.check_mpi(place.env, program.mpi_family, program.starter, launch.variables)
    outcome = engine.run(launch)
    said = (outcome.stdout + outcome.stderr).decode(errors="replace").strip()
    if isinstance(outcome.end, NotStarted):
        said = "the image has no C library like the host's"
    elif missing := _MISSING.findall(said):
        said = f"the image has no {', '.join(missing)}"
    elif outcome.end == Exited(0) and "not found" not in said:
        return
    raise MeasureError(
        f"{place.label}: the host's program does not start in it: {said}; measure --binary own"
    )
