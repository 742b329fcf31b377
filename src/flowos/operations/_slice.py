"""`fo.slice`: resources for a flow, or nodes of a pool held for several flows."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Unpack,
    overload,
)

from flowos._dataclasses import replace
from flowos.engine import (
    Flowing,
    OnStage,
    Slice,
    SliceOptions,
    Workers,
    here,
    open_slice,
    remedy_of,
)
from flowos.model import Flow, OnProgress, SliceRefused, brief_repr, flow_output
from flowos.operations._answers import answer
from flowos.operations._fpgas import know_fpgas
from flowos.operations._process_record import listen
from flowos.operations._slice_options import DEFAULTS, SliceKeywords, options_of
from flowos.operations.environment import Word

if TYPE_CHECKING:  # a slice without a pool loads none of it
    from flowos.engine import FlowSlice, HeldSlice, OnHoldEvent, Provider
    from flowos.model import Ask, Pool, Topology
    from flowos.plan import NodeRange

_IDLE_SECONDS = 300.0
_Devices = Mapping[str, int] | None
_Nodes = int | tuple[int, int] | None
_Seconds = float | None
Local = Literal["thread", "process", "inline"]


class _Asked(NamedTuple):
    """What is asked of a pool, as it is given."""

    nodes: _Nodes
    idle_seconds: _Seconds
    seconds: _Seconds
    lease_seconds: _Seconds
    gpus: int | None
    memory_bytes: int | None
    devices: _Devices
    topology: "Topology | None"
    address: str | None
    kernel: str | None = None
    cores: int | None = None


class PoolKeywords(SliceKeywords, total=False):
    """Keywords of a slice of a pool."""

    env: Word
    workers: Workers | None
    nodes: int | tuple[int, int]
    idle_seconds: float | None
    seconds: float | None
    lease_seconds: float | None
    gpus: int | None
    memory_bytes: int | None
    devices: _Devices
    topology: "Topology | None"
    requeue: bool
    on_event: "OnHoldEvent"


@overload
def slice_(
    flow: Flowing, env: Word = ..., workers: Local | None = ..., **how: Unpack[SliceKeywords]
) -> Slice: ...
@overload
def slice_(
    flow: Flowing,
    *,
    workers: Literal["ray"],
    address: str | None = ...,
    **how: Unpack[SliceKeywords],
) -> "FlowSlice": ...
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
    on_stage: OnStage | None = None,
    journal: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    progress: bool | OnProgress = False,
    engines: Sequence[str] | None = None,
    address: str | None = None,
    pool: str | None = None,
    nodes: int | tuple[int, int] | None = None,
    idle_seconds: float | None = None,
    seconds: float | None = None,
    lease_seconds: float | None = None,
    gpus: int | None = None,
    memory_bytes: int | None = None,
    devices: Mapping[str, int] | None = None,
    topology: "Topology | None" = None,
    requeue: bool = True,
    on_event: "OnHoldEvent | None" = None,
) -> "Slice | FlowSlice | HeldSlice":
    """Compile a flow once, to be run many times on this node, or on nodes of a pool.

    flow: from `flow_output`, or its ports; with a pool None, for `s.run(flow)`. env: of its tasks:
    None or "bare", an image (path or name, with @RUNTIME), an `environment`. workers: "thread" (the
    default outside images), "process" (in an image its python3), "inline", "ray" (on the nodes, or
    at address). cores: of a node, or all. folder: for files of commands; else `free` removes them.
    fuse: "chains" of Python tasks run as one, or "none". on_stage: called as stages start and end.
    journal: a folder for results: killed programs go on. log: a file of JSON lines, one a task.
    progress: True, on a terminal, or a function. engines: of tasks by `either`. pool: of
    flowos.toml, or "local". nodes: of it, 1 by default; (MIN, MAX): one more while work waits, one
    less idle for idle_seconds (300). seconds: at most. lease_seconds: after this program. gpus,
    memory_bytes, devices ({"fpga": 1}): of each node. topology: "pack", "switch", "spread".
    requeue: what a lost node ran. on_event: gets events. Raises FlowosError if it cannot be had.

    >>> with fo.slice(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64)))) as s:
    ...     s.run(np.array([3, 1, 2])), list(s.map([np.array([5, 4])]))
    ([array([1, 2, 3])], [[array([4, 5])]])
    """
    held = (nodes, idle_seconds, seconds, lease_seconds, gpus, memory_bytes, devices, topology)
    found = _pool(pool, workers, flow, ask := _Asked(*held, address))
    how = SliceKeywords(cores=cores, folder=folder, fuse=fuse, journal=journal, log=log)
    how |= {"on_stage": on_stage, "progress": progress, "engines": engines}
    options = slice_options(found, env, workers, how)
    return _new(found, flow, ask, options, on_event, requeue=requeue)


def _new(
    pool: "Pool | None",
    given: Flowing | None,
    asked: _Asked,
    options: SliceOptions,
    on_event: "OnHoldEvent | None",
    *,
    requeue: bool,
) -> "Slice | FlowSlice | HeldSlice":
    flow = given if given is None or isinstance(given, Flow) else flow_output(given)
    with _refused_where_short():
        if pool is None:
            return _opened(flow, options)
        return _on(_held(pool, flow, asked, options, on_event, requeue=requeue), flow)


def _opened(flow: Flow | None, options: SliceOptions) -> Slice:
    """On this node. Inline flows get no thread: their program may fork without a second one."""
    assert flow is not None
    know_fpgas(flow)
    opened = open_slice(flow, here(), options)
    if options.workers != "inline":
        listen(answer)
    return opened


def slice_options(
    pool: "Pool | None", env: Word, workers: Workers | None, how: SliceKeywords
) -> SliceOptions:
    """Of a slice of a pool, where keywords may be left away."""
    with _refused_where_short():
        return options_of(pool, env, workers, {**DEFAULTS, **how})


@contextmanager
def _refused_where_short() -> Iterator[None]:
    """Raises SliceRefused where the node is short of something."""
    try:
        yield
    except OSError as error:
        raise SliceRefused(f"slice: it cannot be opened: {error}{remedy_of(error)}") from error


def _pool(name: str | None, workers: Workers | None, flow: object, asked: _Asked) -> "Pool | None":
    """The pool of this name; None for this node. asked: what only a pool has."""
    if asked.address is not None and (workers != "ray" or name not in (None, "local")):
        raise SliceRefused("slice: address is of a Ray that exists: give workers='ray', no pool")
    if workers == "ray" and name is None:
        name = "local"
    if name is not None:
        from flowos.operations.settings import pool_named

        found = pool_named(name)
        if found.kind == "local":
            know_fpgas()
        return found
    if flow is None:
        raise SliceRefused("slice: give it a flow, or a pool for several: fo.slice(pool='local')")
    for option, value in asked._asdict().items():
        if value is not None:
            raise SliceRefused(f"slice: {option} is asked of a pool: add pool='local'")
    return None


def _held(
    pool: "Pool",
    flow: Flow | None,
    asked: _Asked,
    options: SliceOptions,
    on_event: "OnHoldEvent | None",
    *,
    requeue: bool,
) -> "HeldSlice":
    from flowos.engine import GrowingSlice, HeldSlice, RaySlice, ignore, provider_of
    from flowos.operations._left_slices import freeing_left
    from flowos.operations._pool_kinds import kind_of_pool
    from flowos.operations._slice_record import RecordedProvider

    asked = asked._replace(kernel=options.env.kernel, cores=options.cores)
    options = without_kernel(options)
    provider = RecordedProvider(provider_of(pool), str(options.log or ""))
    bounds, ask = _asked_of(provider, asked, flow)
    kind: Callable[..., HeldSlice] = HeldSlice
    if options.workers == "ray":
        if bounds is not None:
            raise SliceRefused("slice: workers='ray': its Ray stays on its nodes: say how many")
        kind = partial(RaySlice, address=asked.address)
    elif bounds is not None:
        kind = partial(GrowingSlice, bounds=bounds)
    on_event = on_event or ignore
    on_event = freeing_left(on_event) if kind_of_pool(pool.kind).frees_left else on_event
    held = kind(provider, ask, options, on_event, requeue=requeue)
    provider.belongs_to(held)
    return held


def without_kernel(options: SliceOptions) -> SliceOptions:
    """Nodes have booted it when they are held."""
    return replace(options, env=replace(options.env, kernel=""))


def check_slice(flow: Flow, pool: str, **how: Any) -> None:
    """Raises what `slice_` with these keywords would before it waits for nodes."""
    from flowos.engine import provider_of
    from flowos.operations.settings import pool_named

    asked = _Asked(**{**dict.fromkeys(_Asked._fields), **how})
    provider = provider_of(pool_named(pool))
    provider.check(_asked_of(provider, asked, flow)[1])


def _asked_of(
    provider: "Provider", asked: _Asked, flow: Flow | None
) -> "tuple[NodeRange | None, Ask]":
    bounds = _bounds(asked)
    _refuse_kernel(provider.pool, asked)
    ask = _ask_for(provider, asked, flow)
    _refuse_short(provider.pool, ask, flow)
    return bounds, ask


def _bounds(asked: _Asked) -> "NodeRange | None":
    """Between which a slice grows; None of one that does not."""
    from flowos.plan import NodeRange

    nodes, idle_seconds = asked.nodes, asked.idle_seconds
    if not isinstance(nodes, tuple | list):
        if idle_seconds is not None:
            raise SliceRefused("slice: idle_seconds is of a slice that grows: nodes=(MIN, MAX)")
        return None
    if len(nodes) != 2:
        raise SliceRefused(f"slice: nodes={brief_repr(nodes)}; expected a number or (MIN, MAX)")
    if asked.lease_seconds is not None:
        raise SliceRefused("slice: lease_seconds is of a number of nodes: one that grows has none")
    if asked.topology is not None:
        raise SliceRefused("slice: topology is of nodes held at once, and one that grows holds one")
    seconds = _IDLE_SECONDS if idle_seconds is None else idle_seconds
    try:
        return NodeRange(min_nodes=nodes[0], max_nodes=nodes[1], idle_seconds=seconds)
    except ValueError as error:
        raise SliceRefused(f"slice: {error}") from None


def _ask_for(provider: "Provider", asked: _Asked, flow: Flow | None) -> "Ask":
    """With the first of what would do for the tasks that the pool can give at all."""
    from flowos.plan import max_choices

    last = (max_choices(flow) if flow else 1) - 1
    for choice in range(last):
        with suppress(SliceRefused):
            ask = _ask(provider.pool, asked, flow, choice)
            provider.check(ask)
            return ask
    return _ask(provider.pool, asked, flow, last)


def _ask(pool: "Pool", asked: _Asked, flow: Flow | None, choice: int) -> "Ask":
    from flowos.model import Ask

    try:
        count = 1 if asked.nodes is None or isinstance(asked.nodes, tuple | list) else asked.nodes
        each = _asked_of_each(pool, asked, flow if asked.address is None else None, choice)
        times: Any = {"seconds": asked.seconds, "lease_seconds": asked.lease_seconds}
        return Ask(
            nodes=count, **each, topology=asked.topology or "", kernel=asked.kernel or "", **times
        )
    except (TypeError, ValueError) as error:
        raise SliceRefused(f"slice: {error}") from error


def _refuse_kernel(pool: "Pool", asked: _Asked) -> None:
    from flowos.operations._pool_kinds import kind_of_pool

    if asked.kernel and not kind_of_pool(pool.kind).boots_kernels:
        whose = f"the Ray at {asked.address}" if asked.address else f"pool {pool.name!r}"
        raise SliceRefused(
            f"slice: kernel={asked.kernel!r:.80}: {whose} ({pool.kind}) boots no nodes into a "
            "kernel; a pool of kind slurm does"
        )


def _refuse_short(pool: "Pool", ask: "Ask", flow: Flow | None) -> None:
    """Raises SliceRefused before nodes are waited for that are held too shortly for a task."""
    from flowos.plan import lacking_time, tasks_within

    limit = pool.seconds_of(ask)
    seconds = math.inf if limit is None else limit
    for task in tasks_within(flow) if flow else ():
        whys = [lacking_time(needs, seconds) for needs in task.needs.choices]
        if all(whys):
            raise SliceRefused(f"slice: task {task.name!r} needs {', or '.join(whys)}")


def _asked_of_each(pool: "Pool", asked: _Asked, flow: Flow | None, choice: int) -> dict[str, Any]:
    """Of each node: as it is given, else the largest needs of the flow's tasks."""
    from flowos.plan import devices_needed, gpus_needed, memory_needed

    largest: dict[str, Callable[[Flow, int], object]] = {
        "gpus": gpus_needed,
        "memory_bytes": memory_needed,
        "devices": devices_needed,
    }
    given = {name: getattr(asked, name) for name in largest}
    needed = {name: look(flow, choice) for name, look in largest.items()} if flow else {}
    each = {**needed, **{name: value for name, value in given.items() if value is not None}}
    return {**each, "cores": _cores_of_each(pool, asked.cores, flow, choice)}


def _cores_of_each(pool: "Pool", given: int | None, flow: Flow | None, choice: int) -> int | None:
    """Of nodes that are waited for. Others are there: a task that lacks cores is named then."""
    from flowos.operations._pool_kinds import kind_of_pool
    from flowos.plan import cores_needed

    if kind_of_pool(pool.kind).here:
        return None
    most = max(given or 1, pool.cores or 1, cores_needed(flow, choice) if flow else 1)
    return most if most > 1 else None


def _on(held: "HeldSlice", flow: Flow | None) -> "FlowSlice | HeldSlice":
    if flow is None:
        return held
    from flowos.engine import FlowSlice

    return FlowSlice(held, flow)
