"""What `benchmarks/training_on_nodes.py` makes of the numbers of a suite."""

from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (BENCHMARKS / "feed", BENCHMARKS):
        monkeypatch.syspath_prepend(folder)


def measured(loader: str, metric: str, value: float, nodes: str, **more: str) -> dict[str, Any]:
    levels = {"device": "cpu", "nodes": nodes, "scaling": "strong", "loader": loader, **more}
    return {"metric": metric, "median": value, "case": {"levels": list(levels.items())}}


def turn(
    shared: float, copy: float, feed: float, making: float = 5.0
) -> dict[tuple[str, str], Any]:
    """On one node and on two, in half the time."""
    from training_on_nodes import METRICS, turn_of

    seconds = {"shared": shared, "local copy": copy, "feed": feed}
    rows = []
    for nodes in (1, 2):
        for loader, each in seconds.items():
            of = dict.fromkeys(METRICS, 1.0) | {"training": each / nodes}
            of["training_with_copy"] = each / nodes + making * (loader == "local copy")
            rows += [measured(loader, metric, of[metric], str(nodes)) for metric in METRICS]
    other = measured("feed", "stage", 9.0, "1", stage="load")
    found: dict[tuple[str, str], Any] = turn_of(
        [{"measurements": [*rows, other]}, {"measurements": rows}]
    )
    return found


def test_ratios_are_of_the_same_round_and_have_the_papers_next_to_them() -> None:
    from training_on_nodes import missed, ratios, rows_of

    turns = [turn(30, 10, 11), turn(60, 30, 40), turn(90, 20, 21)]
    assert {len(turns[0][place]) for place in turns[0]} == {3}
    found = {(each["nodes"], each["ratio"]): each for each in ratios(turns)}
    shared = found["1", "shared to local copy"]
    assert shared["rounds"] == [3.0, 2.0, 4.5]
    assert shared["median"] == 3.0
    assert shared["paper"] == pytest.approx(45586.36 / 14339.98)
    with_copy = found["2", "copy and local copy to fo.Feed"]
    assert with_copy["rounds"] == pytest.approx([10 / 5.5, 1.0, 15 / 10.5])
    assert with_copy["paper"] == pytest.approx((7924.18 + 2031.625) / 9009.86)
    assert list(missed([*found.values()])) == []
    (slow,) = missed([{**with_copy, "median": 0.9}, {**shared}])
    assert (
        slow == "2 nodes, strong scaling: copy and local copy to fo.Feed: 0.9, claimed more than 1"
    )
    assert not list(missed([{**found["1", "fo.Feed to local copy"], "median": 0.5}]))
    row = next(r for r in rows_of(turns) if (r["nodes"], r["loader"]) == ("2", "feed"))
    assert (row["training"], row["rounds"]) == (10.5, [5.5, 20.0, 10.5])


def test_what_a_suite_has_not_measured_is_named() -> None:
    from training_on_nodes import lacking, why_not

    whole = turn(3, 2, 1)
    assert lacking(whole, 2) == ""
    assert lacking(whole, 4) == "training of shared on 4"
    del whole["2", "strong"]["feed"]
    assert lacking(whole, 2) == "training of feed on 2"
    figures = [{"lacking": [["training", "no PyTorch", ""]], "waiting": []}] * 2
    assert why_not(figures) == "['training', 'no PyTorch', '']"
    assert why_not([]) == "the suite does not say why"
