"""Rarer forms of our classes of data answer as those of the standard library, too."""

import copy
import dataclasses
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

import flowos._dataclasses as light


def _range(module: Any) -> Any:
    @module.dataclass(frozen=True)
    class Range:
        low: float
        high: float = 9
        length: float = module.field(init=False, default=0, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", self.high - self.low)

    return Range


def said(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def _with_own_init(module: Any) -> list[str]:
    """Of a dataclass and of a class that is none; the base's is called."""

    @module.dataclass(frozen=True)
    class Base:
        low: int
        high: int = 2

    @module.dataclass(frozen=True, eq=False)
    class Twice(Base):
        more: int = 3

        def __init__(self, low: int) -> None:
            super().__init__(low)  # type: ignore[call-arg]
            object.__setattr__(self, "more", 2 * low)

    class Plain(Base):
        def __init__(self, *, start: int) -> None:
            super().__init__(start)  # type: ignore[call-arg]

        def __post_init__(self) -> None:
            raise ValueError("a dataclass calls its own")

    more = Twice(4)
    object.__setattr__(more, "more", 5)
    signs = [str(inspect.signature(kind)) for kind in (Base, Twice, Plain)]
    return [repr(Twice(4)), repr(Plain(start=1)), *signs, repr(more == Twice(4))]


def _called(module: Any) -> list[str]:
    @module.dataclass(frozen=True)
    class Called:
        low: int

        def __call__(self, high: int) -> int:
            return self.low + high

    kind: Any = Called
    return [str(inspect.signature(each)) for each in (kind, kind(1))]


def _with_own_methods(module: Any) -> list[str]:
    @module.dataclass(frozen=True)
    class Own:
        low: int
        __match_args__ = ("high",)

        def __eq__(self, other: object) -> bool:
            return True

    kind: Any = Own
    return [repr(hash(kind(1))), repr(kind(1) == 2), repr(kind.__match_args__)]


def _around(module: Any) -> list[str]:
    @module.dataclass()
    class Around:
        inner: object = None

    one = Around()
    one.inner = one
    return [repr(one)]


def _overridden(module: Any) -> list[str]:
    """Annotated anew: the default of a base stays, a slot of a base is none."""

    @module.dataclass(frozen=True)
    class Base:
        low: int = 4

    @module.dataclass(frozen=True)
    class Again(Base):
        low: Any

    @module.dataclass(slots=True)
    class Slotted:
        low: int
        high: int = 1

    @module.dataclass(slots=True)
    class Without(Slotted):
        low: Any
        high: int

    kind: Any = Without
    return [repr(Again()), str(inspect.signature(Without)), said(lambda: kind(1.0))]


def _refused(module: Any) -> list[str]:
    """A wrong call has no effect; one that fails later has each effect once."""
    done: list[str] = []

    def make() -> list[int]:
        done.append("made")
        return []

    @module.dataclass(frozen=True)
    class Counted:
        low: int
        high: list[int] = module.field(default_factory=make)

        def __post_init__(self) -> None:
            done.append("ended")
            if self.low < 0:
                raise ValueError("low")

    kind: Any = Counted
    calls: list[Any] = [((), {}), ((1, [], 3), {}), ((1,), {"low": 2}), ((1,), {"self": 2})]
    calls.append(((-1,), {}))
    said_of = [said(lambda each=each: kind(*each[0], **each[1])) for each in calls]  # type: ignore[misc]
    default = inspect.signature(Counted).parameters["high"].default  # hypothesis gives it
    return [*said_of, *done, repr(kind(1, default))]


def _replaced(module: Any) -> list[str]:
    kind = _range(module)
    return [
        said(lambda: module.replace(kind(1), length=4)),
        said(lambda: module.replace(kind(1), other=4)),
        said(lambda: module.replace(kind, low=4)),
        said(lambda: module.replace(1, low=4)),
    ]


def _partly_set(module: Any) -> list[str]:
    @module.dataclass(slots=True)
    class Partly:
        low: int
        high: int = module.field(init=False)

    class Derived(Partly):
        own = 0

    kind: Any = Partly
    derived: Any = Derived
    one = derived(1)
    one.own = 2
    return [repr(copy.copy(kind(3)).low), repr(copy.copy(one).own)]


ASKED = [
    *(_with_own_init, _called, _with_own_methods, _around),
    *(_overridden, _refused, _replaced, _partly_set),
]


@pytest.mark.parametrize("many", [light._MANY, 1])
@pytest.mark.parametrize("asked", ASKED)
def test_ours_answer_as_theirs(
    asked: Callable[[Any], list[str]], many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(light, "_MANY", many)
    assert asked(light) == asked(dataclasses)


def test_equality_is_the_same_of_few_and_of_many() -> None:
    kind, unknown = _range(light), float("nan")
    few = kind(unknown) == kind(unknown)
    for each in range(light._MANY):
        kind(each)
    assert few
    assert kind(unknown) == kind(unknown)


def test_threads_make_the_first_ones_together() -> None:
    kind = _range(light)
    start = threading.Barrier(4)
    lengths: list[int] = []

    def make() -> None:
        start.wait()
        lengths.extend(
            [kind(each, high=2 * each).length - each for each in range(light._MANY // 2)]
        )

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == 2 * light._MANY * [0]
    assert kind.__init__.__name__ == "__init__"


@pytest.mark.parametrize("option", ["hash", "kw_only"])
def test_an_option_that_ours_lacks_is_refused(option: str) -> None:
    make: Any = light.field
    with pytest.raises(TypeError, match=option):
        make(**{option: True})
