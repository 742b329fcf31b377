"""Tasks that wait for slices of their own, whose tasks are to be alone on the node."""

import time
from typing import Any

import flowos as fo
from flowos.engine import here

ALONE = fo.Needs(alone=True)
N = fo.flow_input("n", int)


def short(n: int) -> int:
    time.sleep(0.002)
    return n


def slice_of(function: Any, **needs: Any) -> Any:
    return fo.slice(fo.flow_output(fo.task(function, **needs)(N)))


def test_those_that_fill_all_places_of_their_slice_never_wait_for_one_another() -> None:
    """More of them are ready: no claim of their slice may be before those of what they wait for."""
    plain, alone = slice_of(short), slice_of(short, needs=ALONE)

    def outer(n: int) -> int:
        list(plain.map([(n,)] * 5))
        list(fo.as_completed([plain.submit(n) for _ in range(3)]))
        alone.run(n)
        alone.submit(n).result()
        list(fo.as_completed([alone.submit(n) for _ in range(3)]))
        list(alone.map([(n,)] * 3))
        return n

    usual, by_itself = fo.task(outer), fo.task(outer, needs=ALONE)
    flow = fo.flow_output(usual(N), usual(N), by_itself(N), usual(N))
    with plain, alone, fo.slice(flow) as s:
        for k in range(3):
            assert s.run(k) == [k] * 4
        assert list(s.map([(k,) for k in range(4)])) == [[k] * 4 for k in range(4)]
    assert not here().ledger.line
