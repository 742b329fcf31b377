"""Files of matrices that are no grids of Poisson's equation."""

from pathlib import Path

import numpy as np
from scipy import io, sparse

from flowos.solver import read_matrix

from .matrices import wathen


def scaled(path: Path, factor: float) -> Path:
    """The same, each value of it times so much."""
    found = read_matrix(path)
    to = path.with_name(f"{path.stem}-{factor:g}.mtx")
    io.mmwrite(
        to,
        sparse.csr_array((found.data * factor, found.indices, found.indptr)),
        symmetry="symmetric",
        precision=17,
    )
    return to


def power_grid(folder: Path, side: int = 60) -> Path:
    """A mesh of resistors over two decades, some of them missing, a node in a hundred grounded."""
    random = np.random.default_rng(5)
    node = random.permutation(side * side).reshape(side, side)  # else a grid would be found
    ends = np.concatenate(
        [
            np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
            np.stack([node[:-1].ravel(), node[1:].ravel()]),
        ],
        axis=1,
    )
    ends = ends[:, random.random(ends.shape[1]) > 0.045]
    half = sparse.coo_array(
        (10.0 ** random.uniform(-1, 1, ends.shape[1]), (ends[0], ends[1])), shape=(node.size,) * 2
    )
    ties = sparse.csr_array(half + half.T)
    ground = (random.random(node.size) < 0.01) + 1e-9
    path = folder / "grid.mtx"
    io.mmwrite(path, sparse.diags_array(ties.sum(axis=1) + ground) - ties, symmetry="symmetric")
    return path


def grid_file(folder: Path, n: int = 12) -> Path:
    """A grid with triangles, whose cells touch at corners, in lower triangular storage."""
    entries = []
    for i in range(n * n):
        links = [j for j in (i + 1, i + n, i + n + 1) if j < n * n and (j % n or j == i + n)]
        entries += [f"{j + 1} {i + 1} {-1 - (i * j) % 7 / 8}" for j in links]
        entries.append(f"{i + 1} {i + 1} 16")
    path = folder / "mesh.mtx"
    head = "%%MatrixMarket matrix coordinate real symmetric"
    path.write_text("\n".join((head, f"{n * n} {n * n} {len(entries)}", *entries)) + "\n")
    return path


def elements_file(folder: Path) -> Path:
    """Rows that are not dominant: pivots are raised."""
    path = folder / "elements.mtx"
    io.mmwrite(path, wathen(20, seed=6), symmetry="symmetric")
    return path
