"""Matrices as people have them: odd, empty, of other types, or not what their file says."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy import sparse

import flowos as fo
from flowos.solver import read_matrix

from .matrices import graph, laplacian, residual


def refused(*args: Any, **how: Any) -> str:
    with pytest.raises(fo.SolveError) as error:
        fo.solve(*args, **how)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_one_equation_is_solved() -> None:
    for value in (4.0, 1e-300, 1e300):
        x, info = fo.solve(sparse.csr_array([[value]]), [2.0])
        assert info.converged
        assert x[0] == pytest.approx(2.0 / value)


@pytest.mark.parametrize(
    ("a", "said"),
    [
        (sparse.csr_array((0, 0)), "A is empty"),
        (sparse.csr_array((3, 4)), "A has shape (3, 4): it must be square"),
        (sparse.csr_array((4, 4)), "row 0: the diagonal is 0 or missing"),
        (sparse.csr_array(np.diag([1.0, 0.0, 1.0])), "row 1: the diagonal is 0 or missing"),
        (sparse.csr_array(np.diag([1.0, -1e-160])), "row 1: the diagonal is -1e-160"),
        (sparse.csr_array(np.eye(3) * 1j), "A holds complex128: expected real numbers"),
        (np.eye(3), "of a dense one take scipy.sparse.csr_array(A)"),
        ([[2.0]], "expected a sparse matrix"),
        (None, "expected a sparse matrix"),
        (sparse.csr_array(np.array([[2.0, np.nan], [np.nan, 2.0]])), "row 0: the entry of col"),
        (sparse.csr_array(np.array([[2.0, 1.0], [0.0, 2.0]])), "not symmetric"),
    ],
)
def test_what_is_no_such_matrix_is_refused_in_one_line(a: Any, said: str) -> None:
    rows = a.shape[0] if hasattr(a, "shape") else 1
    assert said in refused(a, np.ones(rows))


def test_an_empty_row_is_refused_with_its_number() -> None:
    a = sparse.lil_array(laplacian(6, 6))
    a[11, :] = 0
    a[:, 11] = 0
    a = sparse.csr_array(a)
    a.eliminate_zeros()
    assert "row 11: the diagonal is 0 or missing" in refused(a, np.ones(36))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8, np.float32, np.bool_])
def test_numbers_of_every_real_type_are_taken(kind: Any) -> None:
    a = sparse.csr_array(np.diag([1, 1, 1, 1])).astype(kind)
    x, info = fo.solve(a, np.array([1, 0, 1, 1]).astype(kind))
    assert info.converged
    assert x.dtype == np.float64
    assert np.array_equal(x, [1, 0, 1, 1])


def test_entries_of_a_coo_matrix_that_come_twice_are_added_up() -> None:
    a = graph(500, 4).tocoo()
    one = (np.concatenate([a.row, a.row]), np.concatenate([a.col, a.col]))
    twice = sparse.coo_array((np.concatenate([a.data / 2, a.data / 2]), one), shape=a.shape)
    b = np.ones(500)
    assert np.array_equal(fo.solve(twice, b)[0], fo.solve(a, b)[0])


def test_the_last_bit_may_differ_across_the_diagonal() -> None:
    a = laplacian(9, 9)
    b = np.ones(81)
    x, _ = fo.solve(a, b)
    other = a.tolil()
    other[5, 6] = np.nextafter(-1.0, 0.0)
    same, info = fo.solve(other.tocsr(), b)
    assert info.converged
    assert np.allclose(same, x, rtol=1e-6)
    assert residual(other.tocsr(), same, b) <= 1e-7


@pytest.mark.parametrize(
    "b", [[], [1.0] * 5, np.ones((2, 18)), np.ones(37), "b", None, [None] * 36, [[1], [2, 3]]]
)
def test_a_right_hand_side_of_another_shape_or_type_is_refused(b: Any) -> None:
    assert refused(laplacian(6, 6), b).startswith(
        ("b ", "b=[[1], [2, 3]] (list): expected (36,) real numbers; NumPy")
    )


def test_masked_numbers_are_not_taken_for_numbers() -> None:
    b = np.ma.masked_array(np.ones(36), mask=[True, *[False] * 35])
    assert refused(laplacian(6, 6), b) == "b has masked values: fill them, as with b.filled(0)"


@pytest.mark.parametrize("make", [sparse.coo_array, sparse.csr_matrix])
def test_a_sparse_right_hand_side_is_refused_with_its_remedy(make: Any) -> None:
    assert refused(laplacian(6, 6), make(np.ones(36))) == "b is sparse: give b.toarray()"


def test_a_callback_that_cannot_be_called_is_refused_before_all_else() -> None:
    said = refused(laplacian(6, 6), np.ones(36), callback=3)
    assert said == "callback=3 (int); expected a function, or None"
    said = refused(laplacian(6, 6), np.ones(36), maxiter=2**63 - 1)
    assert said.endswith("expected a whole number, 1 to 2**62")


MARKET = "%%MatrixMarket matrix "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("array real general\n2 2\n1\n0\n0\n1\n", "line 1: format 'array'"),
        ("coordinate complex hermitian\n1 1 1\n1 1 1 0\n", "line 1: values 'complex'"),
        ("coordinate real skew-symmetric\n2 2 1\n2 1 1\n", "line 1: symmetry 'skew-symmetric'"),
        ("coordinate real hermitian\n1 1 1\n1 1 1\n", "line 1: symmetry 'hermitian'"),
        ("coordinate real general\n2 3 2\n1 1 1\n2 2 1\n", "line 2: 2 rows and 3 columns"),
        ("coordinate real general\n0 0 0\n", "line 2: the matrix is empty"),
        ("coordinate real general\n2 2 2\n1 1 1\n3 2 1\n", "line 4: row '3': expected 1 to 2"),
        ("coordinate real general\n2 2 2\n1 1 1\n0 2 1\n", "line 4: row '0': expected 1 to 2"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 nan\n", "line 4: value 'nan'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 1e999\n", "line 4: value '1e999'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 1d999\n", "line 4: value '1d999'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 1D\n", "line 4: value '1D'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 1e5-3\n", "line 4: value '1e5-3'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 D3\n", "line 4: value 'D3'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 4-1\n", "line 4: value '4-1'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 2024-01\n", "line 4: value '2024-01'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 4-100\n", "line 4: value '4-100'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2 1.5+30\n", "line 4: value '1.5+30'"),
        ("coordinate integer general\n2 2 2\n1 1 1\n2 2 200-1\n", "line 4: value '200-1'"),
        ("coordinate integer general\n2 2 2\n1 1 1\n2 2 2.+002\n", "line 4: value '2.+002'"),
        ("coordinate real general\n2 2 2\n1 1 1\n2 2\n", "line 4: value ''"),
        ("coordinate pattern general\n2 2 2\n1 1 1\n2 2\n", "line 3: nothing is expected"),
        ("coordinate real symmetric\n2 2 4\n1 1 2\n2 1 1\n1 2 1\n2 2 2\n", "one triangle only"),
        ("coordinate real general\n2 2 3\n1 1 1\n2 2 1\n", "3 entries are promised in line 2"),
        ("coordinate real general\n2 2\n", "line 2: expected rows, columns and entries"),
        ("coordinate real general\n% nothing", "line 2: the file ends before"),
    ],
)
def test_a_file_that_is_no_such_matrix_is_refused_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(MARKET + text)
    with pytest.raises(fo.SolveError) as error:
        read_matrix(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_files_of_each_kind_that_can_be_solved_are_read(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "a.mtx"
    for text, diagonal in (
        ("coordinate pattern symmetric\n3 3 3\n1 1\n2 2\n3 3\n", [1.0, 1.0, 1.0]),
        ("COORDINATE Integer General\n% a word\n\n2 2 2\n1 1 3\n\n2 2 +4\n", [3.0, 4.0]),
        ("coordinate real symmetric\n2 2 2\n1 1 1e-320\n2 2 2.5E0", [1e-320, 2.5]),
        ("coordinate real general\n2 2 2\n1 1 1.5D+03\n2 2 +.25d-1\n", [1500.0, 0.025]),
        ("coordinate real general\n2 2 2\n1 1 0.1500+301\n2 2 15.-101\n", [1.5e300, 1.5e-100]),
    ):
        path.write_text((MARKET + text).replace("\n", ends), newline="")
        found = read_matrix(path)
        assert np.array_equal(found.data, diagonal)
        assert np.array_equal(found.indices, np.arange(len(diagonal)))


@pytest.mark.parametrize("options", [{}, {"precision": "fp64"}, {"coarse": "none"}])
@pytest.mark.parametrize("factor", [1.01, 2.0, -1.0])
def test_the_residual_of_a_solve_is_that_of_a_as_it_is_then(
    options: dict[str, Any], factor: float
) -> None:
    """A is not copied. Changed in place after the set-up, it is solved as it is now, or is not."""
    a, b = laplacian(16, 16, 16), np.ones(16**3)
    solver = fo.Solver(a, **options)
    a.data *= factor
    x, info = solver.solve(b)
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-6)
    goes_on = factor == 2 and "precision" not in options  # in fp64, set up of A as it is now
    assert info.converged == (factor == 1.01 or goes_on)


@pytest.mark.parametrize("options", [{}, {"precision": "fp64"}, {"coarse": "aggregates"}])
@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("value", [2**31 - 1, -(2**30)])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_places_that_are_not_there_any_more_are_refused_and_not_read(
    options: dict[str, Any], part: str, value: int, kind: Any
) -> None:
    a, b = laplacian(16, 16, 16), np.ones(16**3)
    a.indices, a.indptr = a.indices.astype(kind), a.indptr.astype(kind)
    solver = fo.Solver(a, **options)

    def overwrite(*_: object) -> None:
        getattr(a, part)[1:] = value

    for callback in (overwrite, None):  # within a solve, and before one
        with pytest.raises(fo.SolveError) as error:
            solver.solve(b, callback=callback)
        assert str(error.value).startswith("row ")
        assert "indptr or indices of A were overwritten after the set-up" in str(error.value)


def test_of_a_matrix_that_became_another_nothing_is_set_up_anew() -> None:
    a = laplacian(16, 16, 16)
    solver = fo.Solver(a, coarse="none")
    a.indices[:] = np.random.default_rng(0).integers(0, a.shape[0], len(a.indices))
    with pytest.raises(fo.SolveError, match=r"^indptr or indices of A were overwritten after the"):
        solver.solve(np.ones(a.shape[0]))


@pytest.mark.parametrize("coarse", ["none", "aggregates"])
def test_of_other_values_alone_the_rest_of_a_solve_is_set_up_in_fp64(
    coarse: Literal["none", "aggregates"],
) -> None:
    a, b = laplacian(16, 16, 16), np.ones(16**3)
    solver = fo.Solver(a, coarse=coarse)
    a.data *= 1 + 1e-9 * np.cos(abs(a.indices - np.repeat(np.arange(16**3), np.diff(a.indptr))))
    x, info = solver.solve(b, rtol=1e-15)
    assert info.precision == "fp64"
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-1)
    a.data *= 3
    x, info = solver.solve(b, rtol=1e-12)
    assert info.residual == pytest.approx(residual(a, x, b), rel=1e-1)
