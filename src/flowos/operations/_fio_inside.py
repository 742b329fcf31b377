"""Does each environment's fio get its answers by libaio? Asked where io_uring is out for all.

What a libaio calls depends on its version, and some containers let its older calls through only:
so it is not the system call that is tried, but the fio that will measure.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flowos.model import Argv, Facts, FlowosError, Tried
from flowos.operations._binary_cache import BinaryCache
from flowos.operations._prepared_environments import PreparedEnvironment
from flowos.probes import Program, allowed_everywhere

_LIMIT_SECONDS = 30.0
_JOB = (
    "--name=try",
    "--filename={scratch}/flowos-try",
    "--size=64k",
    "--rw=randread",
    "--ioengine=libaio",
    "--unlink=1",
)


def with_libaio_tried(
    places: Sequence[PreparedEnvironment], node: Facts, shelf: BinaryCache
) -> tuple[PreparedEnvironment, ...]:
    """The places, with "libaio" among what was tried; as they are where it is not needed."""
    works = {t.name: t.works for t in allowed_everywhere(p.entered for p in places)}
    if works.get("io_uring", False):
        return tuple(places)
    return tuple(_tried(place, node, shelf) for place in places)


def _tried(place: PreparedEnvironment, node: Facts, shelf: BinaryCache) -> PreparedEnvironment:
    try:
        words = _fio(place, node, shelf)
        outcome = place.run((*words, *_JOB), Program(argv=(), limit_seconds=_LIMIT_SECONDS))
    except FlowosError:  # the case that needs it says why
        return place
    said = (outcome.stdout + outcome.stderr).decode(errors="replace").splitlines()
    complaints = (line.rpartition("error=")[2] for line in said if line.startswith("fio: "))
    complaint = f"fio: {next(complaints, outcome.end)}"
    tried = Tried(name="libaio", works=outcome.ok, says="" if outcome.ok else complaint)
    return replace(place, entered=replace(place.entered, tried=(*place.entered.tried, tried)))


def _fio(place: PreparedEnvironment, node: Facts, shelf: BinaryCache) -> Argv:
    """The words that start the fio that will measure there. FlowosError: there is none."""
    facts = node if place.binary == "same" else place.facts
    tool = facts.tool("fio") if isinstance(facts, Facts) else None
    if tool is None:
        raise FlowosError("no fio")
    if place.binary == "own":
        return (str(tool.path),)
    return shelf.bundled(Path(tool.path)).words
