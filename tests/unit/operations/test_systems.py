"""Systems by name, and the progress that is reported while they are solved."""

from pathlib import Path

import numpy as np
import pytest

from flowos.model import Progress, SolveError, UsageError
from flowos.operations._linear_problems import in_the_commands_words, right_side, system_of
from flowos.operations.solve import History, SolveRequest, planned


@pytest.mark.parametrize(
    ("word", "rows", "entries"),
    [
        ("poisson:5", 5, 13),
        ("poisson:3x4", 12, 12 + 2 * (8 + 9)),
        ("poisson:4x3x2", 24, 24 + 2 * (18 + 16 + 12)),
    ],
)
def test_the_size_of_poisson_is_known_beforehand(word: str, rows: int, entries: int) -> None:
    system = system_of(word)
    assert system.size == (rows, entries)
    matrix = system.matrix()
    assert (matrix.shape[0], matrix.nnz) == (rows, entries)


@pytest.mark.parametrize("word", ["poisson", "poisson:", "poisson:4x", "poisson:-1", "g3like:"])
def test_what_is_no_system_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=word):
        system_of(word)


def test_more_than_the_machine_holds_is_refused_before_it_is_tried() -> None:
    with pytest.raises(SolveError, match=r"takes at least .* GB; this machine has"):
        system_of("poisson:1290x1290x1290")


def test_random_right_hand_sides_are_those_of_their_seed() -> None:
    assert (right_side("random", 9) == right_side("random:1", 9)).all()
    assert (right_side("random:2", 9) != right_side("random:1", 9)).any()
    assert abs(right_side("random:3", 1000)).max() <= 1.0


def test_a_right_side_is_read_before_the_matrix_and_has_to_fit(tmp_path: Path) -> None:
    rhs = tmp_path / "b.npy"
    with pytest.raises(SolveError, match=r"b\.npy: No such file"):
        planned(SolveRequest(what="no.mtx", rhs=str(rhs)))
    np.save(rhs, np.ones(3))
    with pytest.raises(SolveError, match=r"has shape \(3,\): expected \(4,\)"):
        planned(SolveRequest(what="poisson:4", rhs=str(rhs)))
    assert planned(SolveRequest(what="poisson:3", rhs=str(rhs))).rows == 3


def test_some_residuals_are_told() -> None:
    told: list[Progress] = []
    times = iter([0.0, 0.05, 0.2, 0.21])
    history = History(1e-8, told.append, lambda: next(times))
    for iteration, residual in ((1, 1e-2), (2, 1e-3), (3, 1e-4), (4, 1e-9)):
        history.see(iteration, residual)
    assert [(step.detail, round(step.done, 2)) for step in told] == [
        ("iteration 1  residual 1.0e-02", 0.25),
        ("iteration 3  residual 1.0e-04", 0.5),
    ]


@pytest.mark.parametrize(
    ("residual", "goal", "share"),
    [(1e-9, 1e-8, 1.0), (7.0, 1e-8, 0.0), (float("nan"), 1e-8, 0.0), (0.0, 1e-8, 0.0), (1, 0, 0)],
)
def test_the_way_to_the_goal_stays_between_none_and_all(
    residual: float, goal: float, share: float
) -> None:
    told: list[Progress] = []
    History(goal, told.append, lambda: 0.0).see(1, residual)
    assert [step.done for step in told] == [share]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("row 0: has column 9, but there are 9", "row 1: has column 10, but there are 9"),
        ("its entries (1, 0) and (0, 1) differ", "its entries (2, 1) and (1, 2) differ"),
        ('solve with coarse="none".', "solve with --coarse none."),
        ("x[3] is larger than any double", "x[3] is larger than any double"),
    ],
)
def test_an_error_of_the_solver_is_in_the_words_of_the_command(said: str, told: str) -> None:
    with pytest.raises(SolveError) as refused, in_the_commands_words("a.mtx"):
        raise SolveError(said)
    assert str(refused.value) == f"a.mtx: {told}"
