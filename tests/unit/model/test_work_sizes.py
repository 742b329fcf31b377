"""Sizes of kernels: extents, their products and quotients, groups."""

from typing import Any

import pytest

from flowos.model import WiringError, WorkSize, group_incompatibility, group_sizes, work_sizes

HAS = ("n", "m")


def sizes(given: object) -> tuple[WorkSize, ...]:
    return work_sizes("opencl 'f'", "size", given, HAS)


@pytest.mark.parametrize(
    ("given", "found", "words"),
    [
        ("n", [10], "n"),
        (7, [7], "7"),
        (1, [1], "1"),
        (("n", 2, "m"), [10, 2, 3], "n 2 m"),
        (["n*4"], [40], "n*4"),
        ("n / 4", [3], "n/4"),
        ("n/4*4", [12], "n/4*4"),
    ],
)
def test_a_size_is_made_of_extents_and_integers(given: Any, found: list[int], words: str) -> None:
    assert [size.of({"n": 10, "m": 3}) for size in sizes(given)] == found
    assert " ".join(map(str, sizes(given))) == words


@pytest.mark.parametrize("given", [0, -1, (), ("n",) * 4, "n+1", "n*0", "4*n", "", 1.5, True, None])
def test_what_is_no_size_is_refused(given: object) -> None:
    with pytest.raises(WiringError, match=r"^opencl 'f': size=.*; expected one to three") as caught:
        sizes(given)
    assert "\n" not in str(caught.value)


def test_an_extent_is_one_of_the_ports() -> None:
    with pytest.raises(
        WiringError, match=r"size: no extent and no integer input is 'k'; there is n, m$"
    ):
        sizes(("n", "k"))
    with pytest.raises(WiringError, match=r"no integer input is 'n'; there is none$"):
        work_sizes("opencl 'f'", "size", "n", ())


def test_a_group_has_an_integer_for_each_axis() -> None:
    assert group_sizes("f", "group", 64, 1) == (64,)
    assert group_sizes("f", "group", [8, 8], 2) == (8, 8)
    for given, axes in (("n", 1), (0, 1), (True, 1), ((8, 8), 1)):
        with pytest.raises(WiringError, match=r"^f: group=.*; expected an integer above 0$"):
            group_sizes("f", "group", given, axes)
    with pytest.raises(WiringError, match=r"^f: group=64 \(int\); expected 2 integers above 0$"):
        group_sizes("f", "group", 64, 2)


def test_groups_divide_the_sizes() -> None:
    of = sizes(("n", 6))
    assert group_incompatibility((5, 3), (10, 6), of) == ""
    assert group_incompatibility((4, 3), (10, 6), of) == (
        "groups of 4 do not divide n = 10; 'n/4*4' is a size that they do, with work items past "
        "the end that have to return"
    )
    assert group_incompatibility((5, 4), (10, 6), of) == "groups of 4 do not divide 6"
