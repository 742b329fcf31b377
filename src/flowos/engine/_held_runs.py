"""Runs on the nodes of a slice: begun on one, and anew on another if they were lost with it."""

import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from flowos.engine._held_ends import lost_with
from flowos.engine._node import Node
from flowos.engine._options import Flowing
from flowos.engine._waiting_run import WaitingRun
from flowos.engine._warm_nodes import WarmNodes
from flowos.engine.flow._freed import Freed
from flowos.engine.flow._slice import Slice
from flowos.model import Flow, Port, WiringError, WorkerLost, brief_repr, flow_output

if TYPE_CHECKING:
    from concurrent.futures import Future

MAX_LOST = 3
"""A run that loses more nodes may be what ends them."""


def flow_of(given: Flowing, known: dict[tuple[Port, ...], Flow]) -> Flow:
    """The flow, or that of these ports: the same one whenever they are given, as it stays ready.

    Raises WiringError if it is neither, or if the ports make no flow.
    """
    if isinstance(given, Flow):
        return given
    ports = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not ports or not all(isinstance(port, Port) for port in ports):
        raise WiringError(
            f"run: the first argument is a flow, not {brief_repr(given)}: make one with "
            "fo.flow_output(...), or give its ports"
        )
    return known.get(ports) or known.setdefault(ports, flow_output(*ports))


class HeldRuns(Freed):
    """Which node takes a run, and whether one begins anew, the slice says."""

    _warm: WarmNodes
    _flows: dict[tuple[Port, ...], Flow]
    """Of the ports that it was given."""

    def _node_of_run(self, flow: Flow) -> Node:
        """That of the next run, which counts as one there."""
        raise NotImplementedError

    def _ready_on(self, nodes: tuple[Node, ...], flow: Flow) -> list[Slice]:
        """On each of these. Raises FlowosError if it cannot be on one."""
        raise NotImplementedError

    def _hosts(self) -> tuple[Node, ...]:
        """On each of which a flow is opened. Raises FlowosError if there are none."""
        raise NotImplementedError

    def _over_at(self, node: Node) -> None:
        """A run there is over."""
        raise NotImplementedError

    def _goes_on(self, node: Node | str, lost: int = 1) -> bool:
        """Whether what was lost there begins anew on another node."""
        raise NotImplementedError

    def _begun(self, flow: Flow) -> tuple[Node, Slice]:
        """The node of the next run, and the flow ready on it. One that is lost meanwhile is
        passed over."""
        for lost in count(1):
            node = self._node_of_run(flow)
            try:
                return node, self._ready_on((node,), flow)[0]
            except BaseException as error:
                self._over_at(node)
                if not (isinstance(error, WorkerLost) and self._goes_on(node, lost)):
                    raise
        raise AssertionError

    def opened(self, flow: Flow) -> list[Slice]:
        """The flow ready to be run on each node. Raises SliceRefused if one cannot."""
        for lost in count(1):
            nodes = self._hosts()
            try:
                return self._ready_on(nodes, flow)
            except WorkerLost:
                if not any([self._goes_on(node, lost) for node in nodes]):
                    raise
        raise AssertionError

    def run(self, flow: Flowing, /, *values: object, **named: object) -> list[object]:
        """Run a flow once, on one of the nodes. Raises as `Slice.run` does.

        flow: from `flow_output`, or its ports. It is made ready on a node when it first runs there,
        and stays so until `free`. A run that is lost with its node begins anew on another one, from
        the first task on.
        """
        flow, attempt = flow_of(flow, self._flows), 1
        for lost in count(1):
            node, on = self._begun(flow)
            began = time.monotonic()
            try:
                return on.run_attempt(attempt, values, named)
            except WorkerLost as error:
                if not (error.requeue and self._goes_on(lost_with(node, error), lost)):
                    raise
                attempt += error.attempts
            finally:
                self._over_at(node)
                self._warm.ran(flow, began)
        raise AssertionError

    def submit(self, flow: Flowing, /, *values: object, **named: object) -> "Future[list[object]]":
        """Begin a run on one of the nodes and do not wait. See `Slice.submit`, and `run`."""
        node, on = self._begun(flow_of(flow, self._flows))
        return self._followed(node, on, values, named)

    def _followed(
        self, node: Node, on: Slice, values: tuple[object, ...], named: dict[str, object]
    ) -> WaitingRun:
        """It has begun there. Raises FlowosError if it cannot."""
        begun = self._submitted(node, on, 1, values, named)
        run = WaitingRun(self, on.flow, values, named)
        run.begin(node, lambda: begun)
        return run

    def begin_anew(self, run: WaitingRun, error: WorkerLost) -> bool:
        """See `RunHost`."""
        may = error.requeue and self._goes_on(lost_with(run.node, error), run.lost)
        return may and self._restart(run)

    def _restart(self, run: WaitingRun) -> bool:
        node, on = self._begun(run.flow)
        self._begin_there(run, node, on)
        return True

    def _begin_there(self, run: WaitingRun, node: Node, on: Slice) -> None:
        given = (run.attempt, run.values, run.named)
        if not run.begin(node, partial(self._submitted, node, on, *given)):
            self._over_at(node)

    def _submitted(
        self,
        node: Node,
        on: Slice,
        attempt: int,
        values: tuple[object, ...],
        named: dict[str, object],
    ) -> "Future[list[object]]":
        began = time.monotonic()
        try:
            run = on.submit_attempt(attempt, values, named)
        except BaseException:
            self._over_at(node)
            raise
        run.add_done_callback(lambda _: self._over_at(node))
        run.add_done_callback(lambda _: self._warm.ran(on.flow, began))
        return run

    async def arun(self, flow: Flowing, /, *values: object, **named: object) -> list[object]:
        """`run` for asyncio. See `Slice.arun`."""
        from flowos.engine.flow._submitted import awaited

        return await awaited(self.submit(flow, *values, **named))
