"""Systems of equations by name: `poisson:128x128x128`, `g3like`, a file."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array
from numpy.typing import NDArray

from flowos._dataclasses import dataclass
from flowos.model import SolveError, UsageError
from flowos.solver import Csr, g3like, poisson, read_matrix, vector

_POISSON = re.compile(r"poisson:(\d{1,9})(?:x(\d{1,9}))?(?:x(\d{1,9}))?")
_SEEDED = re.compile(r"(g3like|random)(?::(\d{1,18}))?")
_MAX_ROWS = 2**31 - 1
_ROW_BYTES, _ENTRY_BYTES = 60, 12
"""Approximate minimum memory for a row and an entry: matrix, set-up and iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearProblem:
    """A matrix, read or generated on demand. size: rows and entries, if known before that."""

    name: str
    matrix: Callable[[], Csr]
    size: tuple[int, int] | None = None


def system_of(word: str) -> LinearProblem:
    """The problem of poisson:NXxNYxNZ, g3like[:SEED], or the path of a Matrix Market file.

    Raises UsageError for any other word.
    """
    if word.partition(":")[0] == "poisson":
        return _poisson_of(word)
    if found := _seeded(word, "g3like"):
        (seed,) = found
        return LinearProblem(name=word, matrix=lambda: g3like(seed))
    if word.partition(":")[0] == "g3like" and not Path(word).exists():
        raise UsageError(f"{word}: expected g3like, or g3like:SEED")
    return LinearProblem(name=Path(word).name, matrix=lambda: read_matrix(word))


def right_side(word: str, rows: int) -> NDArray[np.float64]:
    """ones, random[:SEED] (uniform in [-1, 1]), or the array of a .npy file.

    Raises SolveError if it is no vector of so many rows.
    """
    if found := _seeded(word, "random"):
        return np.random.default_rng(found[0]).uniform(-1.0, 1.0, rows)
    given = given_right_side(word)
    return np.ones(rows) if given is None else vector(word, given, rows)


def given_right_side(word: str) -> NDArray[Any] | None:
    """The array of a .npy file; None for one that is generated. Raises SolveError or UsageError if
    there is none."""
    if word == "ones" or _seeded(word, "random"):
        return None
    if not word.endswith(".npy"):
        raise UsageError(f"--rhs {word}: expected ones, random, random:SEED or a file: NAME.npy")
    return _array_of(Path(word))


def _array_of(file: Path) -> NDArray[Any]:
    try:
        with file.open("rb") as opened:
            return read_array(opened, allow_pickle=False)
    except OSError as error:
        raise SolveError(f"{file}: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError):
        raise SolveError(
            f"{file}: no NumPy file of numbers, or cut off; numpy.save(NAME, b) writes one"
        ) from None


_NUMBERED = re.compile(r"\b(row |column )(\d+)|\((\d+), (\d+)\)")
_OPTIONS = {
    "`lower`": "--lower",
    "`symmetrize`": "--symmetrize",
    "lower: ": "--lower: ",
    'coarse="none"': "--coarse none",
    "leave nullspace out": "leave --nullspace out",
    "take the transpose, A.T": "swap the row and the column of each entry",
}
"""The solver's words -> those of the command line."""


@contextmanager
def in_the_commands_words(name: str) -> Iterator[None]:
    """A SolveError names the system, rows from 1 on as its file does, and options."""
    try:
        yield
    except SolveError as error:
        text = _NUMBERED.sub(_from_one, str(error))
        for keyword, option in _OPTIONS.items():
            text = text.replace(keyword, option)
        raise SolveError(f"{name}: {text}") from None


def _from_one(found: re.Match[str]) -> str:
    what, number, row, column = found.groups()
    return f"{what}{int(number) + 1}" if what else f"({int(row) + 1}, {int(column) + 1})"


def _seeded(word: str, name: str) -> tuple[int] | None:
    found = _SEEDED.fullmatch(word)
    return (int(found[2] or 1),) if found and found[1] == name else None


def _poisson_of(word: str) -> LinearProblem:
    found = _POISSON.fullmatch(word)
    cells = tuple(int(n or 1) for n in found.groups()) if found else (0,)
    if 0 in cells:
        raise UsageError(f"{word}: expected cells along x, y and z, as poisson:128x128x128")
    rows = prod(cells)
    if rows > _MAX_ROWS:
        raise UsageError(f"{word}: {rows} rows; at most {_MAX_ROWS} can be")
    entries = rows + 2 * sum(rows - rows // n for n in cells)
    _check_memory(word, rows * _ROW_BYTES + entries * _ENTRY_BYTES)
    x, y, z = cells
    return LinearProblem(name=word, matrix=lambda: poisson(x, y, z), size=(rows, entries))


def _check_memory(word: str, needed: int) -> None:
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > has:
        raise SolveError(
            f"{word}: takes at least {needed / 1e9:.0f} GB; this machine has {has / 1e9:.0f} GB"
        )
