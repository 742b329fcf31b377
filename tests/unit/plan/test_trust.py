"""Trust: each disturbance is marked in words, a quiet or unknown state is not."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.model import MachineState
from flowos.plan import NOISE_THRESHOLDS, assess_trust, limits_for

QUIET = MachineState(
    clock_hz=(4.15e9, 4.11e9),
    add_imul_ratio=(3.0, 3.01),
    scaling=(0.99, 0.97),
    load=(2.0, 2.1),
    steal_share=0.002,
    others_cpus=0.03,
    starved_share=0.005,
    throttled_seconds=0.0,
)


def test_a_quiet_machine_is_trusted() -> None:
    assert assess_trust([QUIET]).good


def test_what_is_unknown_says_nothing() -> None:
    assert assess_trust([MachineState()]).good
    assert assess_trust([]).good


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        (MachineState(clock_hz=(4.15e9, 3.5e9)), "the clock went from 4.15 to 3.50 GHz"),
        (
            MachineState(add_imul_ratio=(3.0, 3.41)),
            "a multiply took as long as 3.41 adds instead of 3.00",
        ),
        (
            MachineState(scaling=(0.98, 0.6)),
            "all cpus together gave 60% of what one alone promises",
        ),
        (
            MachineState(starved_share=0.5),
            "something else ran on our cpus 50% of the time just before or after",
        ),
        (MachineState(steal_share=0.04), "the hypervisor took 4.0% of the cpu time"),
        (MachineState(others_cpus=0.98), "other processes kept 0.98 cpus busy"),
        (
            MachineState(others_disk=(454e6, 0.866)),
            "others moved 454 MB/s on the disk, 87% of all that it moved",
        ),
        (
            MachineState(io_pressure=0.45),
            "other processes waited for storage 45% of the time around",
        ),
        (MachineState(memory_pressure=0.2), "processes waited for memory 20% of the time"),
        (
            MachineState(throttled_seconds=0.25),
            "a cpu quota held the processes back for 0.250 s",
        ),
    ],
)
def test_a_disturbance_is_marked_in_words(state: MachineState, mark: str) -> None:
    assert assess_trust([state]).marks == (mark,)


@pytest.mark.parametrize(
    ("at_the_limit", "beyond"),
    [
        ({"others_disk": (1e9, 0.05)}, {"others_disk": (1e3, 0.051)}),
        ({"io_pressure": 0.2}, {"io_pressure": 0.201}),
        ({"memory_pressure": 0.05}, {"memory_pressure": 0.051}),
        ({"steal_share": 0.01}, {"steal_share": 0.0101}),
        ({"others_cpus": 0.1}, {"others_cpus": 0.101}),
        ({"starved_share": 0.1}, {"starved_share": 0.101}),
        ({"throttled_seconds": 0.0}, {"throttled_seconds": 1e-6}),
        ({"scaling": (0.95, 1.0)}, {"scaling": (0.949, 1.0)}),
    ],
)
def test_a_state_is_marked_beyond_its_limit_and_not_at_it(
    at_the_limit: dict[str, Any], beyond: dict[str, Any]
) -> None:
    assert assess_trust([MachineState(**at_the_limit)]).good
    assert len(assess_trust([MachineState(**beyond)]).marks) == 1


def test_the_load_is_judged_only_where_others_could_not_be_counted() -> None:
    limits = limits_for("x86_64", cpus=2)
    crowded = MachineState(load=(7.0, 6.0))
    assert assess_trust([crowded], limits=limits).marks == ("7.0 tasks ran or waited before",)
    assert assess_trust([crowded]).good
    assert assess_trust([MachineState(load=(7.0, 6.0), others_cpus=0.0)], limits=limits).good


def test_one_kind_of_disturbance_is_one_mark_that_counts_its_samples() -> None:
    states = [QUIET, MachineState(others_cpus=0.5), MachineState(others_cpus=0.7)]
    assert assess_trust(states).marks == (
        "other processes kept 0.50 cpus busy (in 2 of 3 samples)",
    )


def test_what_a_person_can_end_comes_before_what_it_does_to_the_numbers() -> None:
    busy = MachineState(
        clock_hz=(2.97e9, 2.5e9), scaling=(0.91, 0.91), starved_share=0.92, steal_share=0.04
    )
    assert assess_trust([busy]).marks == (
        "something else ran on our cpus 92% of the time just before or after",
        "the hypervisor took 4.0% of the cpu time",
        "the clock went from 2.97 to 2.50 GHz",
        "all cpus together gave 91% of what one alone promises",
    )


def test_values_in_two_regimes_are_marked() -> None:
    assert assess_trust([QUIET], [45.0] * 8 + [70.0] * 8).marks == (
        "two regimes: 50% of the values lie 1.56x above the others",
    )


def test_off_x86_the_quiet_ratio_is_the_median_seen() -> None:
    states = [MachineState(add_imul_ratio=(4.0, r)) for r in (4.0, 4.0, 5.2)]
    limits = limits_for("aarch64", states)
    assert limits.add_imul_ratio == 4.0
    assert assess_trust(states[:1], limits=limits).good
    assert not assess_trust(states[2:], limits=limits).good


def test_off_x86_without_any_ratio_none_is_judged() -> None:
    limits = limits_for("aarch64")
    assert assess_trust([MachineState(add_imul_ratio=(3.0, 9.0))], limits=limits).good


def test_on_x86_the_quiet_ratio_is_three_whatever_was_seen() -> None:
    assert limits_for("x86_64", [MachineState(add_imul_ratio=(3.4, 3.4))]) == NOISE_THRESHOLDS


ANY = st.floats(allow_nan=True, allow_infinity=True)
PAIR = st.none() | st.tuples(ANY, ANY)


@given(
    st.builds(
        MachineState,
        clock_hz=PAIR,
        add_imul_ratio=PAIR,
        scaling=PAIR,
        load=PAIR,
        steal_share=st.none() | ANY,
        others_cpus=st.none() | ANY,
        starved_share=st.none() | ANY,
        throttled_seconds=st.none() | ANY,
    )
)
def test_any_state_can_be_judged(state: MachineState) -> None:
    assert all(assess_trust([state]).marks)


def test_numbers_that_are_not_numbers_say_nothing() -> None:
    nan = math.nan
    state = MachineState(
        clock_hz=(nan, nan), add_imul_ratio=(nan, nan), scaling=(nan, nan), others_cpus=nan
    )
    assert assess_trust([state]).good
