"""Our frozen classes answer as those of the standard library, made of the same body."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, ClassVar

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


def _slotted(module: Any) -> Any:
    """Derives from another, with slots, factories, a default of its own and one of the class."""

    @module.dataclass(frozen=True, slots=True)
    class Base:
        low: int
        names: list[str] = module.field(default_factory=lambda: ["n"])
        count: ClassVar[int] = 0

    @module.dataclass(frozen=True, slots=True, kw_only=True)
    class Slotted(Base):
        first: int = 1
        seen: dict[str, int] = module.field(init=False, repr=False, default_factory=dict)
        kept: int = module.field(init=False, default=5, metadata={"unit": "s"})

        def twice(self) -> int:
            return 2 * self.low

    return Slotted


def _open(module: Any) -> Any:
    """May be changed, so that it has no hash."""

    @module.dataclass(slots=True)
    class Open:
        low: int
        high: int = 2

    return Open


def _plain(module: Any) -> Any:
    """Neither compared by its fields nor shown by them, but by what it says itself."""

    @module.dataclass(eq=False, repr=False)
    class Plain:
        low: int = 1

        def __repr__(self) -> str:
            return f"plain {self.low}"

    return Plain


def _many(made: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of ours so many are made that it has the methods of the standard library."""

    def make(module: Any) -> Any:
        kind = made(module)
        first = inspect.signature(kind).parameters
        for _ in range(light._MANY + 1):
            kind(**{n: 1 for n, each in first.items() if each.default is each.empty})
        return kind

    return make


MAKES = [_range, _named, _slotted, _open, _plain]
KINDS = [(make(light), make(dataclasses)) for make in [*MAKES, *map(_many, MAKES)]]
OURS, THEIRS = KINDS[0]

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
    ((1, ["a"]), {"first": 4}),
    ((1,), {"kept": 4}),
    ((1,), {"seen": {}}),
    ((1, 2), {"high": 3}),
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


@pytest.mark.parametrize(("ours", "theirs"), KINDS)
@pytest.mark.parametrize(("given", "named"), CALLS)
def test_instances_hold_the_same_in_the_same_order_however_they_were_called(
    ours: type, theirs: type, given: tuple[object, ...], named: dict[str, object]
) -> None:
    def held(kind: type) -> str:
        return said(lambda: list(vars(kind(*given, **named)).items()))

    assert held(ours) == held(theirs)


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
        found = dataclasses.fields(kind)
        return [
            (f.name, f.type, f.default, f.init, f.repr, f.compare, f.kw_only, f.metadata)
            for f in found
        ]

    assert told(ours) == told(theirs)
    assert ours.__match_args__ == theirs.__match_args__
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    only = {dataclasses.fields(ours)[0].name: 1}
    assert dataclasses.is_dataclass(ours(**only))
    assert dataclasses.asdict(ours(**only)) == dataclasses.asdict(theirs(**only))


@pytest.mark.parametrize("kind", [OURS, THEIRS])
def test_fields_are_listed_without_the_standard_library(kind: Any) -> None:
    def told(found: Any) -> list[tuple[object, ...]]:
        return [(f.name, f.type, f.metadata, f.default in (9, "", 0)) for f in found]

    assert told(light.fields(kind)) == told(dataclasses.fields(kind))
    assert light.fields(kind(1)) == light.fields(kind)
    assert kind is THEIRS or light.fields(kind)[0].default is light.MISSING


@pytest.mark.parametrize(("ours", "theirs"), KINDS)
def test_instances_hash_compare_and_show_alike(ours: Any, theirs: Any) -> None:
    def told(kind: Any) -> list[object]:
        only = {dataclasses.fields(kind)[0].name: 1}
        one, other = kind(**only), kind(**only)
        shown = said(lambda: hash(one) == hash(other))
        return [one == other, one == 1, shown, repr(one), hasattr(one, "__dict__")]

    assert told(ours) == told(theirs)


@pytest.mark.parametrize(("ours", "theirs"), KINDS)
def test_they_may_be_changed_where_those_may_be(ours: Any, theirs: Any) -> None:
    def changed(kind: Any) -> list[str]:
        name = dataclasses.fields(kind)[0].name
        one = kind(**{name: 1})

        def change() -> object:
            setattr(one, name, 2)
            return getattr(one, name)

        def delete() -> object:
            delattr(one, name)
            return hasattr(one, name)

        return [said(each) for each in (change, delete)]

    assert changed(ours) == changed(theirs)


def test_a_class_of_its_own_that_derives_from_one_has_its_fields() -> None:
    class Derived(KINDS[2][0]):  # type: ignore[misc]
        def __init__(self, low: int) -> None:
            super().__init__(low, first=low)
            self.own = 3

    made = Derived(4)
    assert (made.low, made.first, made.own, made.twice(), made.seen) == (4, 4, 3, 8, {})
    assert made == Derived(4)
    with pytest.raises(dataclasses.FrozenInstanceError, match="low"):
        made.low = 2


def _importable(make: Callable[[Any], Any], name: str) -> Any:
    """As `pickle` finds it."""
    kind = make(light)
    kind.__qualname__ = name
    return kind


Few, Many = _importable(_slotted, "Few"), _importable(_many(_slotted), "Many")


@pytest.mark.parametrize("kind", [Few, Many])
def test_one_with_slots_is_copied_and_pickled(kind: Any) -> None:
    one = kind(1, names=["a"])
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one
    assert light.replace(one, first=3).first == 3
    assert dataclasses.replace(one, first=3) == kind(1, names=["a"], first=3)


def test_one_of_the_standard_library_is_replaced_by_it() -> None:
    assert light.replace(THEIRS(1), low=2) == THEIRS(2)


def test_one_of_the_standard_library_may_derive_from_ours() -> None:
    @dataclasses.dataclass(frozen=True)
    class Theirs(OURS):  # type: ignore[misc,valid-type]
        more: int = 4

    assert [field.name for field in dataclasses.fields(Theirs)][-1] == "more"
    assert "more: int = 4" in str(inspect.signature(Theirs))
    assert (Theirs(1, more=5).more, Theirs(1).low) == (5, 1)


def test_a_copy_and_what_was_pickled_are_equal() -> None:
    image = Image(form="sif", digest="sha256:0", source=PurePath("/i"))
    launch = Launch(argv=("true",), env=Environment(image=image))
    assert pickle.loads(pickle.dumps(launch)) == copy.deepcopy(launch) == launch
    assert launch in {launch: 1}


def test_a_default_that_could_be_changed_is_refused() -> None:
    def shared(module: Any) -> None:
        @module.dataclass(frozen=True)
        class Shared:
            names: object = []

    assert said(lambda: shared(light)) == said(lambda: shared(dataclasses))
    assert "mutable default" in said(lambda: shared(light))
