from typing import Any

import numpy as np
import pytest

from flowos.model import Needs, WiringError, task


@pytest.mark.parametrize(("name", "value"), [("cores", 0), ("ranks", 0), ("gpus", -1)])
def test_a_need_below_its_least_is_refused_by_name(name: str, value: int) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"Needs\({name}={value}\): at least"):
        Needs(**given)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cores", 1.5, "a whole number"),
        ("cores", True, "a whole number"),
        ("cores", "2", "a whole number"),
        ("ranks", 2.0, "a whole number"),
        ("ranks", None, "a whole number"),
        ("memory_bytes", 1e9, "a whole number"),
        ("gpus", float("nan"), "a whole number"),
        ("devices", "/dev/x", "a tuple of texts"),
        ("devices", (1,), "a tuple of texts"),
        ("alone", 1, "True or False"),
    ],
)
def test_a_need_of_another_type_is_refused_by_name(name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=rf"Needs\({name}=.*\): expected {words}"):
        Needs(**{name: value})


def test_a_whole_number_of_numpy_is_one() -> None:
    needs = Needs(cores=np.int64(2), memory_bytes=np.uint8(7))  # type: ignore[arg-type]
    assert (needs, type(needs.cores)) == (Needs(cores=2, memory_bytes=7), int)


def test_who_asks_for_cores_has_them_bound_and_who_says_nothing_has_not() -> None:
    assert not Needs().binds
    assert not Needs(gpus=1).binds
    assert Needs(cores=1).binds
    assert Needs(cores=2, alone=True).binds


def test_what_are_no_needs_is_refused_when_the_task_is_made() -> None:
    wrong: Any = {"cores": 2}
    with pytest.raises(WiringError, match=r"task 'same': needs=\{'cores': 2\} \(dict\); use fo.N"):

        @task(needs=wrong)
        def same(x: int) -> int:
            return x


def test_a_task_needs_one_core_unless_it_says_more() -> None:
    assert Needs() == Needs(cores=1, ranks=1, gpus=0, memory_bytes=0)
