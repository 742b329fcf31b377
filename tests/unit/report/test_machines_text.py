"""Slow machines and changes over time in the terminal."""

import pytest

from flowos.model import Case, UnjudgedNumber
from flowos.plan import NumberChange, NumberHistory, SlowLimit, SlowMachine, SlowMachines
from flowos.report import changes_text, slow_text

CASE = Case("stream", (("threads", "2"),))
SLOW = SlowMachine(
    machine="n7",
    case=CASE,
    metric="triad",
    unit="byte/s",
    value=30e9,
    others=40e9,
    ratio=0.75,
    chance=0.0012,
    of=5,
)
CHANGE = NumberChange(
    last="r3", first="r4", before=40e9, after=36e9, ratio=0.9, low=0.88, high=0.92, chance=1e-9
)
HISTORY = NumberHistory(
    case=CASE,
    metric="triad",
    unit="byte/s",
    values=(*(40e9,) * 14, *(36e9,) * 3),
    changed_at=(14,),
    changes=(CHANGE,),
)


def test_slow_machines_are_named_first() -> None:
    found = SlowMachines(machines=("a", "b", "n7"), numbers=2, slow=(SLOW,))
    assert slow_text(found, 0.05).splitlines() == [
        "3 machines, 2 numbers of each; slow: n7",
        "  If all are alike, any is called slow with a probability of 5.0% at most.",
        "  n7 is slow: stream: threads 2: triad 30.0 GB/s, 40.0 GB/s on the others (x0.750, chance"
        " 0.00120)",
    ]


def test_where_none_is_slow_it_says_so_and_what_counted_as_a_machine() -> None:
    found = SlowMachines(machines=("r1", "r2", "r3"), numbers=1, slow=(), by_run=True)
    first, second, _ = slow_text(found, 0.05).splitlines()
    assert first == "3 runs, 1 number of each; none is slow"
    assert "each counts as one of its own" in second


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ((0.9, 0.9), "A slow one is found from x0.900 of the others on (stream: threads 2: m0)."),
        (
            (0.8, 0.9123, 0.85),
            "A slow one is found from x0.912 of the others on (stream: threads 2: m1); in the"
            " number with the most scatter from x0.800 of the others on (stream: threads 2: m0).",
        ),
        (
            (0.9, 0.0),
            "A slow one is found from x0.900 of the others on (stream: threads 2: m0); in the"
            " number with the most scatter in no case (stream: threads 2: m1). More machines, more"
            " runs of each, or fewer numbers (--only) find more.",
        ),
    ],
)
def test_from_where_on_one_would_have_been_found_is_said(
    ratios: tuple[float, ...], said: str
) -> None:
    limits = tuple(SlowLimit(case=CASE, metric=f"m{n}", ratio=r) for n, r in enumerate(ratios))
    found = SlowMachines(machines=("a", "b", "c"), numbers=3, slow=(), limits=limits)
    assert " ".join(slow_text(found, 0.05).split()).endswith(f"at most. {said}")


def test_numbers_that_are_not_judged_are_named() -> None:
    named = "  1 number is not above 0 in a run, and not judged: command: system"
    lone = UnjudgedNumber(case=Case("command"), metric="system")
    found = SlowMachines(machines=("a", "b", "c"), numbers=1, slow=(), unjudged=(lone,))
    assert slow_text(found, 0.05).splitlines()[-1] == named
    history = NumberHistory(
        case=lone.case,
        metric=lone.metric,
        unit="second",
        values=(0.0, 0.5),
        changed_at=(),
        changes=(),
        judged=False,
    )
    shown = changes_text("n1", ("r1", "r2"), (HISTORY, history), 0.05).splitlines()
    assert shown[1] == "1 of 1 number changed"
    assert named in shown


def test_a_change_is_shown_on_its_history() -> None:
    still = NumberHistory(
        case=CASE, metric="copy", unit="byte/s", values=(1.0,), changed_at=(), changes=()
    )
    assert changes_text("n1", ("r1", "r17"), (HISTORY, still), 0.01).splitlines() == [
        "n1: 2 runs, r1 to r17",
        "1 of 2 numbers changed",
        "  If nothing changed, any is said to with a probability of 1.0% at most.",
        "",
        "stream: threads 2: triad",
        "  ... 40.0 40.0 40.0 40.0 40.0 40.0 40.0 40.0 40.0 40.0 40.0 40.0 | 36.0 36.0 36.0 GB/s",
        "  worse: 40.0 GB/s to 36.0 GB/s, x0.900 (0.880 to 0.920), between r3 and r4, chance below"
        " 1e-6",
    ]


def test_a_change_for_the_better_says_so() -> None:
    better = NumberChange(
        last="r3", first="r4", before=36e9, after=40e9, ratio=1.1, low=1.0, high=1.2, chance=0.01
    )
    history = NumberHistory(
        case=CASE,
        metric="triad",
        unit="byte/s",
        values=(36e9,) * 3 + (40e9,) * 3,
        changed_at=(3,),
        changes=(better,),
    )
    assert "\n  better: 36.0 GB/s to 40.0 GB/s, x1.100" in changes_text(
        "n1", ("a",), (history,), 0.05
    )
