"""The matrices and right-hand sides of a run, as files that all contestants read."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import csr_file
import numpy as np
from building import NotHere, say
from numpy.typing import NDArray

from flowos.solver import g3like, read_matrix

G3_CIRCUIT = (1_585_478, 7_660_826)
"""Its rows and entries."""


@dataclass(frozen=True)
class Problem:
    """A matrix in its file, and a right-hand side for each round."""

    matrix_file: Path
    seed: int

    @cached_property
    def matrix(self) -> Any:
        return csr_file.mapped(self.matrix_file).scipy()

    @property
    def rows(self) -> int:
        return int(self.matrix.shape[0])

    def right_hand_side(self, number: int) -> Path:
        """The right-hand side of a round: uniform in [0, 1), from the seed, for all contestants."""
        path = self.matrix_file.with_suffix(".b")
        np.random.default_rng([self.seed, number]).random(self.rows).tofile(path)
        return path

    def empty_answer(self) -> Path:
        """The file for a contestant's x: full length, so that ranks can write their parts."""
        path = self.matrix_file.with_suffix(".x")
        with path.open("wb") as file:
            file.truncate(8 * self.rows)
        return path

    def forget(self) -> None:
        """Remove its files."""
        for kind in (".csr", ".b", ".x"):
            self.matrix_file.with_suffix(kind).unlink(missing_ok=True)

    def residual(self, b: NDArray[np.float64], x: NDArray[np.float64]) -> float:
        """||b - A x|| / ||b|| in double, by SciPy."""
        return float(np.linalg.norm(b - self.matrix @ x) / np.linalg.norm(b))


def problem(name: str, seed: int, folder: Path) -> Problem:
    """`poisson:XxYxZ`, `g3like`, or `file:` and the path of G3_circuit. Generated anew, as it
    depends on the seed. Raises NotHere if the file is missing."""
    say(f"making {name} ...")
    if name.startswith("file:"):
        given, name = Path(name.removeprefix("file:")), "G3_circuit"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name.replace(':', '-')}.csr"
    if grid := re.fullmatch(r"poisson:(\d+)x(\d+)x(\d+)", name):
        x, y, z = map(int, grid.groups())
        write_poisson(file, x, y, z)
    elif name == "g3like":
        csr_file.write(file, g3like(seed))
    elif name == "G3_circuit":
        csr_file.write(file, read_g3_circuit(given))
    else:
        raise ValueError(f"no matrix {name!r}")
    return Problem(file, seed)


def write_poisson(file: Path, x: int, y: int, z: int) -> None:
    """The 7-point Laplacian with Dirichlet boundary, x fastest; a plane at a time."""
    rows = x * y * z
    out = csr_file.create(file, rows, 7 * rows - 2 * (x * y + y * z + x * z))
    offsets = np.array([-x * y, -x, -1, 0, 1, x, x * y])
    stencil = np.where(offsets == 0, 6.0, -1.0)
    cell = np.arange(x * y)
    always = cell >= 0
    inside = np.stack(
        [always, cell >= x, cell % x > 0, always, cell % x < x - 1, cell < x * (y - 1), always],
        axis=1,
    )
    columns = cell[:, None] + offsets
    values = np.broadcast_to(stencil, inside.shape)
    out.starts[0] = done = 0
    for plane in range(z):
        here = inside.copy()
        here[:, 0] = plane > 0
        here[:, 6] = plane < z - 1
        first, count = plane * x * y, int(here.sum())
        out.starts[first + 1 : first + x * y + 1] = done + here.sum(axis=1).cumsum()
        out.columns[done : done + count] = columns[here] + first
        out.values[done : done + count] = values[here]
        done += count


def read_g3_circuit(path: Path) -> Any:
    """Read a Matrix Market file. Raises NotHere if it has not the size of G3_circuit."""
    matrix = read_matrix(path)
    size = matrix.shape[0], len(matrix.data)
    if size != G3_CIRCUIT:
        raise NotHere(f"{path} has {size} rows and entries; G3_circuit has {G3_CIRCUIT}")
    return matrix
