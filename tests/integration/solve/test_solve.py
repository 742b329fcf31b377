"""`fo.solve` and `fo.Solver`, as a person with a SciPy matrix uses them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import cg

import flowos as fo

from .matrices import graph, laplacian, residual, wathen

MATRICES = {
    "grid": lambda: laplacian(31, 17, 23),
    "graph": lambda: graph(9000, 5),
    "elements": lambda: wathen(40, seed=4),
}


def test_x_solves_the_system_as_scipy_sees_it() -> None:
    a = laplacian(20, 21, 22)
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    x, info = fo.solve(a, b)
    assert info.converged
    assert info.reason == "converged"
    assert residual(a, x, b) <= 1e-7
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-6)
    assert 0 < info.iterations < 60
    assert info.precision in ("fp32", "fp64")
    assert info.shift == info.setup.shift == 0.0


def test_matrices_of_finite_elements_are_solved_though_no_row_is_dominant() -> None:
    a = wathen(40, seed=3)
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    x, info = fo.solve(a, b)
    assert info.converged
    assert residual(a, x, b) <= 1e-7
    assert info.shift > 0
    assert info.iterations < 40


@pytest.mark.parametrize("rtol", [1e-3, 1e-10, 1e-13])
def test_the_residual_is_as_small_as_was_asked_for(rtol: float) -> None:
    a = laplacian(12, 12, 12)
    b = np.ones(a.shape[0])
    x, info = fo.solve(a, b, rtol=rtol)
    assert info.converged
    assert residual(a, x, b) <= rtol * (1 + 1e-9)


@settings(max_examples=25)
@given(
    rows=st.integers(1, 400),
    seed=st.integers(0, 2**32),
    decades=st.sampled_from([0.0, 2.0, 6.0, 10.0]),
)
def test_any_grounded_graph_is_solved_as_far_as_doubles_can(
    rows: int, seed: int, decades: float
) -> None:
    a = graph(rows, seed, decades)
    b = np.random.default_rng(seed).standard_normal(rows)
    x, info = fo.solve(a, b, maxiter=20_000)
    rounded = 1e-16 * float(abs(a).max()) * np.linalg.norm(x) / np.linalg.norm(b)
    assert residual(a, x, b) <= (1e-7 + rounded if info.converged else 1.0)
    assert info.converged or rounded > 1e-9, str(info)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_the_answer_is_the_same_bits_for_any_number_of_threads(matrix: str, precision: Any) -> None:
    a = MATRICES[matrix]()
    b = np.random.default_rng(2).standard_normal(a.shape[0])
    answers = [fo.solve(a, b, threads=n, precision=precision) for n in (1, 2, 3, 4)]
    assert len({(x.tobytes(), info.iterations) for x, info in answers}) == 1
    assert answers[0][1].converged


def test_formats_and_kinds_of_indices_give_the_same_bits() -> None:
    a = graph(3000, 7)
    b = np.ones(3000)
    wide = a.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    shuffled = a.copy()
    for row in range(0, 3000, 7):
        part = slice(*shuffled.indptr[row : row + 2])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    shuffled.has_sorted_indices = False
    forms = (a, wide, shuffled, a.tocsc(), a.tocoo(), sparse.csr_matrix(a))
    assert len({fo.solve(form, b)[0].tobytes() for form in forms}) == 1


def test_entries_given_twice_are_added_up() -> None:
    a = laplacian(9, 9)
    twice = sparse.csr_array(
        (np.repeat(a.data / 2, 2), np.repeat(a.indices, 2), a.indptr * 2), shape=a.shape
    )
    assert not twice.has_canonical_format
    b = np.ones(81)
    assert fo.solve(twice, b)[0].tobytes() == fo.solve(a, b)[0].tobytes()


def test_the_matrix_and_b_are_left_as_they_are() -> None:
    a, b = graph(500, 3), np.ones(500)
    before = [array.copy() for array in (a.data, a.indices, a.indptr, b)]
    for array in (a.data, a.indices, a.indptr, b):
        array.flags.writeable = False
    fo.solve(a, b)
    for array, was in zip((a.data, a.indices, a.indptr, b), before, strict=True):
        assert np.array_equal(array, was)


def test_one_solver_serves_many_right_hand_sides() -> None:
    a = laplacian(15, 15, 15)
    solver = fo.Solver(a)
    assert solver.shape == a.shape
    assert solver.setup.seconds >= 0
    for seed in range(4):
        b = np.random.default_rng(seed).standard_normal(a.shape[0])
        x, info = solver.solve(b)
        assert info.converged
        assert residual(a, x, b) <= 1e-7
        assert x.tobytes() == fo.solve(a, b)[0].tobytes()


def test_a_column_gives_a_column() -> None:
    a = laplacian(5, 5)
    x, _ = fo.solve(a, np.ones((25, 1)))
    assert x.shape == (25, 1)
    assert fo.solve(a, [1] * 25)[0].shape == (25,)


def test_it_begins_at_x0_and_leaves_that_as_it_was() -> None:
    a = laplacian(14, 14)
    b = np.ones(196)
    x, _ = fo.solve(a, b, rtol=1e-10)
    kept = x.copy()
    again, info = fo.solve(a, b, x0=x)
    assert info.iterations == 0
    assert info.converged
    assert np.array_equal(again, x)
    assert np.array_equal(x, kept)


def test_b_of_zeros_is_solved_by_zeros_at_once() -> None:
    x, info = fo.solve(laplacian(6, 6), np.zeros(36), x0=np.ones(36))
    assert info.converged
    assert info.iterations == 0
    assert not x.any()


def test_atol_is_enough_where_it_is_larger() -> None:
    a = laplacian(10, 10, 10)
    b = np.ones(1000)
    x, info = fo.solve(a, b, rtol=1e-12, atol=0.5)
    assert info.converged
    assert 1e-6 < np.linalg.norm(b - a @ x) <= 0.5


def test_the_preconditioner_serves_scipys_own_cg() -> None:
    a = laplacian(16, 16, 16)
    b = np.random.default_rng(4).standard_normal(a.shape[0])
    operator = fo.Solver(a, precision="fp64").as_linear_operator()
    plain, ours = [0], [0]

    def counted(count: list[int]) -> Any:
        def call(_: Any) -> None:
            count[0] += 1

        return call

    cg(a, b, rtol=1e-8, callback=counted(plain))
    x, done = cg(a, b, rtol=1e-8, M=operator, callback=counted(ours))
    assert done == 0
    assert residual(a, x, b) <= 1e-8
    assert ours[0] < plain[0] / 2


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_the_preconditioner_is_symmetric_and_positive(precision: Any) -> None:
    solver = fo.Solver(graph(700, 11), precision=precision)
    random = np.random.default_rng(5)
    for _ in range(5):
        u, v = random.standard_normal((2, 700))
        mu, mv = solver.precondition(u), solver.precondition(v)
        scale = np.linalg.norm(mu) * np.linalg.norm(v)
        assert abs(mu @ v - u @ mv) <= (1e-5 if precision == "fp32" else 1e-12) * scale
        assert u @ mu > 0


def test_a_manufactured_solution_is_met_with_second_order() -> None:
    errors = []
    for n in (15, 31):
        h = 1 / (n + 1)
        points = np.arange(1, n + 1) * h
        z, y, x = np.meshgrid(points, points, points, indexing="ij")
        exact = np.sin(np.pi * x) * np.sin(2 * np.pi * y) * np.sin(np.pi * z)
        found, info = fo.solve(laplacian(n, n, n), 6 * np.pi**2 * h**2 * exact.ravel(), rtol=1e-12)
        assert info.converged
        errors.append(float(np.abs(found - exact.ravel()).max()))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)


def test_other_python_threads_run_while_it_solves() -> None:
    a = laplacian(48, 48, 48)
    ended, turns = threading.Event(), [0]

    def count() -> None:
        while not ended.wait(0.0005):
            turns[0] += 1

    other = threading.Thread(target=count)
    other.start()
    before = turns[0]
    fo.solve(a, np.ones(a.shape[0]), rtol=1e-12)
    after = turns[0]
    ended.set()
    other.join()
    assert after - before > 5


def test_threads_that_share_a_solver_take_turns() -> None:
    a = laplacian(20, 20, 20)
    solver = fo.Solver(a)
    sides = [np.random.default_rng(seed).standard_normal(8000) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda b: solver.solve(b)[0].tobytes(), sides))
    assert answers == [solver.solve(b)[0].tobytes() for b in sides]


def test_operations_of_an_iteration_are_those_of_its_sweeps() -> None:
    a = laplacian(32, 32, 32)
    rows, off_diagonal = a.shape[0], a.nnz - a.shape[0]
    sweeps = fo.Solver(a, coarse="none").setup
    assert sweeps.flops_per_iteration == round(22 * rows + 2 * sweeps.fill * off_diagonal)
    uneven = sparse.csr_array(scale := sparse.diags_array(1 + np.arange(rows) / rows)) @ a @ scale
    scaled = fo.Solver(uneven, coarse="none").setup
    assert scaled.flops_per_iteration == round(16 * rows + 2 * scaled.fill * off_diagonal)
    # six passes over halves of the finest level, four over those of levels of an eighth each
    cycle = fo.Solver(a, coarse="aggregates").setup
    finest = 6 * off_diagonal + 19 * rows
    assert finest + (4 * off_diagonal + 6 * rows) / 8 < cycle.flops_per_iteration < 1.2 * finest
