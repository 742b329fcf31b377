"""Matrix Market files: read as SciPy reads them, and refused with the line that is wrong."""

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

import flowos as fo
from flowos.solver import Csr, g3like, poisson, read_matrix

from .matrices import graph, laplacian

HEAD = "%%MatrixMarket matrix coordinate real symmetric\n"


def scipy_of(matrix: Csr) -> Any:
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


def same(matrix: Csr, other: Any) -> bool:
    other = sparse.csr_array(other)
    other.sort_indices()
    return (
        np.array_equal(matrix.indptr, other.indptr)
        and np.array_equal(matrix.indices, other.indices)
        and np.array_equal(matrix.data, other.data)
    )


@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_what_scipy_wrote_is_read_bit_for_bit(tmp_path: Path, symmetry: str, suffix: str) -> None:
    a = graph(2000, 1)
    path = tmp_path / "a.mtx"
    scipy_io.mmwrite(path, a, symmetry=symmetry, precision=17)
    if suffix == ".mtx.gz":
        path = tmp_path / "a.mtx.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes(), 1))
    found = read_matrix(path)
    assert same(found, a)
    assert same(found, scipy_io.mmread(tmp_path / "a.mtx"))


def test_the_archive_of_the_collection_is_read(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "toy.tar.gz", "w:gz") as archive:
        for name, text in (
            ("toy/toy_b.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n"),
            ("toy/toy.mtx", HEAD + "2 2 3\n1 1 2\n2 1 -1\n2 2 2\n"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    found = read_matrix(tmp_path / "toy.tar.gz")
    assert same(found, [[2.0, -1.0], [-1.0, 2.0]])
    x, info = fo.solve(found, [1.0, 1.0])
    assert info.converged
    assert np.allclose(x, 1.0)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("none.mtx", None, "No such file or directory"),
        ("text.mtx", b"hello", "line 1: no Matrix Market file"),
        ("empty.mtx", b"", "line 1: no Matrix Market file"),
        ("bad.mtx", (HEAD + "2 2 2\n1 1 2\n2 x 2\n").encode(), "line 4: column 'x'"),
        ("cut.mtx", (HEAD + "9 9 9\n1 1 2\n").encode(), "line 3: 9 entries are promised"),
        ("a.mtx.gz", gzip.compress(HEAD.encode(), mtime=0)[:-6], "damaged"),
        ("b.mtx.gz", b"\x1f\x8b" + b"\xff" * 40, "damaged"),
        ("p.mtx.gz", b"hello", "no gzip file, though named so, nor a Matrix Market file"),
        ("c.mtx.gz", gzip.compress(b"hello", mtime=0), "line 1: no Matrix Market file"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(fo.SolveError) as refused:
        read_matrix(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_archive_without_a_matrix_says_so(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "toy.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("toy/readme.txt"))
    with pytest.raises(fo.SolveError, match=r"no NAME/NAME\.mtx is in it"):
        read_matrix(tmp_path / "toy.tar.gz")


def test_poisson_is_the_laplacian_whose_x_moves_fastest() -> None:
    assert same(poisson(4, 3, 2), laplacian(2, 3, 4))
    assert same(poisson(5, 1, 1), laplacian(5) + 4 * sparse.eye_array(5))


def test_g3like_is_of_the_size_it_says_and_solvable() -> None:
    a = scipy_of(g3like(1))
    assert a.shape == (1_585_478, 1_585_478)
    assert abs(a.nnz - 7_660_826) < 20_000
    assert (a.diagonal() > 0).all()
    assert abs(a - a.T).max() == 0
    assert g3like(1).data.tobytes() == a.data.tobytes() != g3like(2).data.tobytes()


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_a_device_that_never_ends_is_refused(device: str) -> None:
    with pytest.raises(fo.SolveError, match=f"{device}: it is a device"):
        read_matrix(device)
