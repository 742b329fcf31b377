"""Our frozen classes answer as those of the standard library, made of the same body."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import pytest

import flowos._dataclasses as light
from flowos.model import Environment, Image, Launch


def _range(module: Any) -> Any:
    """Positional; with one field that is neither compared nor given."""

    @module.dataclass(frozen=True)
    class Range:
        low: int
        high: int = 9
        note: str = module.field(default="", compare=False, repr=False)
        length: int = module.field(default=0, init=False, compare=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", self.high - self.low)

    return Range


def _named(module: Any) -> Any:
    @module.dataclass(frozen=True, kw_only=True)
    class Named:
        first: int
        second: tuple[int, ...] = ()

    return Named


OURS, THEIRS = _range(light), _range(dataclasses)
KINDS = [(OURS, THEIRS), (_named(light), _named(dataclasses))]

CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((), {}),
    ((1,), {}),
    ((1, 2, "n"), {}),
    ((1, 2, "n", 4), {}),
    ((1,), {"low": 2}),
    ((), {"low": 1, "length": 3}),
    ((), {"low": 1, "other": 3}),
    ((), {"other": 1}),
    ((), {"first": 1}),
    ((), {"first": 1, "second": (2,)}),
]


def said(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("ours", "theirs"), KINDS)
@pytest.mark.parametrize(("given", "named"), CALLS)
def test_a_call_makes_the_same_or_fails_with_the_same_words(
    ours: type, theirs: type, given: tuple[object, ...], named: dict[str, object]
) -> None:
    assert said(lambda: ours(*given, **named)) == said(lambda: theirs(*given, **named))


def test_what_is_computed_from_the_fields_is_there() -> None:
    assert (OURS(2).length, OURS(2, note="x").note, OURS.high) == (7, "x", 9)


@pytest.mark.parametrize("kind", [OURS, THEIRS])
def test_two_are_equal_by_the_fields_that_are_compared(kind: type) -> None:
    assert kind(1, 2, "a") == kind(1, 2, "b")
    assert kind(1, 2) != kind(1, 3)
    assert hash(kind(1, 2, "a")) == hash(kind(1, 2, "b")) == hash((1, 2))


def test_one_of_another_class_is_another() -> None:
    assert OURS(1) != THEIRS(1)
    assert OURS(1).__eq__(1) is NotImplemented


@pytest.mark.parametrize("kind", [OURS, THEIRS])
def test_nothing_of_it_can_be_changed(kind: type) -> None:
    one = kind(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="low"):
        one.low = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="low"):
        del one.low
    assert one.low == 1


@pytest.mark.parametrize("replace", [light.replace, dataclasses.replace])
def test_a_changed_copy(replace: Any) -> None:
    assert repr(replace(OURS(1, note="n"), high=4)) == repr(THEIRS(1, 4))
    assert (replace(OURS(1, note="n"), high=4).note, replace(OURS(1), low=4).length) == ("n", 5)
    assert said(lambda: replace(OURS(1), other=4)).endswith("keyword argument 'other'")


@pytest.mark.parametrize(("ours", "theirs"), KINDS)
def test_the_standard_library_takes_it_for_one_of_its_own(ours: Any, theirs: Any) -> None:
    def told(kind: Any) -> list[tuple[object, ...]]:
        return [(f.name, f.default, f.init, f.compare) for f in dataclasses.fields(kind)]

    assert told(ours) == told(theirs)
    assert ours.__match_args__ == theirs.__match_args__
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    only = {dataclasses.fields(ours)[0].name: 1}
    assert dataclasses.is_dataclass(ours(**only))
    assert dataclasses.asdict(ours(**only)) == dataclasses.asdict(theirs(**only))


def test_a_copy_and_what_was_pickled_are_equal() -> None:
    image = Image(form="sif", digest="sha256:0", source=PurePath("/i"))
    launch = Launch(argv=("true",), env=Environment(image=image))
    assert pickle.loads(pickle.dumps(launch)) == copy.deepcopy(launch) == launch
    assert launch in {launch: 1}


def test_a_default_that_could_be_changed_is_refused() -> None:
    with pytest.raises(TypeError, match="unhashable type: 'list'"):

        @light.dataclass(frozen=True)
        class Shared:
            names: object = []
