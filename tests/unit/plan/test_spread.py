"""Over which nodes the ranks of a task are spread."""

import pytest

from flowos.model import Needs
from flowos.plan import spread


@pytest.mark.parametrize(
    ("needs", "cores", "found"),
    [
        (Needs(ranks=4), (4, 4), ((0,), 4)),
        (Needs(ranks=5), (4, 4), ((0, 1), 3)),
        (Needs(ranks=5), (4, 2, 4), ((0, 2), 3)),
        (Needs(ranks=9), (4, 4, 4), ((0, 1, 2), 3)),
        (Needs(ranks=4, cores=2), (4, 4), ((0, 1), 2)),
        (Needs(ranks=4, nodes=1), (4, 4), ((0,), 4)),
        (Needs(ranks=4, nodes=2), (4, 4), ((0, 1), 2)),
        (Needs(ranks=3, nodes=2), (4, 4), ((0, 1), 2)),
        (Needs(ranks=2, nodes=2), (1, 1, 1), ((0, 1), 1)),
    ],
)
def test_ranks_go_on_as_few_nodes_as_have_the_cores_or_on_as_many_as_are_asked_for(
    needs: Needs, cores: tuple[int, ...], found: tuple[tuple[int, ...], int]
) -> None:
    assert spread(needs, cores) == found


@pytest.mark.parametrize(
    ("needs", "cores", "why"),
    [
        (Needs(ranks=5), (4,), "1 core for each of 5 ranks, the slice has 4"),
        (Needs(ranks=9), (4, 4), "1 core for each of 9 ranks, the slice has 2 nodes with 4"),
        (Needs(cores=9), (8,), "9 cores, the slice has 8"),
        (
            Needs(ranks=8, nodes=1),
            (4, 4),
            "1 core for each of 8 ranks, the slice has 2 nodes with 4",
        ),
        (Needs(ranks=3, nodes=3), (4, 4), "3 nodes for its ranks, the slice has 2"),
        (Needs(ranks=6), (2, 4), "1 core for each of 6 ranks, the slice has 2 nodes with 2"),
        (
            Needs(ranks=2, cores=4),
            (4, 2, 2),
            "4 cores for each of 2 ranks, the slice has 3 nodes with 4",
        ),
    ],
)
def test_what_has_no_room_is_said_in_words(needs: Needs, cores: tuple[int, ...], why: str) -> None:
    assert spread(needs, cores) == why
