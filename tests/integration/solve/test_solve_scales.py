"""However large or small the numbers: solved as if they were around 1, or refused in words."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import flowos as fo

from .matrices import graph, laplacian, residual, wathen

EXPONENTS = (-960, -532, -400, -200, -64, 64, 200, 400, 532, 960)


@pytest.mark.parametrize("coarse", ["none", "aggregates"])
@pytest.mark.parametrize("precision", ["auto", "fp64"])
def test_a_matrix_times_a_power_of_two_has_the_same_x_but_for_that(
    coarse: Any, precision: Any
) -> None:
    for a in (laplacian(12, 12, 12), graph(700, 3), wathen(9, seed=2)):
        b = np.random.default_rng(1).standard_normal(a.shape[0])
        x, info = fo.solve(a, b, coarse=coarse, precision=precision)
        for exponent in EXPONENTS:
            scaled = sparse.csr_array((np.ldexp(a.data, exponent), a.indices, a.indptr))
            same, its = fo.solve(scaled, np.ldexp(b, exponent), coarse=coarse, precision=precision)
            assert (its.reason, its.iterations) == ("converged", info.iterations), exponent
            if coarse == "none":
                assert np.array_equal(same, x), exponent


@pytest.mark.parametrize("size", [1e308, 1e300, 1e160, 1e40, 1e-40, 1e-160, 1e-300])
def test_a_matrix_of_any_size_is_solved_with(size: float) -> None:
    a = laplacian(20, 20, 20) / 6
    b = np.ones(8000)
    x, info = fo.solve(a * size, b)
    assert info.converged
    assert info.iterations < 40
    assert residual(a, x * size, b) <= 1e-7


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_bits_for_any_number_of_threads_where_it_is_scaled(threads: int) -> None:
    a = graph(3000, 9) * 1e-170
    b = np.random.default_rng(3).standard_normal(3000) * 1e120
    assert np.array_equal(fo.solve(a, b, threads=threads)[0], fo.solve(a, b)[0])


def test_numbers_without_all_their_digits_are_solved_with() -> None:
    a = laplacian(15, 15)
    b = np.random.default_rng(5).standard_normal(225)
    tiny = sparse.csr_array((a.data * 2.0**-1072, a.indices, a.indptr))
    x, info = fo.solve(tiny, b * 2.0**-900)
    assert info.converged
    assert residual(a, x * 2.0**-172, b) <= 1e-7


@pytest.mark.parametrize(("of_a", "of_b"), [(1e-160, 1e160), (1e-300, 1e300), (1e-10, 1e305)])
def test_an_x_that_is_larger_than_any_double_is_refused(of_a: float, of_b: float) -> None:
    with pytest.raises(fo.SolveError, match=r"^x\[\d+\] is larger than any double: ") as refused:
        fo.solve(laplacian(9, 9) * of_a, np.full(81, of_b))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("of_a", "of_b"), [(1e300, 1e-300), (1.0, 5e-324), (1e10, 1e-313)])
def test_an_x_that_is_too_small_for_its_digits_does_not_pass_for_converged(
    of_a: float, of_b: float
) -> None:
    x, info = fo.solve(laplacian(20, 20) * of_a, np.full(400, of_b))
    assert (info.converged, info.reason) == (False, "stagnated")
    rest = np.full(400, of_b) - (laplacian(20, 20) * of_a) @ x
    size = np.linalg.norm(rest / of_b) / 20
    assert info.residual == pytest.approx(size, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("decades", [30, 60, 150, 300])
def test_a_diagonal_of_all_sizes_is_solved_with(decades: int) -> None:
    d = 10.0 ** np.linspace(-decades, decades, 500)
    x, info = fo.solve(sparse.csr_array(sparse.diags_array(d)), np.ones(500))
    assert info.converged
    assert np.allclose(x * d, 1.0, rtol=1e-6, atol=0)


@pytest.mark.parametrize("decades", [20, 70, 150])
def test_what_doubles_cannot_solve_ends_soon_and_does_not_pass_for_converged(decades: int) -> None:
    d = sparse.diags_array(10.0 ** np.linspace(-decades, decades, 1000))
    a = sparse.csr_array(d @ laplacian(10, 10, 10) @ d)
    x, info = fo.solve(sparse.csr_array((a + a.T) / 2), np.ones(1000))
    assert not info.converged
    assert info.iterations < 2000
    assert np.isfinite(x).all()
    assert np.isfinite(info.residual)


def test_the_preconditioner_of_a_scaled_matrix_is_that_of_the_matrix() -> None:
    a = laplacian(12, 12)
    r = np.random.default_rng(7).standard_normal(144)
    z = fo.Solver(a, precision="fp64").precondition(r)
    scaled = sparse.csr_array((a.data * 2.0**400, a.indices, a.indptr))
    assert np.array_equal(fo.Solver(scaled, precision="fp64").precondition(r) * 2.0**400, z)


def test_a_beginning_that_is_too_far_off_is_none() -> None:
    a, b = laplacian(9, 9), np.ones(81)
    x, info = fo.solve(a, b, x0=np.full(81, 1e300))
    assert info.converged
    assert residual(a, x, b) <= 1e-7
