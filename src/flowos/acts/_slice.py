"""`fo.slice`: a flow gets a place to run."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from flowos.engine.local import Emit, Slice, Workers, open_slice
from flowos.model import BARE, Environment, Flow, Port, SliceRefused, flow_output, shown

_WORKERS = ("thread", "process", "inline")


def slice_(
    flow: Flow | Port | Sequence[Port],
    env: Environment | None = None,
    workers: Workers = "thread",
    *,
    cores: int | None = None,
    folder: str | PathLike[str] | None = None,
    emit: Emit | None = None,
) -> Slice:
    """Compile a flow once, to be run many times on this node.

    flow: from `flow_output`, or the ports that would be given to it.
    workers: "thread" in threads of this process; "process" in worker processes; "inline" in the
    calling thread only.
    cores: how many to hold; all that we may use by default.
    folder: where files that commands write are kept; without it they are removed by `free`.
    emit: is told when units of tasks start and end.
    Raises SliceRefused for what is not to be had here, WiringError for what is no flow,
    ValueRefused for a file written into the flow that is not there.
    """
    if workers not in _WORKERS:
        raise SliceRefused(f"slice: workers={shown(workers)}; one of {', '.join(_WORKERS)}")
    if env is not None and env != BARE:
        raise SliceRefused(
            f"slice: env={shown(env)}; flows run bare so far, leave env away or give None"
        )
    if cores is not None and (type(cores) is not int or cores < 1):
        raise SliceRefused(f"slice: cores={shown(cores)}; expected a positive int")
    return open_slice(
        flow if isinstance(flow, Flow) else flow_output(flow),
        workers=workers,
        cores=cores,
        folder=None if folder is None else Path(folder).absolute(),
        emit=emit,
    )
