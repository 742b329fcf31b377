"""`flowos notebook`: JupyterLab on a node of a pool, until Ctrl-C."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.drivers import GuestPlan, guest_named
from flowos.engine import here
from flowos.model import Argv
from flowos.operations._pool_kinds import kind_of_pool
from flowos.operations._slice import slice_
from flowos.operations.settings import pool_named

if TYPE_CHECKING:
    from flowos.engine import OnHoldEvent

_IN_TIME_SECONDS = 5.0
"""So long before its end a scheduler may end what it has given."""


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """One that is served. url: of its page, on this machine."""

    url: str
    node: str
    pool: str


def serve_notebook(
    pool: str,
    nodes: int | None,
    seconds: float | None,
    *,
    on_served: Callable[[Notebook], None],
    on_event: "OnHoldEvent",
) -> str:
    """Serve it until it ends or an interrupt comes. How it ended, "" if well.

    Raises SliceRefused if there are no nodes, or no Jupyter on them.
    """
    with (
        slice_(
            pool=pool,
            nodes=1 if nodes is None else nodes,
            seconds=seconds,
            on_event=on_event,
            env="bare",
        ) as s,
        s.guest("jupyter") as at,
    ):
        on_served(Notebook(url=at.address, node=s.nodes[0], pool=pool))
        end, until = at.wait(), s.held.until
        over = seconds and until is not None and time.time() > until - _IN_TIME_SECONDS
        return f"its {seconds:g} s are over" if end and over else end


def notebook_command(pool: str) -> Argv:
    """What would be started on a node. Raises SliceRefused if there is no such pool."""
    is_here = kind_of_pool(pool_named(pool).kind).here
    has = here().resources()
    plan = GuestPlan(
        python=sys.executable,
        cores=len(has.cpus),
        memory_bytes=has.memory_bytes,
        head_cores=0,
        secret="",
        files=Path("FOLDER"),
        pem=Path("CERTIFICATE"),
        ours="",
        here=is_here,
        cwd=Path.cwd(),
    )
    words = guest_named("jupyter").head(plan).argv
    return tuple(word.replace("{flowos-address}", "ADDRESS") for word in words)
