"""Nodes of a pool on which one Ray runs the Python tasks of flows, or a Ray that exists.

A flow is opened once, on all nodes of that Ray: its values go from node to node within it, and not
by way of this process. A run of which something was lost with a node begins anew on those left.
"""

import importlib
import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from flowos._collected import when_collected
from flowos._dataclasses import replace
from flowos.engine._held_slice import HeldSlice
from flowos.engine._node import Node
from flowos.engine._options import SliceOptions
from flowos.engine._provider import OnHoldEvent, Provider, ignore
from flowos.engine.guests._guest import Guest, start_guest
from flowos.engine.local._here import Here
from flowos.engine.ray._ray_cluster import RayCluster
from flowos.model import Ask, Flow, FlowosError, SliceRefused

if TYPE_CHECKING:
    from flowos.engine._ledger import Resources
    from flowos.engine.flow._slice import Slice

_SKIP = "RAY_DEDUP_LOGS_SKIP_REGEX"
_BREAKPOINT = "PYTHONBREAKPOINT"
_REFUSED = "slice: workers='ray'"
_CONNECT_SECONDS = 10.0


class RaySlice(HeldSlice):
    """Made by `fo.slice(workers="ray")`; free it, or use it in a `with`.

    address: of a Ray that exists and goes on; else one is started on the nodes. Raises SliceRefused
    where Ray is not installed, does not start or answer, or this process has another one.
    """

    def __init__(
        self,
        provider: Provider,
        ask: Ask,
        options: SliceOptions,
        on_event: OnHoldEvent = ignore,
        *,
        requeue: bool = True,
        address: str | None = None,
    ) -> None:
        _refuse(options, ask, address)
        self._ray: _Connection | None = None
        super().__init__(provider, ask, options, on_event, requeue=requeue)
        try:
            nodes = self._here()
            connection = _Connection(nodes, options.cores, address)
        except BaseException:
            self.free()
            raise
        self._cluster = cluster = connection.cluster
        self._host: Node = nodes[0] if cluster.on_node else _AllNodes(cluster)
        cores = options.cores if cluster.on_node else None
        self._options = replace(self._options, ray=cluster, cores=cores)
        self._ray = connection

    def resize(self, nodes: int) -> None:  # noqa: ARG002
        raise SliceRefused(f"{_REFUSED}: its Ray stays on its nodes: make another slice")

    def _hosts(self) -> tuple[Node, ...]:
        self._here()
        return (self._host,)

    def _alone(self, flow: Flow) -> "Slice | None":
        """Of several nodes, what is lost with one begins anew."""
        return super()._alone(flow) if self._cluster.on_node else None

    def _lose(self, node: Node, why: str) -> bool:
        is_new = super()._lose(node, why)
        if self._ray is not None:
            self._cluster.lose(node.name)
        return is_new

    def _is_lost(self, of: Node | str) -> bool:
        name = of if isinstance(of, str) else of.name
        return super()._is_lost(of) or self._cluster.is_gone(name)

    def _may_go_on(self) -> bool:
        return super()._may_go_on() and self._cluster.is_there

    def _end(self, error: Callable[[], FlowosError]) -> None:
        super()._end(error)
        if self._ray is not None:
            self._ray.close()


class _AllNodes(Here):
    """This machine, as the node of flows whose tasks Ray runs: it has the cores of Ray's nodes."""

    def __init__(self, cluster: RayCluster) -> None:
        super().__init__("ray")
        self._cluster = cluster

    def resources(self) -> "Resources":
        return self._cluster.resources

    def architecture(self) -> str:
        """Of all of them."""
        found = {node.architecture() for node in self._cluster.nodes}
        return " ".join(sorted(found)) or super().architecture()

    def compile_target(self) -> str:
        return "\n\n".join(sorted({node.compile_target() for node in self._cluster.nodes}))

    def stage_notes(self) -> tuple[str, ...]:
        found = (note for node in self._cluster.nodes for note in node.stage_notes())
        return tuple(dict.fromkeys(found))


class _Connection:
    """To a Ray, of which a process has one at a time. Where there was one before, it is left."""

    def __init__(self, nodes: tuple[Node, ...], cores: int | None, address: str | None) -> None:
        ray = _imported()
        self._guest: Guest | None = None
        connected = ray.is_initialized()
        if address is None:
            if connected:
                raise SliceRefused(
                    f"{_REFUSED}: this process is connected to a Ray, and can be to one: free the "
                    "slice that has it, or say ray.shutdown(); address='auto' uses that one"
                )
            self._guest = start_guest(None, "ray", nodes, cores=cores)
            self._guest.__enter__()
            address = self._guest.address
        try:
            if not connected:
                _connect(ray, address)
            elif address not in ("auto", ray.get_runtime_context().gcs_address):
                raise SliceRefused(f"{_REFUSED}: this process is connected to another Ray")
            self.cluster = self._cluster_on(ray, nodes)
        except BaseException:
            self._free()
            raise
        self._ending = when_collected(self, ray.shutdown) if not connected else None

    def _cluster_on(self, ray: Any, nodes: tuple[Node, ...]) -> RayCluster:
        guest = self._guest
        if guest is None:
            return RayCluster(ray, {}, frozenset, on_node=False)
        by_folder = dict(zip(guest.folders[-len(nodes) :], nodes, strict=True))
        return RayCluster(
            ray, by_folder, lambda: guest.ended & by_folder.keys(), on_node=len(nodes) == 1
        )

    def close(self) -> None:
        """Twice is once."""
        self.cluster.close()
        if self._ending is not None and self._ending.detach():
            self.cluster.ray.shutdown()
        self._free()

    def _free(self) -> None:
        if self._guest is not None:
            self._guest.free()


def _imported() -> Any:
    """Ray prints what it thinks of a lost worker among our results, unless it knows before."""
    if find_spec("ray") is None:
        raise SliceRefused(f"{_REFUSED}: Ray is not installed here: pip install ray")
    if _SKIP in os.environ:
        return importlib.import_module("ray")
    os.environ[_SKIP] = "A worker died or was killed|Raylet is terminated|marked dead"
    try:
        return importlib.import_module("ray")
    finally:
        del os.environ[_SKIP]


def _connect(ray: Any, address: str) -> None:
    before = os.environ.get(_BREAKPOINT)
    try:
        _check_there(address)
        ray.init(address, logging_level="ERROR", log_to_driver=False)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        why = str(error).strip().partition("\n")[0]
        with suppress(Exception):
            ray.shutdown()
        raise SliceRefused(f"{_REFUSED}: no connection to {address}: {why}") from error
    finally:  # Ray's is for tasks
        if before is None:
            os.environ.pop(_BREAKPOINT, None)


def _check_there(address: str) -> None:
    """Ray itself tries for minutes. Raises OSError if nothing listens at HOST:PORT."""
    found = re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d{1,5})", address)
    if found:
        socket.create_connection((found[1], int(found[2])), _CONNECT_SECONDS).close()


def _refuse(options: SliceOptions, ask: Ask, address: str | None) -> None:
    if options.env.image is not None:
        raise SliceRefused(f"{_REFUSED}: it runs in no image: give the slice env='bare'")
    if ask.lease_seconds is not None:
        raise SliceRefused(f"{_REFUSED}: its Ray ends with this program: give no lease_seconds")
    if address == "local":
        raise SliceRefused(f"{_REFUSED}: address='local' starts a Ray: leave address away")
