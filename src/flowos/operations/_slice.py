"""`fo.slice`: resources for a flow, or nodes of a pool held for several flows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Unpack, overload

from flowos.engine import Emit, Slice, SliceOptions, Workers, here, open_slice, remedy_of
from flowos.model import Flow, OnProgress, Port, SliceRefused, brief_repr, flow_output
from flowos.operations._files import path_complaint
from flowos.operations._process_record import note
from flowos.operations.environment import Word, environment

if TYPE_CHECKING:  # a slice without a pool loads none of it
    from flowos.engine import FlowSlice, HeldSlice, OnHoldEvent, ProgressWatch
    from flowos.model import Ask, Pool

_WORKERS = ("thread", "process", "inline")
_FUSE = ("chains", "none")
Flowing = Flow | Port | Sequence[Port]
T = TypeVar("T")


class SliceKeywords(TypedDict, total=False):
    """Keywords of every slice."""

    cores: int | None
    folder: str | PathLike[str] | None
    fuse: Literal["chains", "none"]
    emit: Emit | None
    journal: str | PathLike[str] | None
    log: str | PathLike[str] | None
    progress: bool | OnProgress


class PoolKeywords(SliceKeywords, total=False):
    """Keywords of a slice of a pool."""

    env: Word
    workers: Workers | None
    nodes: int
    seconds: float | None
    requeue: bool
    on_event: "OnHoldEvent"


@overload
def slice_(
    flow: Flowing, env: Word = ..., workers: Workers | None = ..., **how: Unpack[SliceKeywords]
) -> Slice: ...
@overload
def slice_(flow: Flowing, *, pool: str, **how: Unpack[PoolKeywords]) -> "FlowSlice": ...
@overload
def slice_(*, pool: str, **how: Unpack[PoolKeywords]) -> "HeldSlice": ...
def slice_(  # noqa: PLR0913 - options, each by keyword
    flow: Flowing | None = None,
    env: Word = None,
    workers: Workers | None = None,
    *,
    cores: int | None = None,
    folder: str | PathLike[str] | None = None,
    fuse: Literal["chains", "none"] = "chains",
    emit: Emit | None = None,
    journal: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    progress: bool | OnProgress = False,
    pool: str | None = None,
    nodes: int | None = None,
    seconds: float | None = None,
    requeue: bool = True,
    on_event: "OnHoldEvent | None" = None,
) -> "Slice | FlowSlice | HeldSlice":
    """Compile a flow once, to be run many times on this node, or on nodes of a pool.

    flow: from `flow_output`, or its ports. None, with a pool: `s.run(flow, ...)` names one.
    env: the environment of its tasks: None or "bare", an image by path or name, optionally with
    @RUNTIME, or what `environment` returned. The image is made ready once.
    workers: "thread" in threads of this process (the default, but not in an image); "process" in
    worker processes, in an image by its own python3; "inline" in the calling thread only. cores:
    how many of a node to reserve; by default all that we may use.
    folder: where files that commands write are kept; without it they are removed by `free`.
    fuse: "chains" runs Python tasks that can only follow one another as one, "none" each by itself,
    so that events name it alone. emit: called when stages of tasks start and end.
    journal: a folder that keeps the results of all tasks, so that a killed program goes on. A task
    runs again if its code, what that names in your own modules, its values or files (by name and
    content), Python or the image changed. What it reads otherwise is not seen: clock, random seed.
    log: a file that gets a line of JSON for each task: `flowos show FILE`. progress: True shows on
    a terminal how far runs are; or a function that is called with it. pool: one of flowos.toml, or
    "local". nodes: how many of it, 1 by default. seconds: for how long at most. requeue: what ran
    on a node that is lost runs again on another one; False where a task may not run twice.
    on_event: called while waiting for nodes, when a node is lost, when the time is over.
    Raises SliceRefused for what is not available, EnvironmentRefused for an unusable image or
    runtime, WiringError for what is no flow, ValueRefused for a missing file that the flow names,
    SettingsError for a mistake in flowos.toml.
    """
    found = _pool(pool, flow, nodes, seconds)
    made = flow if flow is None or isinstance(flow, Flow) else flow_output(flow)
    how = SliceKeywords(cores=cores, folder=folder, fuse=fuse, emit=emit, journal=journal, log=log)
    with _refused_where_short():
        options = _options(found, env, workers, {**how, "progress": progress})
        if found is None:
            assert made is not None
            return open_slice(made, here(), options)
        return _on(_held(found, _ask(nodes, seconds), options, on_event, requeue=requeue), made)


@contextmanager
def _refused_where_short() -> Iterator[None]:
    """Raises SliceRefused where the node is short of something."""
    try:
        yield
    except OSError as error:
        raise SliceRefused(f"slice: it cannot be opened: {error}{remedy_of(error)}") from error


def _options(
    pool: "Pool | None", env: Word, workers: Workers | None, how: SliceKeywords
) -> SliceOptions:
    return SliceOptions(
        workers=_one_of("workers", workers, (None, *_WORKERS)),
        env=environment(env if env is not None or pool is None else pool.env),
        cores=_cores(how["cores"], pool),
        folder=_absolute("folder", how["folder"]),
        fuse=None if _one_of("fuse", how["fuse"], _FUSE) == "chains" else "none",
        emit=how["emit"],
        journal=_absolute("journal", how["journal"]),
        log=_absolute("log", how["log"]),
        progress=_watch(how["progress"]),
        on_usage=partial(note, "local" if pool is None else pool.name),
    )


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


def _absolute(option: str, path: str | PathLike[str] | None) -> Path | None:
    if path is None:
        return None
    if complaint := path_complaint(path):
        raise SliceRefused(f"slice: {option}: {complaint}")
    return Path(path).absolute()


def _pool(
    name: str | None, flow: object, nodes: int | None, seconds: float | None
) -> "Pool | None":
    """The pool of this name; None for this node."""
    if name is not None:
        from flowos.operations.settings import pool_named

        return pool_named(name)
    if flow is None:
        raise SliceRefused("slice: give it a flow, or a pool for several: fo.slice(pool='local')")
    if nodes is not None or seconds is not None:
        raise SliceRefused("slice: nodes and seconds are asked of a pool: add pool='local'")
    return None


def _held(
    pool: "Pool",
    ask: "Ask",
    options: SliceOptions,
    on_event: "OnHoldEvent | None",
    *,
    requeue: bool,
) -> "HeldSlice":
    from flowos.engine import HeldSlice, ignore, provider_of

    return HeldSlice(provider_of(pool), ask, options, on_event or ignore, requeue=requeue)


def _ask(nodes: int | None, seconds: float | None) -> "Ask":
    from flowos.model import Ask

    try:
        return Ask(nodes=1 if nodes is None else nodes, seconds=seconds)
    except (TypeError, ValueError) as error:
        raise SliceRefused(f"slice: {error}") from error


def _on(held: "HeldSlice", flow: Flow | None) -> "FlowSlice | HeldSlice":
    if flow is None:
        return held
    from flowos.engine import FlowSlice

    return FlowSlice(held, flow)


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
