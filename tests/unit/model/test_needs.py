from typing import Any

import pytest

from flowos.model import Needs


@pytest.mark.parametrize(("name", "value"), [("cores", 0), ("ranks", 0), ("gpus", -1)])
def test_a_need_below_its_least_is_refused_by_name(name: str, value: int) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"Needs\({name}={value}\): at least"):
        Needs(**given)


def test_a_task_needs_one_core_unless_it_says_more() -> None:
    assert Needs() == Needs(cores=1, ranks=1, gpus=0, memory_bytes=0)
