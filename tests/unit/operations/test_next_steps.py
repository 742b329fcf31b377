"""What a verdict without an answer needs, and that more time does not always help."""

from dataclasses import replace

from flowos.model import Entered, MeasurementRequest, Verdict
from flowos.operations.measure import with_end
from flowos.operations.measure._next_steps import how_to_judge
from tests.unit.operations.test_case_order import RUN

BETWEEN = replace(
    RUN,
    request=MeasurementRequest(effort="quick", environments=("bare", "mine"), probes=("startup",)),
    environments=(Entered(label="bare"), Entered(label="mine")),
)
OPEN = Verdict(
    probe="startup",
    axis="env",
    base="bare",
    other="mine",
    rest=(),
    metric="startup",
    ratio=0.966,
    low=0.883,
    high=1.022,
    margin=0.03,
    rounds=32,
    answer="inconclusive",
    why="wide",
)


def test_it_says_that_a_run_ends_at_its_last_look_where_more_rounds_would_be_needed() -> None:
    (found,) = with_end(BETWEEN, [OPEN])
    first, said = found.why.split("; ")
    assert first == "wide"
    assert said.startswith("about ")
    assert said.endswith(
        " rounds would decide, and a run ends at 32, so more time does not decide it:"
        " measure when the machine has less to do"
    )
    assert found.needed == 0


def test_it_says_so_too_where_no_number_of_rounds_decides() -> None:
    (found,) = with_end(BETWEEN, [replace(OPEN, ratio=1.0, low=0.5, high=2.0, rounds=9)])
    assert "the rounds scatter too much here for any sensible number to decide" in found.why
    assert "so more time does not decide it" in found.why


def test_where_time_was_out_before_it_names_the_persons_own_command() -> None:
    early = replace(OPEN, probe="geomean", rounds=8, low=0.94, high=0.995, ratio=0.967)
    decided = replace(OPEN, answer="equal", why="")
    (found, other) = with_end(BETWEEN, [early, decided])
    assert other == decided
    command = "flowos measure --quick --env mine --only startup --minutes "
    assert f"for more rounds: `{command}" in found.why
    assert 8 < found.needed <= 32


def test_settings_that_had_their_rounds_are_not_sent_round_again_by_the_same_command() -> None:
    run = replace(RUN, request=MeasurementRequest(effort="quick"))
    for rounds in ([], [3, 32]):
        said = how_to_judge(run, ("gemm",), [replace(OPEN, rounds=r) for r in rounds])
        assert said.startswith("to mend it: `flowos measure --quick --only gemm --minutes ")
    settings = [replace(OPEN, rounds=r) for r in (4, 32)]
    assert how_to_judge(run, ("gemm",), settings) == "measure when the machine has less to do"
