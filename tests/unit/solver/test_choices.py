"""What may be chosen, and what is refused in one line."""

from typing import Any

import numpy as np
import pytest

from flowos.model import FlowosError, SolveError
from flowos.solver import Solver, SolverKeywords, SolverOptions


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"precision": "fp16"}, "precision='fp16' (str); expected one of auto, fp32, fp64"),
        ({"coarse": True}, "coarse=True (bool); expected one of auto, none, aggregates"),
        ({"nullspace": "ones"}, "nullspace='ones' (str); expected None or constant"),
        ({"lower": 1}, "lower=1 (int); expected True or False"),
        ({"symmetrize": "yes"}, "symmetrize='yes' (str); expected True or False"),
        ({"block": 0}, "block=0 (int); expected a whole number, 1 to 4096"),
        ({"block": 8.0}, "block=8.0 (float); expected a whole number, 1 to 4096"),
        ({"colours": -1}, "colours=-1 (int); expected a whole number, 1 to 1024"),
        ({"threads": True}, "threads=True (bool); expected a whole number, 1 to 1024"),
        ({"threads": 2**40}, "expected a whole number, 1 to 1024"),
        ({"relax": 1.5}, "relax=1.5 (float); expected 0 to 1"),
        ({"relax": float("nan")}, "relax=nan (float); expected 0 to 1"),
        ({"relax": 10**400}, "expected 0 to 1"),
        ({"relax": "0.5"}, "relax='0.5' (str); expected 0 to 1"),
    ],
)
def test_a_choice_that_is_none_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SolveError) as refused:
        SolverOptions(**wrong)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_numbers_of_numpy_are_numbers() -> None:
    numbers: dict[str, Any] = {"block": np.int64(32), "relax": np.float32(0.5)}
    chosen = SolverOptions(**numbers, threads=int(np.uint8(2)))
    assert (chosen.block, chosen.relax, chosen.threads) == (32, 0.5, 2)


def test_a_solve_error_is_a_value_error_and_one_of_ours() -> None:
    assert issubclass(SolveError, ValueError)
    assert issubclass(SolveError, FlowosError)


def test_a_keyword_that_there_is_not_is_named_with_those_that_there_are() -> None:
    wrong: Any = {"relax": 0.5, "tol": 1e-3}
    with pytest.raises(SolveError) as refused:
        SolverOptions.of(wrong)
    assert str(refused.value).startswith("tol: no such keyword; there are lower, symmetrize, block")


def test_every_keyword_is_a_choice() -> None:
    assert SolverKeywords.__annotations__.keys() == SolverOptions.__dataclass_fields__.keys()
    assert all(f"{name}:" in (Solver.__doc__ or "") for name in SolverKeywords.__annotations__)
