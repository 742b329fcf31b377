"""Programs compiled where they run: in an image or on another node, by its own compiler."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import as_file
from pathlib import Path, PurePath

from flowos.engine import RunningProcess
from flowos.model import Argv, MeasureError, Outcome
from flowos.operations.measure._environments import PreparedEnvironment
from flowos.probes import SOURCE_SECONDS, Build, Program, package_data

_TICK_SECONDS = 0.02


def compile_in(place: PreparedEnvironment, build: Build, made: Path) -> None:
    """Make this file with its own compiler, and for its own processors.

    Each source is compiled by itself, side by side, where that does not boot a guest each time.
    Raises MeasureError, with the compiler's first error, if it cannot be made.
    """
    folder = _sources_in(place, build)
    including = (*build.flags, *((f"-I{folder}",) if build.include_folder else ()))
    parts = [str(folder / name) for name in (build.source, *build.also)]
    if build.also and not place.env.boot:
        objects = {place.folder / f"{each.key}.o": each for each in build.objects}
        commands = {
            file: (*each.compiler, *including, "-c", str(folder / each.source), "-o", str(file))
            for file, each in objects.items()
        }
        _make(place, build, commands, SOURCE_SECONDS)
        parts = list(map(str, objects))
    words = (build.compiler, *including, *parts, "-o", str(made), *build.libraries)
    _make(place, build, {made: words}, build.limit_seconds)


def _sources_in(place: PreparedEnvironment, build: Build) -> Path:
    """Their folder, as it is seen there."""
    if place.env.image is None:
        return Path(str(package_data(build.folder)))
    copy = place.folder / PurePath(build.folder).name
    if not copy.exists():
        with as_file(package_data(build.folder)) as folder:
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def _make(
    place: PreparedEnvironment, build: Build, commands: Mapping[Path, Argv], limit_seconds: float
) -> None:
    """Make the files that are not there yet, as many at once as there are cores.

    Raises MeasureError for the first that cannot be made; the others are stopped then, and no part
    of a file is left.
    """
    limited = Program(argv=(), limit_seconds=limit_seconds)
    left = [(file, words) for file, words in commands.items() if not file.exists()][::-1]
    running: dict[Path, RunningProcess] = {}
    try:
        while left or running:
            while left and len(running) < len(place.node.ledger.whole.cpus):
                file, words = left.pop()
                running[file] = place.prepared(words, limited).start()
            for file in _ended(running):
                _check(place, build, file, place.started(running.pop(file).wait()))
    finally:
        for each in running.values():
            each.stop()
        for file, each in running.items():
            each.wait()
            file.unlink(missing_ok=True)


def _ended(running: Mapping[Path, RunningProcess]) -> list[Path]:
    """Waits a little for one."""
    with suppress(TimeoutError):
        next(iter(running.values())).wait(_TICK_SECONDS)
    return [file for file, each in running.items() if each.done]


def _check(place: PreparedEnvironment, build: Build, made: Path, outcome: Outcome) -> None:
    if outcome.ok and made.exists():
        return
    made.unlink(missing_ok=True)
    said = outcome.stderr.decode(errors="replace").strip().splitlines()
    errors = (line for line in said if "error" in line)
    why = next(errors, said[-1] if said else str(outcome.end))
    raise MeasureError(f"{place.label}: {build.source} cannot be compiled: {why}")
