"""Nodes of a pool, held to be measured on."""

from collections.abc import Iterator
from contextlib import contextmanager

from flowos.engine import HoldEvent, LaunchGroup, OnHoldEvent
from flowos.model import Deployment, OnProgress, Progress
from flowos.operations._pool_kinds import kind_of_pool
from flowos.operations._scratch import own_storage_of
from flowos.operations._slice import slice_
from flowos.operations.measure import DeployedOn
from flowos.operations.settings import pool_named


@contextmanager
def held_nodes(
    pool: str, count: int, on_progress: OnProgress, *, of: str, number: int = 1
) -> Iterator[DeployedOn]:
    """Held until the end of the `with`. of, number: as of a `Deployment`.

    Raises SliceRefused if there are no nodes.
    """
    gone: list[str] = []
    launches = LaunchGroup()
    with slice_(pool=pool, nodes=count, on_event=_heard(on_progress, gone, launches)) as held:
        nodes = held.held.nodes
        deployed = kind_of_pool(pool_named(pool).kind).deployed
        names = deployed([node.name for node in nodes])
        deployment = Deployment(of=of, number=number, pool=pool, nodes=names)
        yield DeployedOn(
            node=nodes[0],
            deployment=deployment,
            gone=lambda: gone[0] if gone else "",
            launches=launches,
            own_storage=own_storage_of(pool),
        )


def _heard(on_progress: OnProgress, gone: list[str], launches: LaunchGroup) -> OnHoldEvent:
    """gone: gets what became of its nodes. launches: end then."""

    def heard(event: HoldEvent) -> None:
        if event.what in ("waiting", "booting"):
            on_progress(Progress(doing=f"waits for nodes: {event.reason}"))
        elif event.what == "lost":
            gone.append(f"node {event.node} was lost: {event.reason}")
            launches.end()
        elif event.what == "ended":
            after = " " if event.reason.startswith("after ") else ": "
            gone.append(f"its slice ended{after}{event.reason}")
            launches.end()

    return heard
