"""Every provider says until when its nodes are held, and tasks that come too late do not begin."""

import pytest

import flowos as fo
from flowos.engine import Provider

from .tasks import long
from .test_providers import DOUBLE, flow_of, on
from .test_providers import provider as provider

WORDS = r"task 'long' needs 60 s until its nodes are given back, [1-4]?\d(\.\d)? s are left: hold"


LONG = flow_of(long, fo.int64)


def test_a_task_begins_only_on_nodes_that_are_held_for_long_enough(provider: Provider) -> None:
    for seconds in (None, 300):
        with on(provider, seconds=seconds) as s:
            assert (s.run(LONG, 1), list(s.map(LONG, [2, 3]))) == ([1], [[2], [3]])
    with on(provider, seconds=50) as s:
        with pytest.raises(fo.SliceRefused, match=WORDS):
            s.run(LONG, 1)
        assert s.run(DOUBLE, 1) == [2]
