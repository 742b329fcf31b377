"""Digests of values: equal content has the same digest in every process, other content another."""

import collections
import dataclasses
import datetime
import enum
import functools
import math
import os
import re
import subprocess
import sys
import threading
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pytest

from flowos.engine import NoDigest
from flowos.engine.results._value_digest import Digester


def digest(value: object) -> str:
    digester = Digester()
    digester.add(value)
    return digester.digest().hex()


def class_with(annotation: object) -> type:
    return type("Own", (), {"__annotations__": {"a": annotation}, "__module__": __name__})


class Single:
    """A pickle has it by name."""

    def __init__(self, content: object) -> None:
        self.content = content

    def __reduce__(self) -> str:
        return "SINGLE"


SINGLE = Single(1)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Place(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str
    values: tuple[int, ...] = ()

    @functools.cached_property
    def total(self) -> int:
        return sum(self.values)

    @property
    def first(self) -> int:
        return self.values[0]

    @staticmethod
    def scale() -> int:
        return 3


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a: int) -> None:
        self.a = a


def a_function(x: int) -> int:
    return x + 1


def records(second: int) -> Any:
    return np.array([(1, 2.0), (second, 4.0)], dtype=[("a", "i4"), ("b", "f8")])


DIFFERENT: list[Any] = [
    None,
    True,
    1,
    -1,
    2**80,
    1.0,
    -0.0,
    0.0,
    math.nan,
    math.inf,
    1j,
    "1",
    b"1",
    bytearray(b"1"),
    "",
    b"",
    ...,
    (),
    [],
    {},
    set(),
    frozenset({1}),
    {1},
    (1, 2),
    [1, 2],
    [[1], 2],
    [1, [2]],
    ["ab", "c"],
    ["a", "bc"],
    {1: 2},
    {2: 1},
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    {1, 2},
    {1, 3},
    np.int64(1),
    np.int32(1),
    np.float64(1),
    np.zeros(3),
    np.zeros(4),
    np.zeros((3, 1)),
    np.zeros((1, 3)),
    np.zeros(3, dtype="f4"),
    np.zeros(3, dtype=">f8"),
    np.zeros(0),
    np.array(1.0),
    np.array(["ab"]),
    np.array(["2026-01-01"], dtype="M8[D]"),
    np.array([1, "a"], dtype=object),
    records(3),
    records(4),
    records(3)[0],
    records(3)[["b", "a"]][0],
    np.dtype("f8"),
    np.sum,
    Colour.RED,
    Colour.BLUE,
    Place(1),
    Place(1, 1),
    Setting("a"),
    Setting("a", (1,)),
    Setting,
    Slotted(1),
    Slotted(2),
    a_function,
    functools.partial(a_function, 1),
    functools.partial(a_function, 2),
    math.sqrt,
    math,
    len,
    datetime.date(2026, 1, 1),
    datetime.timedelta(seconds=1),
    PurePosixPath("a"),
    re.compile("a"),
    re.compile("a", re.IGNORECASE),
    range(3),
    slice(1, 2),
    collections.OrderedDict(a=1),
    collections.Counter("aab"),
    int,
    list[int],
    lambda x: x,
    lambda x: x + 1,
    lambda x: x + 2,
    [x for x in "ab"].append,
]


def test_different_values_have_different_digests() -> None:
    found: dict[str, object] = {}
    for value in DIFFERENT:
        assert found.setdefault(digest(value), value) is value, value


def test_equal_content_has_equal_digests_whatever_is_shared() -> None:
    once, other = ["x" * 3], ["x" * 3]
    assert digest([once, once]) == digest([once, other])
    number = np.int64(10)
    assert digest([number, number]) == digest([number, np.int64(10)])
    wide = np.arange(12.0).reshape(3, 4)
    assert digest(wide) == digest(wide.copy(order="F")) == digest(np.asfortranarray(wide))
    assert digest(wide[:, ::2]) == digest(wide[:, ::2].copy())
    assert digest(Setting("a", (1,))) == digest(Setting("a", (1,)))


def test_digests_are_the_same_in_other_processes() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_value_digests as t\n"
        "print(*map(t.digest, t.DIFFERENT))"
    )
    words = [sys.executable, "-c", program, os.path.dirname(__file__)]  # noqa: PTH120
    found = [
        subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) == len(DIFFERENT)


def test_pickling_an_object_does_not_change_the_digest_of_its_class() -> None:
    class Own:
        pass

    before = digest(Own)
    first = digest(Own())
    Own().__reduce_ex__(4)
    assert (digest(Own), digest(Own())) == (before, first)


def test_what_contains_itself_has_a_digest() -> None:
    first: list[Any] = [1]
    first.append(first)
    second: list[Any] = [1]
    second.append(second)
    assert digest(first) == digest(second) != digest([1, [1]])


def test_a_cached_property_that_was_computed_is_content() -> None:
    used, fresh = Setting("a", (1,)), Setting("a", (1,))
    assert used.total == used.first * 1 == Setting.scale() - 2
    assert digest(used) != digest(fresh)  # at worst the task runs again


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (threading.Lock(), "a lock has no stable digest"),
        ((x for x in "ab"), "a generator has no stable digest"),
        ([{"a": threading.Lock()}], "a lock has no stable digest"),
        (sys.stdout.buffer, "no stable digest"),
        (memoryview(b"a"), "a memoryview has no stable digest"),
    ],
)
def test_what_has_no_stable_digest_is_refused(value: object, named: str) -> None:
    with pytest.raises(NoDigest, match=named):
        digest(value)


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NoDigest, match="nested too deeply"):
        digest(deep)
    while deep:  # else its destructor is as deep
        deep = deep.pop()


def test_an_own_object_that_pickles_by_name_counts_by_its_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = digest(SINGLE)
    assert digest(SINGLE) == before
    monkeypatch.setattr(SINGLE, "content", 2)
    assert digest(SINGLE) != before
    with pytest.raises(NoDigest, match=r"has no 'SINGLE'"):
        digest(Single(1))


def test_a_ufunc_of_an_own_function_has_no_digest_and_others_have() -> None:
    with pytest.raises(NoDigest, match=r"a ufunc has no stable digest .* has no 'a_function"):
        digest(np.frompyfunc(a_function, 1, 1))
    assert digest(np.add) != digest(np.subtract)


def test_annotations_of_a_class_count_whatever_is_in_them() -> None:
    assert digest(class_with(int)) == digest(class_with(int)) != digest(class_with(float))
    assert digest(class_with(threading.Lock()))
