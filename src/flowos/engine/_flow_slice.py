"""A slice of a pool for one flow."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, NoReturn, overload

from flowos.engine._held_slice import HeldSlice
from flowos.engine.flow._freed import Freed
from flowos.engine.flow._slice import OnError
from flowos.model import Flow, RunResult, SliceRefused

if TYPE_CHECKING:
    from concurrent.futures import Future

    from flowos.engine.guests._guest import Guest


class FlowSlice(Freed):
    """A flow on held nodes. Made by `fo.slice(flow, pool=...)`; free it, or use it in a `with`.

    >>> flow = fo.flow_output(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64))))
    >>> with fo.slice(flow, pool="local") as s:
    ...     s.run(np.array([3, 1, 2]))
    ...     len(s.nodes)
    [array([1, 2, 3])]
    1
    """

    def __init__(self, held: HeldSlice, flow: Flow) -> None:
        self.flow = flow
        self._held = held
        try:
            held.opened(flow)
        except BaseException:
            held.free()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of its slices. See `Slice.notes`."""
        return self._held.notes

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that are held now."""
        return self._held.nodes

    def run(self, /, *values: object, **named: object) -> list[object]:
        """Run the flow once, on one of the nodes. See `Slice.run`."""
        return self._held.run(self.flow, *values, **named)

    def submit(self, /, *values: object, **named: object) -> "Future[list[object]]":
        """Begin a run on one of the nodes and do not wait. See `Slice.submit`."""
        return self._held.submit(self.flow, *values, **named)

    async def arun(self, /, *values: object, **named: object) -> list[object]:
        """`run` for asyncio. See `Slice.arun`."""
        return await self._held.arun(self.flow, *values, **named)

    @overload
    def map(
        self, values: Iterable[object], *, ahead: int | None = ..., on_error: Literal["raise"] = ...
    ) -> Iterator[list[object]]: ...
    @overload
    def map(
        self, values: Iterable[object], *, ahead: int | None = ..., on_error: Literal["return"]
    ) -> Iterator[RunResult]: ...
    def map(
        self,
        values: Iterable[object],
        *,
        ahead: int | None = None,
        on_error: OnError = "raise",
    ) -> Iterator[list[object]] | Iterator[RunResult]:
        """Results of one run per item, in order, over all nodes. See `Slice.map`."""
        return self._held.map(self.flow, values, ahead=ahead, on_error=on_error)

    def plan(self, /, *_: object, **__: object) -> NoReturn:
        """Raises SliceRefused for all values: see `Slice.plan` for a slice of this machine."""
        raise SliceRefused(
            "plan: nodes of a pool choose each for itself; ask a slice without pool="
        )

    def guest(self, name: str) -> "Guest":
        """Start another framework's own cluster on the nodes. See `HeldSlice.guest`."""
        return self._held.guest(name)

    def resize(self, nodes: int) -> None:
        """Hold this many nodes instead. See `HeldSlice.resize`."""
        self._held.resize(nodes)
        self._held.opened(self.flow)

    def free(self) -> None:
        """Give all back. Twice is once."""
        self._held.free()

    def __repr__(self) -> str:
        return f"<slice of {self.flow!r} on {self._held!r}>"
