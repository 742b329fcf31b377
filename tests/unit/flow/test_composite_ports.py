# ruff: noqa: UP006, UP007, UP035, UP045, ARG001 - hints as they are in older code, too
"""Types of values that have parts: as type hints of ordinary functions name them."""

import math
import pickle
import subprocess
import sys
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    List,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypeVar,
    Union,
)

import numpy as np
import pytest
from numpy.typing import NDArray

import flowos.model as m
from flowos.model import WiringError, flow_input, flow_output, task
from flowos.model._hints import port_type


@dataclass(frozen=True)
class Point:
    x: float
    name: str = "origin"


@dataclass(frozen=True)
class Named(Point):
    tags: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Mesh:
    points: NDArray[np.float64]
    parent: "Mesh | None" = None
    note: Any = None
    odd: "Sequence[complex] | None" = None
    sampler: np.random.Generator | None = None


@dataclass
class Broken:
    value: "NotThere"  # type: ignore[name-defined]  # noqa: F821


class Pair(NamedTuple):
    key: str
    value: int


class Colour(Enum):
    RED = 1
    GREEN = 2


class Level(IntEnum):
    LOW = 1


Value = TypeVar("Value")


@dataclass
class Box(Generic[Value]):
    value: Value
    count: int = 1


class Numbers(list[int]):
    pass


UserId = NewType("UserId", int)

Deep = Optional[list[dict[str, Point]]]

NAMES: list[tuple[Any, str]] = [
    (list[int], "list[int64]"),
    (List[int], "list[int64]"),
    (list, "list"),
    (tuple, "tuple"),
    (dict, "dict"),
    (set, "set"),
    (dict[str, list[float]], "dict[str_, list[float64]]"),
    (Mapping[str, int], "dict[str_, int64]"),
    (MutableMapping[str, int], "dict[str_, int64]"),
    (Sequence[int], "Sequence[int64]"),
    (MutableSequence[int], "MutableSequence[int64]"),
    (set[int], "set[int64]"),
    (frozenset[str], "frozenset[str_]"),
    (tuple[int, str], "tuple[int64, str_]"),
    (tuple[int, ...], "tuple[int64, ...]"),
    (tuple[()], "tuple[()]"),
    (Optional[int], "int64 | None"),
    (Union[int, str, None], "int64 | str_ | None"),
    (int | None, "int64 | None"),
    (int | Any, "any_"),
    (None, "None"),
    (Literal["a", 2], "Literal['a', 2]"),
    (complex, "complex128"),
    (np.complex64, "complex64"),
    (np.complex128, "complex128"),
    (NDArray[np.float32], "array(float32, any)"),
    (np.ndarray[Any, Any], "array(any, any)"),
    (NDArray[np.str_], "array(any, any)"),
    (Point, "Point"),
    (Box[int], "Box"),
    (Pair, "Pair"),
    (Colour, "Colour"),
    (Deep, "list[dict[str_, Point]] | None"),
    (UserId, "int64"),
    (Annotated[int, "in metres"], "int64"),
    (list[m.int8], "list[int8]"),  # type: ignore[valid-type]
    (list[Path], "list[File]"),
]


@pytest.mark.parametrize(("hint", "name"), NAMES, ids=str)
def test_hints_of_ordinary_functions_are_port_types(hint: Any, name: str) -> None:
    assert str(port_type("here", hint)) == name


GOOD: list[tuple[Any, Any]] = [
    (list[int], []),
    (list[int], [1, 2**63 - 1]),
    (list[int], Numbers([1])),
    (list[float], [1, 2.5, math.nan, math.inf]),
    (list, [object(), {}]),
    (set[int], {1}),
    (frozenset[str], frozenset("ab")),
    (Sequence[int], (1, 2)),
    (Sequence[int], [1]),
    (tuple[int, ...], ()),
    (tuple[int, str], (1, "a")),
    (dict[str, int], {"a": 1}),
    (dict[str, int], defaultdict(int, a=1)),
    (dict[str, int], OrderedDict(a=1)),
    (dict[tuple[int, int], set[str]], {(1, 2): {"a"}}),
    (Optional[int], None),
    (Optional[int], 3),
    (int | str, "a"),
    (None, None),
    (Literal["a", 2, None], 2),
    (Literal["a", 2, None], None),
    (complex, 1j),
    (complex, 3),
    (complex, 2.5),
    (complex, complex(math.nan, math.inf)),
    (complex, np.complex128(1j)),
    (np.complex64, np.complex64(1j)),
    (np.complex64, 0.5 + 0.25j),
    (Point, Point(1.0)),
    (Point, Named(1.0, "n", ["t"])),
    (Mesh, Mesh(np.zeros(3), Mesh(np.zeros(0)))),
    (Mesh, Mesh(np.zeros(3), note=print, odd=[1j], sampler=np.random.default_rng(1))),
    (Broken, Broken(3)),
    (Box[int], Box("anything")),
    (Pair, Pair("a", 1)),
    (Colour, Colour.RED),
    (int, Level.LOW),
    (Level, Level.LOW),
    (Deep, [{"a": Point(1.0)}, {}]),
    (Deep, None),
    (NDArray[np.float32], np.zeros(2, np.float32)),
]


@pytest.mark.parametrize(("hint", "value"), GOOD)
def test_a_value_of_such_a_type_is_taken(hint: Any, value: Any) -> None:
    kind = port_type("here", hint)
    assert kind.check(value) is None
    assert kind.quick()(value)


def without_a_field() -> Point:
    point = Named(1.0)
    del point.__dict__["x"]
    return point


BAD: list[tuple[Any, Any, str]] = [
    (list[int], (1, 2), "expected list[int64], given (1, 2) (tuple)"),
    (list[int], "12", "expected list[int64], given '12' (str)"),
    (
        list[int],
        [1, "a", "b"],
        "expected list[int64]; at [1]: expected int64, given 'a' (str)",
    ),
    (list[int], [True], "at [0]: expected int64, given True (bool)"),
    (list[int], [0, 2**70], "at [1]: expected int64 (-9223372036854775808..92233720368547758"),
    (list[float], [10**400], "at [0]: expected float64, which cannot hold 1000"),
    (set[int], {1.5}, "expected set[int64]; at [0]: expected int64, given 1.5 (float)"),
    (Sequence[int], "ab", "expected Sequence[int64], given 'ab' (str)"),
    (tuple[int, str], (1, 2), "expected tuple[int64, str_]; at [1]: expected str_, given 2 (int)"),
    (tuple[int, str], (1,), "expected tuple[int64, str_], given (1,) (tuple)"),
    (tuple[int, str], [1, "a"], "given [1, 'a'] (list)"),
    (
        dict[str, int],
        {"a": "b"},
        "expected dict[str_, int64]; at ['a']: expected int64, given 'b' (str)",
    ),
    (dict[str, int], {1: 1}, "at .keys(): expected str_, given 1 (int)"),
    (dict[str, int], UserDict(a=1), "expected dict[str_, int64], given "),
    (Optional[int], "a", "expected int64 | None, given 'a' (str)"),
    (None, 0, "expected None, given 0 (int)"),
    (Literal["a", 2], "b", "expected Literal['a', 2], given 'b' (str)"),
    (Literal["a", 1], True, "expected Literal['a', 1], given True (bool)"),
    (Literal["a"], ["a"], "expected Literal['a'], given ['a'] (list)"),
    (Literal["a"], np.zeros(2), "expected Literal['a'], given an array"),
    (complex, "1j", "expected complex128, given '1j' (str)"),
    (complex, True, "expected complex128, given True (bool)"),
    (complex, 2**53 + 1, "expected complex128, given 9007199254740993 (int)"),
    (complex, np.complex64(1j), "expected complex128, given np.complex64(1j) (complex64)"),
    (complex, np.zeros((), complex), "expected complex128, given an array"),
    (np.complex64, 0.1j, "expected complex64, given 0.1j (complex)"),
    (Point, {"x": 1.0}, "expected Point, given {'x': 1.0} (dict)"),
    (Point, Point("a"), "expected Point; at .x: expected float64, given 'a' (str)"),  # type: ignore[arg-type]
    (Point, without_a_field(), "expected Point; at .x: the field is missing"),
    (Point, Point, "expected Point, given <class "),
    (Named, Point(1.0), "expected Named, given Point(x=1.0, name='origin') (Point)"),
    (Mesh, Mesh([1.0]), "at .points: expected array(float64, any), given [1.0] (list)"),  # type: ignore[arg-type]
    (Mesh, Mesh(np.zeros(2), Point(1.0)), "at .parent: expected Mesh | None, given Point"),  # type: ignore[arg-type]
    (Pair, ("a", 1), "expected Pair, given ('a', 1) (tuple)"),
    (Pair, Pair("a", "b"), "expected Pair; at .value: expected int64"),  # type: ignore[arg-type]
    (Colour, 1, "expected Colour, given 1 (int)"),
    (
        Deep,
        [{}, {"b": Point("x")}],  # type: ignore[arg-type]
        "expected list[dict[str_, Point]] | None; at [1]['b'].x: expected float64, given 'x' (str)",
    ),
    (
        list[int] | dict[str, int],
        [1.5],
        "expected list[int64] | dict[str_, int64]; at [0]: expected int64, given 1.5 (float)",
    ),
    (list[int] | list[str], [1.5], "expected list[int64] | list[str_], given [1.5] (list)"),
]


@pytest.mark.parametrize(("hint", "value", "words"), BAD)
def test_another_value_is_refused_naming_the_part_that_is_wrong(
    hint: Any, value: Any, words: str
) -> None:
    kind = port_type("here", hint)
    complaint = kind.check(value) or ""
    assert words in complaint
    assert "\n" not in complaint
    assert not kind.quick()(value)


FITS: list[tuple[Any, Any, bool]] = [
    (Optional[int], int, True),
    (int, Optional[int], False),
    (Optional[float], Optional[int], False),
    (int | str | None, str | None, True),
    (list[int], list[int], True),
    (list[int | None], list[int], True),
    (list[int], list[int | None], False),
    (list[int], tuple[int, ...], False),
    (Sequence[int], list[int], True),
    (Sequence[int], tuple[int, int], True),
    (list[int], tuple[int, int], False),
    (Sequence[int], tuple[int, str], False),
    (list, list[int], True),
    (list[int], set[int], False),
    (list[int], int, False),
    (tuple[int, str], tuple[int, str], True),
    (tuple[int, Any], tuple[int, str], True),
    (tuple[int, str], tuple[int], False),
    (tuple[int, str], tuple[str, str], False),
    (tuple[int, int], tuple[int, ...], False),
    (dict[str, Any], dict[str, int], True),
    (dict[str, int], dict[str, Any], False),
    (dict[str, int], dict[int, int], False),
    (dict[str, int], list[int], False),
    (Point, Named, True),
    (Named, Point, False),
    (Point, Pair, False),
    (Point, dict[str, int], False),
    (Literal["a", "b"], Literal["a"], True),
    (Literal["a"], Literal["a", "b"], False),
    (Literal["a"], str, False),
    (complex, complex, True),
    (complex, np.complex64, False),
    (Any, list[Point], True),
]


@pytest.mark.parametrize(("to", "given", "fits"), FITS, ids=str)
def test_such_ports_accept_what_always_fits(to: Any, given: Any, fits: bool) -> None:
    assert port_type("here", to).accepts(port_type("here", given)) is fits


def test_the_base_of_such_types_knows_no_check() -> None:
    with pytest.raises(NotImplementedError):
        m.Composite("mine").check(1)


def test_a_huge_list_is_checked_without_a_word_for_each_item() -> None:
    assert port_type("here", list[int]).quick()(list(range(10**6)))
    assert len(port_type("here", list[str]).check(["x" * 10**7, b"x" * 10**7]) or "") < 200


@pytest.mark.parametrize("hint", [hint for hint, _ in NAMES], ids=str)
def test_such_types_are_equal_after_a_journey_also_where_the_class_is_unknown(hint: Any) -> None:
    kind = port_type("here", hint)
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert b"test_composite" not in pickle.dumps(kind).replace(b"test_composite_ports:", b"")


def test_keyword_only_inputs_are_given_by_name() -> None:
    @task
    def scale(x: float, /, by: float, *, plus: float = 0.0, times: int) -> float:
        return x * by * times + plus

    a = flow_input("a", float)
    assert (
        str(scale) == "scale(x: float64, by: float64, plus: float64, times: int64) -> out: float64"
    )
    assert flow_output(scale(a, 2.0, times=3)).calls[0].arguments[2].value == 0.0  # type: ignore[union-attr]
    with pytest.raises(WiringError, match=r"input 'plus' is given by name only: plus=\.\.\."):
        scale(a, 2.0, 3.0, times=3)
    with pytest.raises(WiringError, match=r"takes 4 arguments .*; nothing given for times"):
        scale(a, 2.0)
    with pytest.raises(WiringError, match=r"takes 4 arguments .*, 5 given"):
        scale(a, 2.0, 3.0, 4, 5)


def test_defaults_and_constants_of_such_types_are_checked() -> None:
    @task
    def total(points: list[Point], weights: dict[str, float] | None = None) -> float:
        return sum(p.x for p in points)

    assert total.defaults == (("weights", None),)
    with pytest.raises(WiringError, match=r"input 'points': expected list\[Point\]; at \[0\]: "):
        total([3])
    with pytest.raises(WiringError, match="input 'weights': expected dict"):
        total([], 3)

    def wrong(points: list[int] = [1.5]) -> int:  # type: ignore[list-item]  # noqa: B006
        return 0

    with pytest.raises(WiringError, match=r"default of 'points': expected list\[int64\]; at \[0\]"):
        task(wrong)


def test_a_flow_of_such_ports_is_drawn_and_described() -> None:
    @task
    def find(points: Deep, *, near: Point | None = None) -> dict[str, list[Point]]:
        return {}

    flow = flow_output(find(flow_input("points", Deep)), name="search")
    assert str(flow) == (
        "flow search\n"
        "  input   points: list[dict[str_, Point]] | None\n"
        "  task    find(points, None) -> dict[str_, list[Point]]\n"
        "  output  find: dict[str_, list[Point]]"
    )
    assert "<title>points: list[dict[str_, Point]] | None</title>" in flow.svg()
    assert "find(points: list[dict[str_, Point]] | None, near: Point | None)" in flow.dot()
    assert pickle.loads(pickle.dumps(flow_input("points", Deep))).spec.type == port_type("", Deep)


def test_a_tuple_of_any_length_is_one_output_and_one_of_some_types_is_several() -> None:
    def many() -> tuple[int, ...]:
        return (1,)

    def two() -> tuple[list[int], str | None]:
        return [1], None

    assert [str(p.type) for p in task(many).outputs] == ["tuple[int64, ...]"]
    assert [str(p.type) for p in task(two).outputs] == ["list[int64]", "str_ | None"]


def test_types_of_numpy_are_read_where_it_is_loaded_only_by_the_hint() -> None:
    program = (
        "import sys; from typing import Optional; from flowos.model import flow_input;"
        "p = flow_input('x', Optional[list[complex]]);"
        "assert p.spec.type.check([1j]) is None and p.spec.type.check([object()]);"
        "assert 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
