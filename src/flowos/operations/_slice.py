"""`fo.slice`: a flow gets a place to run."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

from flowos.engine import here
from flowos.engine.local import Emit, Slice, SliceOptions, Workers, open_slice, remedy_of
from flowos.model import Flow, Port, SliceRefused, flow_output, shown
from flowos.operations.environment import Word, environment

_WORKERS = ("thread", "process", "inline")
_FUSE = ("chains", "none")


def slice_(
    flow: Flow | Port | Sequence[Port],
    env: Word = None,
    workers: Workers | None = None,
    *,
    cores: int | None = None,
    folder: str | PathLike[str] | None = None,
    fuse: Literal["chains", "none"] = "chains",
    emit: Emit | None = None,
) -> Slice:
    """Compile a flow once, to be run many times on this node.

    flow: from `flow_output`, or the ports that would be given to it.
    env: in what its tasks run: None or "bare", an image by path or name, optionally followed by
    @RUNTIME, or what `environment` made. The image is made ready once, here.
    workers: "thread" in threads of this process (the default, but not in an image); "process" in
    worker processes, in an image by its own python3; "inline" in the calling thread only.
    cores: how many to hold; all that we may use by default.
    folder: where files that commands write are kept; without it they are removed by `free`.
    fuse: "chains" runs Python tasks that can only follow one another as one; "none" places each
    task by itself, so that events name it alone.
    emit: is told when stages of tasks start and end.
    Raises SliceRefused for what is not to be had here, EnvironmentRefused for an image or runtime
    that cannot be used, WiringError for what is no flow, ValueRefused for a file written into the
    flow that is not there.
    """
    if workers is not None and workers not in _WORKERS:
        raise SliceRefused(f"slice: workers={shown(workers)}; one of {', '.join(_WORKERS)}")
    if fuse not in _FUSE:
        raise SliceRefused(f"slice: fuse={shown(fuse)}; one of {', '.join(_FUSE)}")
    if cores is not None and (type(cores) is not int or cores < 1):
        raise SliceRefused(f"slice: cores={shown(cores)}; expected a positive int")
    try:
        options = SliceOptions(
            workers=workers,
            env=environment(env),
            cores=cores,
            folder=None if folder is None else Path(folder).absolute(),
            fuse=None if fuse == "chains" else fuse,
            emit=emit,
        )
        return open_slice(flow if isinstance(flow, Flow) else flow_output(flow), here(), options)
    except OSError as error:  # the node is short of something
        raise SliceRefused(f"slice: it cannot be opened: {error}{remedy_of(error)}") from error
