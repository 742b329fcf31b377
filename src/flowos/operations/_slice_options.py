"""Keywords of `fo.slice`, and what they ask for."""

from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from flowos.engine import OnStage, SliceOptions, Workers
from flowos.model import OnProgress, SliceRefused, brief_repr
from flowos.operations._files import path_complaint
from flowos.operations._process_record import note
from flowos.operations.environment import Word, environment

if TYPE_CHECKING:
    from flowos.engine import ProgressWatch
    from flowos.model import Pool

_WORKERS = ("thread", "process", "inline", "ray")
_FUSE = ("chains", "none")
_ENGINES = ("python", "cpu", "opencl", "cuda", "hdl", "r", "julia")
T = TypeVar("T")


class SliceKeywords(TypedDict, total=False):
    """Keywords of every slice."""

    cores: int | None
    folder: str | PathLike[str] | None
    fuse: Literal["chains", "none"]
    on_stage: OnStage | None
    journal: str | PathLike[str] | None
    log: str | PathLike[str] | None
    progress: bool | OnProgress
    engines: Sequence[str] | None


DEFAULTS = SliceKeywords(
    cores=None,
    folder=None,
    fuse="chains",
    on_stage=None,
    journal=None,
    log=None,
    progress=False,
    engines=None,
)


def options_of(
    pool: "Pool | None", env: Word, workers: Workers | None, how: SliceKeywords
) -> SliceOptions:
    return SliceOptions(
        workers=_one_of("workers", workers, (None, *_WORKERS)),
        env=environment(env if env is not None or pool is None else pool.env),
        cores=_cores(how["cores"], pool),
        folder=_absolute("folder", how["folder"]),
        fuse=None if _one_of("fuse", how["fuse"], _FUSE) == "chains" else "none",
        on_stage=_called("on_stage", how["on_stage"]),
        journal=_absolute("journal", how["journal"]),
        log=_absolute("log", how["log"]),
        progress=_watch(how["progress"]),
        engines=_engines(how["engines"]),
        on_usage=partial(note, "local" if pool is None else pool.name),
    )


def _engines(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    listed = isinstance(given, (tuple, list)) and given and set(map(type, given)) == {str}
    if not listed or not set(given) <= set(_ENGINES):  # type: ignore[call-overload]
        known = ", ".join(_ENGINES)
        raise SliceRefused(f"slice: engines={brief_repr(given)}; a tuple of one or more of {known}")
    return tuple(given)  # type: ignore[arg-type]


def _watch(progress: bool | OnProgress) -> "ProgressWatch | None":
    if progress is False:
        return None
    if progress is not True and not callable(progress):
        words = brief_repr(progress)
        raise SliceRefused(f"slice: progress={words}; expected True, False or a function")
    from flowos.engine import ProgressWatch
    from flowos.operations._status_line import CalledProgress, shown_progress

    sink = shown_progress() if progress is True else CalledProgress(progress)
    return None if sink is None else ProgressWatch(sink)


def _called(option: str, given: OnStage | None) -> OnStage | None:
    if given is not None and not callable(given):
        raise SliceRefused(f"slice: {option}={brief_repr(given)}; expected a function")
    return given


def _absolute(option: str, path: str | PathLike[str] | None) -> Path | None:
    if path is None:
        return None
    if complaint := path_complaint(path):
        raise SliceRefused(f"slice: {option}: {complaint}")
    return Path(path).absolute()


def _cores(cores: int | None, pool: "Pool | None") -> int | None:
    if cores is None:
        return pool.cores if pool else None
    if type(cores) is not int or cores < 1:
        raise SliceRefused(f"slice: cores={brief_repr(cores)}; expected a positive int")
    return cores


def _one_of(name: str, given: T, known: Sequence[object]) -> T:
    if given not in known:
        words = ", ".join(str(each) for each in known if each is not None)
        raise SliceRefused(f"slice: {name}={brief_repr(given)}; one of {words}")
    return given
