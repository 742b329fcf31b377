"""What a joule does: rates over the mean power, where energy was counted."""

from flowos.model import Case, MachineState, Sample
from flowos.plan import assess_trust, per_joule


def sample(unit: str, watts: float | None) -> Sample:
    state = MachineState(joules=None if watts is None else 2 * watts, watts=watts)
    case = Case("gemm", levels=(("n", "8"),))
    return Sample(
        run="r", case=case, round=1, metric="rate", unit=unit, values=(50.0, 100.0), state=state
    )


def test_a_rate_over_the_power_is_work_per_joule() -> None:
    (found,) = per_joule([sample("flop/s", 25.0)])
    assert (found.metric, found.unit, found.values) == ("rate_per_joule", "flop/J", (2.0, 4.0))
    (moved,) = per_joule([sample("byte/s", 25.0)])
    assert moved.unit == "byte/J"
    assert found.case == sample("flop/s", 25.0).case


def test_what_has_no_energy_or_is_no_rate_is_left_out() -> None:
    assert not list(per_joule([sample("flop/s", None), sample("flop/s", 0.0)]))
    assert not list(per_joule([sample("second", 25.0)]))


def test_heat_that_slowed_the_processors_down_is_a_mark() -> None:
    assert assess_trust([MachineState(heat_throttles=0.0)]).good
    (mark,) = assess_trust([MachineState(heat_throttles=3.0, celsius=(80.0, 96.4))]).marks
    assert mark == "heat throttled the processors (kernel's count: 3, at 96 C)"
    (plain,) = assess_trust([MachineState(heat_throttles=1.0)]).marks
    assert plain == "heat throttled the processors (kernel's count: 1)"
