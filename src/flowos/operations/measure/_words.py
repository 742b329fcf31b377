"""The command line of a program in an environment: compiled, bundled, its MPI checked."""

import re
from fnmatch import fnmatch
from pathlib import Path

from flowos.engine import Node
from flowos.model import Argv, Exited, MeasureError, NotStarted
from flowos.operations._on_node import outcome_of
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.operations.measure._cases import with_python
from flowos.operations.measure._environments import PreparedEnvironment
from flowos.probes import Build, Program

_MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_TRACED = (("LD_TRACE_LOADED_OBJECTS", "1"),)
_LIMIT_SECONDS = 30.0


def words_in(place: PreparedEnvironment, program: Program, cache: BinaryCache) -> Argv:
    """The command line of a program there, compiled if needed. Raises FlowosError if that fails."""
    if program.mpi_family and program.build:
        return _mpi_words(place, program, program.build, cache)
    if program.script:
        return (program.argv[0], str(cache.script(program.script)), *program.argv[1:])
    if place.binary == "own":
        if program.build is None:
            return with_python(program.argv)
        return (str(cache.built_in(place, program.build)), *program.argv)
    opens = tuple(map(Path, program.opens))
    tool = cache.built(program.build) if program.build else Path(program.argv[0])
    made = cache.bundled(tool, _with_siblings(place.node, opens))
    words = program.argv if program.build else program.argv[1:]
    inside = {str(file): str(made.holds(file)) for file in opens}
    return (*made.words, *(inside.get(word, word) for word in words))


def _with_siblings(node: Node, libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    """The libraries with MKL's parts, which it opens by name and the loader does not list."""
    parts = (
        library.with_name(name)
        for library in libraries
        if library.name.startswith("libmkl_rt")
        for name in sorted(outcome_of(node, "ls", str(library.parent)).stdout.decode().split("\n"))
        if fnmatch(name, "libmkl_*.so*") or fnmatch(name, "libiomp5.so*")
    )
    return tuple(dict.fromkeys((*libraries, *parts)))


def _mpi_words(
    place: PreparedEnvironment, program: Program, build: Build, cache: BinaryCache
) -> Argv:
    """The command line of an MPI program, which always uses the environment's MPI."""
    if place.binary == "own":
        binary = cache.built_in(place, build)
    else:
        binary = cache.alone(cache.built(build))
    if place.env.image is not None:
        _check_mpi_program(place, program, binary)
    return (str(binary), *program.argv)


def _check_mpi_program(place: PreparedEnvironment, program: Program, binary: Path) -> None:
    """Check that this program, started by its mpirun, can run in the environment.

    The MPIs of both sides are compared; then the environment's own loader lists the libraries that
    the program would get there. Raises FlowosError, with the reason, if it cannot run.
    """
    traced = Program(argv=(), variables=_TRACED, limit_seconds=_LIMIT_SECONDS)
    variables = place.launch((), program).variables
    place.node.check_mpi(place.env, program.mpi_family, program.mpirun, variables)
    outcome = place.prepared((str(binary),), traced).run()
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
