"""How a solve ends other than by converging, and what is refused before it begins."""

import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import flowos as fo

from .matrices import laplacian, residual


def refused(*args: Any, **how: Any) -> str:
    with pytest.raises(fo.SolveError) as error:
        fo.solve(*args, **how)
    said = str(error.value)
    assert "\n" not in said
    return said


def changed(row: int, column: int, value: float) -> Any:
    """A sound matrix but for one entry."""
    a = laplacian(6, 6).tolil()
    a[row, column] = value
    return a.tocsr()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused_with_its_row(value: float) -> None:
    assert "7" in refused(changed(7, 7, value), np.ones(36))
    assert "7" in refused(changed(7, 8, value), np.ones(36))
    b = np.ones(36)
    b[7] = value
    assert refused(laplacian(6, 6), b).startswith(f"b[7] is {value}")
    assert refused(laplacian(6, 6), np.ones(36), x0=b).startswith(f"x0[7] is {value}")
    with pytest.raises(fo.SolveError, match=rf"^r\[7\] is {value}"):
        fo.Solver(laplacian(6, 6)).precondition(b)


@pytest.mark.parametrize("size", [4e307, 1e200, 1e-200, 1e-307])
def test_numbers_whose_squares_are_none_are_solved_with(size: float) -> None:
    a = laplacian(6, 6)
    x, info = fo.solve(a, np.full(36, size), atol=1e-9 * size)
    assert info.converged
    assert residual(a, x / size, np.ones(36)) <= 1e-7


@pytest.mark.parametrize("value", [0.0, -4.0])
def test_a_diagonal_that_is_not_positive_is_refused_with_its_row(value: float) -> None:
    assert "row 9" in refused(changed(9, 9, value), np.ones(36))


def test_a_diagonal_that_is_not_there_is_refused_with_its_row() -> None:
    a = changed(9, 9, 0.0)
    a.eliminate_zeros()
    assert "row 9" in refused(a, np.ones(36))


def test_an_unsymmetric_matrix_is_refused_and_told_how_to_mend_it() -> None:
    said = refused(changed(9, 10, -0.5), np.ones(36))
    assert "9" in said
    assert "10" in said
    lower = sparse.csr_array(sparse.tril(laplacian(6, 6)))
    said = refused(lower, np.ones(36))
    assert "lower" in said
    x, info = fo.solve(lower, np.ones(36), lower=True)
    assert info.converged
    assert np.array_equal(x, fo.solve(laplacian(6, 6), np.ones(36))[0])


def test_an_upper_triangle_is_refused_where_the_lower_is_asked_for() -> None:
    upper = sparse.csr_array(sparse.triu(laplacian(6, 6)))
    said = refused(upper, np.ones(36), lower=True)
    assert "lower: the matrix has an entry (0, 1) above the diagonal and none below it" in said
    assert "A.T" in said
    x, _ = fo.solve(upper.T, np.ones(36), lower=True)
    assert np.array_equal(x, fo.solve(laplacian(6, 6), np.ones(36))[0])


def test_what_lies_above_the_diagonal_is_not_used_where_the_lower_triangle_is() -> None:
    x, info = fo.solve(changed(9, 10, -0.5), np.ones(36), lower=True)
    assert info.converged
    assert np.array_equal(x, fo.solve(laplacian(6, 6), np.ones(36))[0])
    x, _ = fo.solve(sparse.csr_array(np.diag([2.0, 4.0])), np.ones(2), lower=True)
    assert np.allclose(x, [0.5, 0.25], rtol=1e-6)


def test_an_almost_symmetric_matrix_is_solved_as_the_mean_of_both_triangles() -> None:
    a = changed(9, 10, -1.001)
    x, info = fo.solve(a, np.ones(36), symmetrize=True)
    assert info.converged
    assert residual((a + a.T) / 2, x, np.ones(36)) <= 1e-7


@pytest.mark.parametrize(
    ("b", "said"),
    [
        (np.ones(35), "b has shape (35,): expected (36,)"),
        (np.ones((36, 2)), "one right-hand side at a time"),
        (np.ones((6, 6)), "b has shape (6, 6)"),
        (np.ones(36) * 1j, "b holds complex128: expected real numbers"),
        (["a"] * 36, "expected real numbers"),
        (3.0, "b has shape ()"),
    ],
)
def test_a_right_hand_side_that_does_not_fit_is_refused(b: Any, said: str) -> None:
    assert said in refused(laplacian(6, 6), b)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"rtol": -1.0}, "rtol=-1.0"),
        ({"rtol": float("nan")}, "rtol=nan"),
        ({"atol": "1"}, "atol='1'"),
        ({"rtol": 10**400}, "expected a number from 0 on"),
        ({"atol": 10**400}, "expected a number from 0 on"),
        ({"maxiter": 0}, "maxiter=0"),
        ({"maxiter": 2.5}, "maxiter=2.5"),
        ({"block": 0}, "block=0"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(how: dict[str, Any], said: str) -> None:
    assert said in refused(laplacian(6, 6), np.ones(36), **how)


def test_arrays_that_are_no_matrix_are_refused() -> None:
    a = laplacian(6, 6)
    a.indices[5] = 99
    assert "99" in refused(a, np.ones(36))
    a.indices[5] = -1
    refused(a, np.ones(36))


def test_the_iterations_that_were_allowed_end_it() -> None:
    a = laplacian(20, 20, 20)
    b = np.ones(8000)
    x, info = fo.solve(a, b, maxiter=3)
    assert (info.converged, info.reason, info.iterations) == (False, "iterations", 3)
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-6)


def test_an_indefinite_matrix_never_converges() -> None:
    a = laplacian(10, 10) - 1.9 * sparse.eye_array(100)
    for seed in range(5):
        b = np.random.default_rng(seed).standard_normal(100)
        x, info = fo.solve(sparse.csr_array(a), b)
        assert info.reason == "indefinite"
        assert info.residual == pytest.approx(residual(a, x, b), rel=1e-6)
    two = sparse.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert fo.solve(two, np.array([1.0, -1.0]))[1].reason == "indefinite"


def test_pure_neumann_is_solved_where_the_nullspace_is_named() -> None:
    a = neumann(30, 30)
    b = np.random.default_rng(6).standard_normal(900)
    x, info = fo.solve(a, b - b.mean(), nullspace="constant")
    assert info.converged
    assert residual(a, x, b - b.mean()) <= 1e-7
    assert abs(x.mean()) <= 1e-9 * np.abs(x).max()
    _, info = fo.solve(a, b)
    assert not info.converged


def neumann(*cells: int) -> Any:
    a = laplacian(*cells)
    a.setdiag(a.diagonal() - np.asarray(a.sum(axis=1)))
    return a


@pytest.mark.parametrize("share", [1e-5, 0.1, 1.0])
def test_a_mean_of_b_that_nothing_can_make_is_told_and_the_rest_is_solved(share: float) -> None:
    a = neumann(30, 30)
    b = np.random.default_rng(6).standard_normal(900)
    b += share - b.mean()
    x, info = fo.solve(a, b, nullspace="constant")
    assert (info.converged, info.reason) == (False, "inconsistent")
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-6)
    assert info.residual > 0.5 * share * 30 / np.linalg.norm(b)
    assert info.solved_residual == pytest.approx(residual(a, x, b - b.mean()), rel=1e-3)
    assert info.solved_residual <= 1e-7
    assert "b does not add up to 0" in str(info)
    assert f"{info.residual:.2e} of b as it was given" in str(info)


@pytest.mark.parametrize("share", [0.0, 1e-9, 5e-8])
def test_a_mean_of_b_that_is_small_enough_is_made_up_for(share: float) -> None:
    a = neumann(30, 30)
    b = np.random.default_rng(6).standard_normal(900)
    b -= b.mean()
    b += share * np.linalg.norm(b) / 30
    x, info = fo.solve(a, b, nullspace="constant")
    assert info.converged
    assert residual(a, x, b) <= 1e-7
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-6)


def test_constants_are_all_that_nothing_can_make() -> None:
    x, info = fo.solve(neumann(8, 8), np.full(64, 3.0), nullspace="constant")
    assert info.reason == "inconsistent"
    assert info.residual == pytest.approx(1.0)
    assert not x.any()


def test_a_nullspace_that_is_not_there_is_refused_and_not_taken_out_of_x() -> None:
    with pytest.raises(fo.SolveError, match=r"^row 0: does not add up to 0.*leave nullspace out$"):
        fo.solve(laplacian(30, 30), np.ones(900), nullspace="constant")


def test_what_watch_sees_falls_and_false_stops_it() -> None:
    a = laplacian(16, 16, 16)
    b = np.ones(4096)
    seen: list[tuple[int, float]] = []
    _, info = fo.solve(a, b, callback=lambda *step: seen.append(step))
    assert [iteration for iteration, _ in seen] == list(range(1, info.iterations + 1))
    assert seen[-1][1] < 1e-6 < seen[0][1]
    _, info = fo.solve(a, b, callback=lambda iteration, _: iteration < 4)
    assert (info.reason, info.iterations) == ("stopped", 4)


def test_what_watch_raises_is_raised() -> None:
    def callback(iteration: int, _: float) -> None:
        if iteration == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fo.solve(laplacian(16, 16), np.ones(256), callback=callback)


def test_a_watch_that_asks_its_own_solver_is_told_so() -> None:
    solver = fo.Solver(laplacian(9, 9))
    with pytest.raises(fo.SolveError, match="its callback cannot call it"):
        solver.solve(np.ones(81), callback=lambda *_: solver.precondition(np.ones(81)))
    assert solver.solve(np.ones(81))[1].converged


def test_ctrl_c_ends_it_within_the_iteration() -> None:
    program = (
        "import numpy as np, flowos as fo\n"
        "from flowos.solver import poisson\n"
        "a = poisson(64, 64, 64)\n"
        "solver = fo.Solver(a, coarse='none')\n"
        "print('begins', flush=True)\n"
        "while True: solver.solve(np.ones(64**3), rtol=0, maxiter=10**9)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "begins\n"
        os.kill(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=300)
    assert error.rstrip().endswith("KeyboardInterrupt")


def test_a_forked_child_solves_too() -> None:
    program = (
        "import os, signal, sys, numpy as np, flowos as fo\n"
        "from flowos.solver import poisson\n"
        "a, b = poisson(40, 40, 40), np.ones(64000)\n"
        "solver = fo.Solver(a, threads=2)\n"
        "x, _ = solver.solve(b)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(300)\n"
        "    same = [solver.solve(b)[0].tobytes(), fo.solve(a, b, threads=2)[0].tobytes()]\n"
        "    os._exit(0 if same == [x.tobytes()] * 2 else 3)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_child_forked_during_a_solve_of_another_thread_is_told_and_does_not_wait() -> None:
    program = (
        "import os, signal, sys, threading, numpy as np, flowos as fo\n"
        "from flowos.solver import poisson\n"
        "a, b = poisson(20, 20, 20), np.ones(8000)\n"
        "solver, begun, goes_on = fo.Solver(a, threads=2), threading.Event(), threading.Event()\n"
        "def wait(*_): begun.set(); goes_on.wait()\n"
        "busy = threading.Thread(target=solver.solve, args=(b,), kwargs={'callback': wait})\n"
        "busy.start(); begun.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    try: solver.solve(b)\n"
        "    except fo.SolveError as why: told = 'when this process was forked' in str(why)\n"
        "    os._exit(0 if told and fo.solve(a, b, threads=2)[1].converged else 3)\n"
        "goes_on.set(); busy.join()\n"
        "assert solver.solve(b)[1].converged\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("coarse", ["none", "aggregates"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_what_is_ended_early_is_closer_with_each_iteration(coarse: Any, precision: Any) -> None:
    a = laplacian(60, 60)
    b = np.ones(a.shape[0])
    energies = [0.0]
    for most in (1, 2, 3, 5):
        x, info = fo.solve(a, b, maxiter=most, coarse=coarse, precision=precision)
        assert (info.reason, info.iterations) == ("iterations", most)
        assert info.residual == pytest.approx(residual(a, x, b))
        energies.append(x @ (a @ x) / 2 - b @ x)
    assert energies == sorted(energies, reverse=True)
    assert len(set(energies)) == len(energies)
    x, info = fo.solve(a, b, callback=lambda iteration, _: iteration < 2, coarse=coarse)
    assert info.reason == "stopped"
    assert x.any()
