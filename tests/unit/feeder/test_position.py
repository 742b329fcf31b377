"""Where a feed is, as it stands in a checkpoint."""

import json

import pytest

from flowos.feeder._position import Position, position_in, state_of
from flowos.model import FeedError

AT = Position(epoch=3, taken=128)


def test_a_state_survives_json_and_says_where_it_was_taken() -> None:
    state = json.loads(json.dumps(state_of(AT, 7, True, 1000)))
    assert position_in(state, 7, True, 1000) == AT


@pytest.mark.parametrize(
    ("seed", "shuffle", "samples", "said"),
    [(8, True, 1000, "seed=7"), (7, False, 1000, "shuffle=True"), (7, True, 999, "samples=1000")],
)
def test_a_state_of_another_order_is_refused(
    seed: int, shuffle: bool, samples: int, said: str
) -> None:
    with pytest.raises(FeedError, match=f"kept with {said}, this feed has"):
        position_in(state_of(AT, 7, True, 1000), seed, shuffle, samples)


@pytest.mark.parametrize("state", [{}, {"version": 2}, [1, 2], {"epoch": 3}])
def test_what_is_no_state_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(FeedError, match="is no state of a Feed"):
        position_in(state, 7, True, 1000)


@pytest.mark.parametrize("wrong", [{"taken": 1001}, {"taken": -1}, {"epoch": "3"}, {"taken": True}])
def test_a_damaged_state_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(FeedError, match="damaged"):
        position_in({**state_of(AT, 7, True, 1000), **wrong}, 7, True, 1000)
