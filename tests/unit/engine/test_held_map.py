"""A map over nodes: what its errors name."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from flowos.engine import Node
from flowos.engine._held_map import HeldMap, NodePart
from flowos.model import WorkerLost


@dataclass(eq=False)
class Lost:
    """A node that takes an item once `after` has one, and is lost once both of them have."""

    name: str
    run: HeldMap
    other: "Lost | None" = None
    has_taken: threading.Event = field(default_factory=threading.Event)

    def begin(self, _: object, *, part: NodePart) -> "Lost":
        self.part = part
        return self

    limit, in_batches, goes_on = 1, False, False
    in_flight: tuple[tuple[bool, int], ...] = ()

    def batches(self) -> Iterator[Any]:
        assert self.other
        if self.name == "b":
            assert self.other.has_taken.wait(30)
        assert self.part.take(1)
        self.has_taken.set()
        assert self.other.has_taken.wait(30)
        while self.name == "b" and self.run.has(cast(Node, self.other)):
            time.sleep(0.001)
        raise WorkerLost("its node is lost")
        yield

    def leave(self) -> None: ...


def test_an_error_names_the_item_in_whose_place_it_comes() -> None:
    run = HeldMap(range(2), None, lambda _: True, lambda _: True)
    a, b = Lost("a", run), Lost("b", run)
    a.other, b.other = b, a
    for node in (a, b):
        run.join(cast(Node, node), 1, node.begin)  # type: ignore[arg-type]
    with pytest.raises(WorkerLost, match=r"^item 0: its node is lost$"):
        list(run.results())
