"""How much room a folder has: as this machine sees it, or as a node of a pool does."""

import os
import threading
from typing import NamedTuple

from flowos._dataclasses import dataclass
from flowos.engine._provider import CancelToken, Provider, ignore
from flowos.model import BARE, Ask, Cancelled, FlowosError, Launch, SliceRefused

_HELD_SECONDS, _LIMIT_SECONDS = 60.0, 20.0


class FolderRoom(NamedTuple):
    """free_bytes: that we may write."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRoom:
    """What was seen of a folder, on which node. complaint: why nothing was."""

    node: str = ""
    room: FolderRoom | None = None
    complaint: str = ""


def room_here(path: str) -> SeenRoom:
    """As this machine sees it."""
    try:
        found = os.statvfs(path)
    except OSError as error:
        return SeenRoom(complaint=error.strerror or str(error))
    return SeenRoom(room=_room(found.f_frsize, found.f_blocks, found.f_bavail))


def room_on_a_node(provider: Provider, path: str, seconds: float) -> SeenRoom:
    """As a node sees it that is held for that. seconds: how long a node is waited for."""
    cancel = CancelToken()
    timer = threading.Timer(seconds, cancel.cancel)
    timer.daemon = True
    timer.start()
    try:
        held = provider.hold(Ask(nodes=1, seconds=_HELD_SECONDS), ignore, cancel)
    except Cancelled:
        return SeenRoom(complaint=f"no node came within {seconds:g} s to look at it")
    except SliceRefused as error:
        return SeenRoom(complaint=f"no node could be held to look at it: {error}")
    finally:
        timer.cancel()
    node = held.nodes[0]
    words = ("stat", "--file-system", "--format=%S %b %a", path)
    launch = Launch(argv=words, variables=node.variables(BARE), limit_seconds=_LIMIT_SECONDS)
    try:
        done = node.run(launch)
    except FlowosError as error:
        return SeenRoom(node=node.name, complaint=str(error))
    finally:
        provider.free(held)
    try:
        return SeenRoom(node=node.name, room=_room(*map(int, done.stdout.split())))
    except (ValueError, TypeError):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return SeenRoom(node=node.name, complaint=(said or [str(done.end)])[-1])


def _room(block_bytes: int, blocks: int, free: int) -> FolderRoom:
    return FolderRoom(block_bytes * blocks, block_bytes * free)
