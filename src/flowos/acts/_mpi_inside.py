"""Can an MPI program that is started from outside run in an environment?"""

import re
from pathlib import Path

from flowos.acts._places import Place
from flowos.model import FlowosError
from flowos.probes import Program

_MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_TRACED = (("LD_TRACE_LOADED_OBJECTS", "1"),)
_LIMIT_SECONDS = 30.0


def cannot_use(family: str, version: str, binary: Path, place: Place) -> str:
    """Why this MPI program cannot run in the environment; "" if it can.

    The environment's own loader is asked for the libraries that the program would get.
    """
    traced = Program(argv=(), variables=_TRACED, limit_seconds=_LIMIT_SECONDS)
    try:
        outcome = place.run((str(binary),), traced)
    except FlowosError as error:
        return f"a program of the host does not start in it: {error}"
    said = (outcome.stdout + outcome.stderr).decode(errors="replace")
    missing = _MISSING.findall(said)
    if missing:
        return f"it has no {', '.join(missing)}: have {family} {version} in the image"
    if not outcome.ok or "not found" in said:
        return f"a program of the host does not start in it: {said.strip().splitlines()[-1:]}"
    return ""
