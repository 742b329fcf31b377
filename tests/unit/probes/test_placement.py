from collections.abc import Sequence

import pytest

from flowos.model import LogicalCpu
from flowos.probes._placement import INTEL, OPENMP, Affinity, distinct, placement


def machine(sockets: int, cores: int, threads: int = 1) -> tuple[LogicalCpu, ...]:
    """As Linux numbers it: all first hardware threads, then all second ones."""
    all_cores = sockets * cores
    return tuple(
        LogicalCpu(number=thread * all_cores + core, core=core, socket=core // cores, node=0)
        for thread in range(threads)
        for core in range(all_cores)
    )


def names(found: Sequence[Affinity]) -> list[str]:
    return [a.name for a in found]


def test_close_fills_one_socket_first_and_spread_takes_all_in_turn() -> None:
    two_by_four = machine(2, 4)
    assert placement(Affinity("cores", "close"), two_by_four, 4) == ((0,), (1,), (2,), (3,))
    assert placement(Affinity("cores", "spread"), two_by_four, 4) == ((0,), (2,), (4,), (6,))


def test_a_core_is_a_place_of_both_its_hardware_threads() -> None:
    smt = machine(1, 2, threads=2)
    assert placement(Affinity("cores", "close"), smt, 2) == ((0, 2), (1, 3))
    assert placement(Affinity("threads", "close"), smt, 2) == ((0,), (2,))


def test_threads_in_one_socket_place_may_run_anywhere_in_it() -> None:
    assert placement(Affinity("sockets", "close"), machine(2, 2), 2) == ((0, 1), (2, 3))


@pytest.mark.parametrize("bind", ["close", "spread"])
def test_more_threads_than_places_share_them_evenly(bind: str) -> None:
    affinity = next(a for a in OPENMP if (a.places, a.bind) == ("sockets", bind))
    found = placement(affinity, machine(2, 4), 5)
    assert sorted(found.count(place) for place in set(found)) == [2, 3]


def test_compact_fills_a_core_before_the_next_and_scatter_goes_round_the_sockets() -> None:
    smt = machine(2, 2, threads=2)
    assert placement(Affinity("threads", "compact"), smt, 2) == ((0,), (4,))
    assert placement(Affinity("threads", "scatter"), smt, 2) == ((0,), (2,))
    assert placement(Affinity("cores", "scatter"), smt, 2) == ((0, 4), (2, 6))
    assert placement(Affinity("cores", "scatter"), smt, 5) == (
        (0, 4),
        (0, 4),
        (1, 5),
        (2, 6),
        (3, 7),
    )


def test_on_two_cores_all_pinned_settings_come_to_the_same() -> None:
    found = distinct(OPENMP + INTEL, machine(1, 2), 2)
    assert [(first.name, len(same)) for first, same in found] == [
        ("cores+close", 7),
        ("sockets+close", 1),
    ]


def test_a_big_machine_keeps_what_differs() -> None:
    found = distinct(OPENMP, machine(2, 64, threads=2), 64)
    assert names([first for first, _ in found]) == names(OPENMP)[:5]
    assert [names(same) for _, same in found if same] == [["sockets+spread"]]


def test_affinities_say_themselves_as_the_runtimes_read_them() -> None:
    assert Affinity("cores", "spread").variables == (
        ("OMP_PLACES", "cores"),
        ("OMP_PROC_BIND", "spread"),
    )
    assert Affinity("threads", "scatter").variables == (
        ("KMP_AFFINITY", "granularity=thread,scatter"),
    )
