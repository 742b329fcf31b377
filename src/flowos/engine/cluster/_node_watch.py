"""Notices that a node is gone while something runs there, long before a resource manager does.

Its kernel is asked, not its daemon, which would write a line in its log each time: a datagram to a
port of UDP on which nothing listens is refused, also by a machine that is short of everything. What
was never answered says nothing, as a firewall may drop it.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Collection
from typing import Protocol

_LOOK_SECONDS = 1.0
_ANSWER_SECONDS = 0.25
_SILENT = 4
"""So many answers in a row have to be missing: one may be lost, and kernels give few a second."""
_DAEMON_LOOKS = 10
"""Where datagrams are not answered, its daemon is asked at each such look."""


class WatchedNode(Protocol):
    @property
    def echo(self) -> "Echo": ...

    def answers(self) -> bool:
        """Whether its daemon does."""
        ...

    def why_unreachable(self, ending_seconds: float = 0.0) -> str:
        """See `Node`."""
        ...


class Echo:
    """Datagrams to one node. One thread at a time.

    is_heard: whether one was ever answered. knows_daemon: whether its daemon ever did.
    """

    def __init__(self, address: str, port: int) -> None:
        self._to = address, port
        self._socket: socket.socket | None = None
        self.is_heard = self.knows_daemon = False
        self.looks = 0

    def ask(self) -> None:
        with contextlib.suppress(OSError):
            self._socket = self._socket or _connected(*self._to)
            with contextlib.suppress(ConnectionRefusedError):  # a late answer
                self._socket.send(b"")
                return
            self._socket.send(b"")

    def hear(self, until: float) -> bool:
        """Whether it is answered by then."""
        if self._socket is None:
            return False
        self._socket.settimeout(max(0.001, until - time.monotonic()))
        try:
            self._socket.recv(1)
        except ConnectionRefusedError:
            pass
        except OSError:
            return False
        self.is_heard = True
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _connected(address: str, port: int) -> socket.socket:
    """It gets the answers to what it sends. Raises OSError for a name that is not known."""
    family, kind, protocol, _, at = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.connect(at)
    except BaseException:
        made.close()
        raise
    return made


class NodeWatch:
    """One thread, as long as launches run on the nodes. busy: those on which some do now."""

    def __init__(self, busy: Callable[[], Collection[WatchedNode]]) -> None:
        self._busy = busy
        self._lock = threading.Lock()
        self._looks = False
        self._new = threading.Event()

    def launched(self, node: WatchedNode) -> None:
        """A launch has begun there. What is new is looked at now: it has to answer once."""
        if not node.echo.looks:
            self._new.set()
        with self._lock:
            if self._looks:
                return
            self._looks = True
        threading.Thread(target=self._run, name="flowos-nodes", daemon=True).start()

    def _run(self) -> None:
        echoes: set[Echo] = set()
        while nodes := self._still_busy():
            echoes.update(node.echo for node in nodes)
            silent = _silent(nodes)
            asking = [threading.Thread(target=node.why_unreachable, daemon=True) for node in silent]
            for each in asking:
                each.start()
            for each in asking:
                each.join()
            self._new.wait(_LOOK_SECONDS)
        for echo in echoes:
            echo.close()

    def _still_busy(self) -> Collection[WatchedNode]:
        self._new.clear()
        with self._lock:
            nodes = self._busy()
            self._looks = bool(nodes)
            return nodes


def _silent(nodes: Collection[WatchedNode]) -> list[WatchedNode]:
    """Those that answered before, and do not now; or of which only their daemon can tell."""
    unheard = [node for node in nodes if _has_answered(node)]
    for _ in range(_SILENT):
        for node in unheard:
            node.echo.ask()
        until = time.monotonic() + _ANSWER_SECONDS
        unheard = [node for node in unheard if not node.echo.hear(until)]
        if not any(node.echo.is_heard for node in unheard):
            break
    return [node for node in unheard if node.echo.is_heard or not node.echo.looks % _DAEMON_LOOKS]


def _has_answered(node: WatchedNode) -> bool:
    """Whether its daemon ever answered: else a firewall may stand between it and us."""
    echo = node.echo
    echo.looks += 1
    echo.knows_daemon = echo.knows_daemon or node.answers()
    return echo.knows_daemon
