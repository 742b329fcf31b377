"""Matrices of scipy.sparse, as the solver takes them."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from flowos.model import SolveError
from flowos.solver import Csr
from flowos.solver._csr import as_csr

DENSE = np.array([[4.0, -1.0, 0.0], [-1.0, 4.0, -2.0], [0.0, -2.0, 5.0]])


def dense_of(matrix: Csr) -> np.ndarray:
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return np.asarray(sparse.csr_array(parts, shape=matrix.shape).todense())


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_every_format_is_the_same_matrix(make: Any, form: str) -> None:
    found = as_csr(make(DENSE).asformat(form))
    assert np.array_equal(dense_of(found), DENSE)
    assert found.shape == (3, 3)
    assert found.nnz == (9 if form == "bsr" else 7)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_compressed_rows_and_columns_are_not_copied(form: str) -> None:
    given = sparse.csr_array(DENSE).asformat(form)
    found = as_csr(given)
    assert np.shares_memory(found.data, given.data)
    assert np.shares_memory(found.indices, given.indices)
    assert np.shares_memory(found.indptr, given.indptr)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_indices_of_64_bits_stay_so(index: Any) -> None:
    given = sparse.csr_array(DENSE)
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    found = as_csr(given)
    assert {found.indices.dtype, found.indptr.dtype} == {np.dtype(index)}


def test_indices_of_two_kinds_become_one() -> None:
    given = sparse.csr_array(DENSE)
    given.indptr = given.indptr.astype(np.int64)
    found = as_csr(given)
    assert {found.indices.dtype, found.indptr.dtype} == {np.dtype(np.int64)}


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.float32, np.bool_])
def test_entries_given_several_times_are_added_in_a_type_that_takes_their_sum(kind: Any) -> None:
    count, ones = 300, np.ones(300, kind)
    by_place = sparse.coo_array((ones, ([0] * count, [0] * count)), shape=(1, 1))
    by_rows = sparse.csr_array((ones, [0] * count, [0, count]), shape=(1, 1))
    for given in (by_place, by_rows, by_rows.T):
        assert as_csr(given).data.tolist() == [300.0]
        assert as_csr(given, lower=True).data.tolist() == [300.0]


def test_masked_values_and_arrays_that_are_no_entries_are_refused() -> None:
    masked, flat, real = (sparse.csr_array(np.eye(2)) for _ in range(3))
    masked.data = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    flat.data, real.indices = np.ones((2, 1)), np.array([0.0, 1.0])
    with pytest.raises(SolveError, match=r"A has masked values: fill them"):
        as_csr(masked)
    for given in (flat, real):
        with pytest.raises(SolveError, match=r"A: data .* must be one-dimensional"):
            as_csr(given)


def with_parts(**parts: Any) -> Any:
    """A matrix whose arrays were set by hand, which SciPy does not look at."""
    given = sparse.csr_array(DENSE)
    for name, part in parts.items():
        setattr(given, name, part)
    return given


@pytest.mark.parametrize("kind", [np.uint32, np.uint64, np.int16, ">i4", ">i8"])
def test_indices_of_other_types_are_taken(kind: Any) -> None:
    plain = sparse.csr_array(DENSE)
    indices, starts = plain.indices.astype(kind), plain.indptr.astype(kind)
    given = with_parts(indices=indices, indptr=starts)
    assert np.array_equal(dense_of(as_csr(given)), DENSE)
    assert given.indices is indices


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32, np.uint64])
def test_starts_of_rows_that_fall_are_refused(kind: Any) -> None:
    starts = np.array([0, 5, 2, 7], kind)
    indices = sparse.csr_array(DENSE).indices.astype(kind)
    with pytest.raises(SolveError, match="A: indptr must not fall"):
        as_csr(with_parts(indptr=starts, indices=indices))


def test_starts_of_rows_that_are_no_whole_numbers_are_refused() -> None:
    starts = sparse.csr_array(DENSE).indptr
    for given in (starts.astype(float), starts.astype(complex), starts[np.newaxis]):
        with pytest.raises(SolveError, match="indices and indptr whole numbers"):
            as_csr(with_parts(indptr=given))
    with pytest.raises(SolveError, match=r"A: indptr is \[.*\(list\): expected an array"):
        as_csr(with_parts(indptr=starts.tolist()))


@pytest.mark.parametrize("kind", [np.float32, np.int16, np.uint8, np.longdouble])
def test_other_real_numbers_become_doubles(kind: Any) -> None:
    found = as_csr(sparse.csr_array(np.abs(DENSE).astype(kind)))
    assert found.data.dtype == np.float64
    assert np.array_equal(dense_of(found), np.abs(DENSE))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (DENSE, "expected a sparse matrix; of a dense one take scipy.sparse.csr_array(A)"),
        ("matrix.mtx", "expected a sparse matrix"),
        (sparse.csr_array((3, 4)), "A has shape (3, 4): it must be square"),
        (sparse.csr_array((0, 0)), "A is empty"),
        (sparse.csr_array(DENSE.astype(complex)), "A holds complex128: expected real numbers"),
    ],
)
def test_what_is_no_such_matrix_is_refused(given: object, said: str) -> None:
    with pytest.raises(SolveError) as refused:
        as_csr(given)
    assert said in str(refused.value)


def test_what_becomes_rows_need_not_say_its_format() -> None:
    class Operator:
        shape = DENSE.shape

        def tocsr(self) -> Any:
            return sparse.csr_array(DENSE)

    assert np.array_equal(dense_of(as_csr(Operator())), DENSE)


def test_entries_given_twice_are_added_up_in_a_copy() -> None:
    given = sparse.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    found = as_csr(given)
    assert np.array_equal(dense_of(found), [[2.0, 0.0], [0.0, 1.0]])
    assert given.nnz == 3


def test_room_behind_the_entries_is_no_entry() -> None:
    given = sparse.csr_array(DENSE)
    given.data = np.append(given.data, [np.nan] * 5)
    given.indices = np.append(given.indices, [99] * 5).astype(np.int32)
    found = as_csr(given)
    assert np.array_equal(dense_of(found), DENSE)


@pytest.mark.parametrize(
    "starts",
    [[0, 2, 5], [1, 2, 5, 7], [0, 2, 5, 9], [0, 10**9, 5, 7], [0, 5, 2, 7], [0, -4, 5, 7]],
)
def test_starts_that_are_no_matrix_are_refused(starts: list[int]) -> None:
    given = sparse.csr_array(DENSE)
    given.indptr = np.array(starts, np.int32)
    with pytest.raises(SolveError, match="A: indptr must"):
        as_csr(given)


def test_one_triangle_or_the_mean_of_both_but_not_both_wishes() -> None:
    with pytest.raises(SolveError, match="choose one"):
        as_csr(sparse.csr_array(DENSE), lower=True, symmetrize=True)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_the_lower_triangle_is_enough(form: str) -> None:
    lower = np.tril(DENSE)
    lower[0, 2] = 77.0
    given = sparse.csr_array(lower).asformat(form)
    assert np.array_equal(dense_of(as_csr(given, lower=True)), DENSE)


def test_the_mean_of_both_triangles_is_symmetric_bit_for_bit() -> None:
    random = np.random.default_rng(3)
    given = sparse.random_array((40, 40), density=0.2, rng=random).tocsr()
    found = dense_of(as_csr(given, symmetrize=True))
    assert np.array_equal(found, found.T)
    assert np.allclose(found, (given + given.T).todense() / 2, rtol=0, atol=1e-16)
