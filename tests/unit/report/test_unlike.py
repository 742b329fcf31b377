"""Why a number of a paper is not set against what was measured for it."""

from dataclasses import replace

import pytest

from flowos.model import Case, Pairs, PublishedNumber
from flowos.report import Report, SuiteFigure
from flowos.report._suite import number_rows
from flowos.report._unlike import why_unlike

from .reports import measured
from .test_suite import FIGURE, PAPER, TRIAD, of_step, row_of, suite_of

NUMBER = PublishedNumber(
    figure="table A.1",
    what="10 epochs",
    value=14339.98,
    unit="second",
    printed="14,339.98 sec",
    machine="Cygnus, 1 node",
    where="table A.1",
    probe="training",
    metric="training",
    levels=(("loader", "feed"),),
)
ON_PROCESSORS = "ours was measured on processors, the paper's on GPUs"


def case(**levels: str) -> Case:
    return Case("training", tuple(levels.items()))


@pytest.mark.parametrize(
    ("cases", "levels", "why"),
    [
        ([case(device="cpu", loader="feed")], (), ON_PROCESSORS),
        ([case(device="cpu", loader="feed"), case(device="cuda", loader="feed")], (), ""),
        ([case(loader="feed")], (), ""),
        ([], (), ""),
        ([case(loader="shared")], (), "ours is of loader shared, the paper's of feed"),
        (
            [case(loader=name) for name in ("e", "d", "c", "b", "a", "e")],
            (),
            "ours is of loader e, d, c, b, ..., the paper's of feed",
        ),
        (
            [case(loader="feed")],
            (("nodes", "16"), ("scaling", "strong")),
            "ours is of nodes 1, the paper's of 16",
        ),
        (
            [case(loader="shared", nodes="2"), case(loader="shared", nodes="16")],
            (("nodes", "16"),),
            "ours is of loader shared, the paper's of feed",
        ),
        (
            [case(device="cpu", loader="shared", nodes="2")],
            (("nodes", "16"),),
            f"{ON_PROCESSORS}; ours is of loader shared, the paper's of feed;"
            " ours is of nodes 2, the paper's of 16",
        ),
    ],
)
def test_what_differs_is_said(cases: list[Case], levels: Pairs, why: str) -> None:
    number = replace(NUMBER, levels=(*NUMBER.levels, *levels))
    assert why_unlike(number, cases) == why


def test_another_amount_of_data_is_said_with_that_of_the_paper() -> None:
    number = replace(NUMBER, data="10 epochs of 1,261,197 files")
    said = "ours is of another amount of data, the paper's of 10 epochs of 1,261,197 files"
    assert why_unlike(number, [case(loader="feed")]) == said
    assert why_unlike(number, [case(loader="feed", device="cpu")]) == f"{ON_PROCESSORS}; {said}"
    assert why_unlike(number, []) == ""


def test_a_number_of_another_amount_of_data_is_set_against_none(small: Report) -> None:
    rows = (measured(40e9, stores="nt"),)
    reports = (of_step(replace(small, measurements=rows)),)
    reason, said = row_of(replace(TRIAD, data="9 files"), reports=reports)
    assert reason == "ours is of another amount of data, the paper's of 9 files"
    assert said == f"not set against ours: {reason}"
    for other in (replace(TRIAD, metric="copy"), replace(TRIAD, unit="1/s")):
        figure = SuiteFigure(figure=FIGURE, reports=reports)
        report = replace(suite_of(figure), paper=replace(PAPER, numbers=(other,)))
        (row,) = number_rows(report, figure)
        assert row.why_none.reason == "no case that was measured is like it"


def test_a_number_of_one_node_is_set_against_none_over_more(small: Report) -> None:
    alone, over = measured(40e9, stores="nt"), measured(90e9, stores="nt", nodes="4")
    one = replace(TRIAD, levels=(("stores", "nt"), ("nodes", "1")))
    for ours in (alone, replace(alone, case=alone.case.at(nodes="1"))):
        reports = (of_step(replace(small, measurements=(ours, over))),)
        figure = SuiteFigure(figure=FIGURE, reports=reports)
        report = replace(suite_of(figure), paper=replace(PAPER, numbers=(one,)))
        (row,) = number_rows(report, figure)
        assert row.ours == ours
    reason, _ = row_of(one, reports=(of_step(replace(small, measurements=(over,))),))
    assert reason == "ours is of nodes 4, the paper's of 1"
