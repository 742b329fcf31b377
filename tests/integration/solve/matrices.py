"""Matrices that SciPy makes, and what is true of an answer, computed by SciPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Vector = NDArray[np.float64]


def laplacian(*cells: int, weights: tuple[float, ...] = ()) -> Any:
    """-div grad, 2 * the dimensions and -1, zero around; weights: of each axis."""
    total = sparse.csr_array((int(np.prod(cells)),) * 2)
    for axis, count in enumerate(cells):
        line = sparse.diags_array(
            [-np.ones(count - 1), np.full(count, 2.0), -np.ones(count - 1)], offsets=[-1, 0, 1]
        )
        before = sparse.eye_array(int(np.prod(cells[:axis])))
        after = sparse.eye_array(int(np.prod(cells[axis + 1 :])))
        weight = weights[axis] if weights else 1.0
        total = total + weight * sparse.kron(sparse.kron(before, line), after)
    return sparse.csr_array(total)


def graph(rows: int, seed: int, decades: float = 2.0, degree: int = 5) -> Any:
    """The Laplacian of a random graph, conductances over so many decades, each row grounded."""
    random = np.random.default_rng(seed)
    one = random.integers(0, rows, rows * degree // 2)
    other = random.integers(0, rows, rows * degree // 2)
    chain = np.arange(rows - 1)
    tails, heads = np.concatenate([one, chain]), np.concatenate([other, chain + 1])
    apart = tails != heads
    tails, heads = tails[apart], heads[apart]
    weights = 10.0 ** random.uniform(-decades / 2, decades / 2, len(tails))
    half = sparse.coo_array((weights, (tails, heads)), shape=(rows, rows)).tocsr()
    both = half + half.T
    ground = 10.0 ** random.uniform(-decades / 2 - 2, -decades / 2, rows)
    return sparse.csr_array(sparse.diags_array(np.asarray(both.sum(axis=1)) + ground) - both)


def wathen(cells: int, seed: int) -> Any:
    """Mass matrix of serendipity elements, cells x cells, of random densities (Wathen: IMA Journal
    of Numerical Analysis 7, 1987). No row is diagonally dominant."""
    corner = np.array([[6, -6, 2, -8], [-6, 32, -6, 20], [2, -6, 6, -6], [-8, 20, -6, 32]])
    across = np.array([[3, -8, 2, -6], [-8, 16, -8, 20], [2, -8, 3, -8], [-6, 20, -8, 16]])
    element = np.block([[corner, across], [across.T, corner]]) / 45
    y, x = (axis.ravel() for axis in np.indices((cells, cells)))
    row = 3 * cells + 2  # nodes of a row of cells: on its lower sides, and half way up
    left, low, high = 2 * x + row * y, x + row * y + 2 * cells + 1, 2 * x + row * (y + 1)
    around = (high + 2, high + 1, high, low, left, left + 1, left + 2, low + 1)
    nodes = np.stack(around, axis=1)
    density = 100 * np.random.default_rng(seed).random(cells**2)
    values = density[:, None, None] * element
    rows, columns = np.repeat(nodes, 8, axis=1), np.tile(nodes, 8)
    return sparse.coo_array((values.ravel(), (rows.ravel(), columns.ravel()))).tocsr()


def residual(matrix: Any, x: Vector, b: Vector) -> float:
    return float(np.linalg.norm(b - matrix @ x) / np.linalg.norm(b))
