import math
import pickle
import subprocess
import sys
from pathlib import Path
from types import GenericAlias

import numpy as np
import pytest

import flowos.model as m
from flowos.model import PortType, WiringError, array, brief_repr
from flowos.model._hints import port_type

GOOD: list[tuple[PortType, object]] = [
    (m.int8, -128),
    (m.int64, 2**63 - 1),
    (m.uint8, 255),
    (m.uint64, 2**64 - 1),
    (m.int64, np.int64(3)),
    (m.uint16, np.uint16(3)),
    (m.float64, 0.1),
    (m.float64, 3),
    (m.float64, 2**53),
    (m.float64, math.nan),
    (m.float64, np.float64(0.1)),
    (m.float32, 0.5),
    (m.float32, math.inf),
    (m.float32, np.float32(0.1)),
    (m.float16, 65504),
    (m.bool_, True),
    (m.bool_, np.True_),
    (m.str_, ""),
    (m.str_, np.str_("a")),
    (m.bytes_, b""),
    (m.File, "relative/path"),
    (m.File, Path("/")),
    (m.any_, None),
    (m.any_, object),
    (array(), np.zeros((2, 3), dtype=">i2")),
    (array(m.float64), np.zeros(())),
    (array(None, (None,)), np.zeros(4, dtype=bool)),
    (array(m.float64, (None, 3)), np.zeros((7, 3))),
    (array("complex128", 2), np.zeros(2, dtype=complex)),
    (array(np.float32, ()), np.ones((), np.float32)),
    (array(m.float64, (0, None)), np.zeros((0, 2))),
]

BAD: list[tuple[PortType, object, str]] = [
    (m.int8, 128, "expected int8 (-128..127), given 128 (int)"),
    (m.uint8, -1, "expected uint8 (0..255), given -1 (int)"),
    (m.int64, 2**63, "expected int64 (-9223372036854775808..9223372036854775807), given 9"),
    (m.int64, True, "expected int64, given True (bool)"),
    (m.int64, 1.0, "expected int64, given 1.0 (float)"),
    (m.int64, np.int32(1), "expected int64, given np.int32(1) (int32)"),
    (m.int64, "1", "expected int64, given '1' (str)"),
    (m.float64, 2**53 + 1, "which cannot hold 9007199254740993 (int) exactly"),
    (m.float64, 10**400, "which cannot hold"),
    (m.float32, 0.1, "expected float32, which cannot hold 0.1 (float) exactly"),
    (m.float32, 1e300, "which cannot hold 1e+300 (float) exactly"),
    (m.float32, np.float64(0.5), "expected float32, given np.float64(0.5) (float64)"),
    (m.float64, False, "expected float64, given False (bool)"),
    (m.float64, None, "expected float64, given None (NoneType)"),
    (m.bool_, 1, "expected bool_, given 1 (int)"),
    (m.str_, b"a", "expected str_, given b'a' (bytes)"),
    (m.bytes_, bytearray(b"a"), "expected bytes_, given bytearray(b'a') (bytearray)"),
    (m.File, 3, "expected File (a path), given 3 (int)"),
    (m.File, "", "expected File (a path), given '' (str)"),
    (m.File, "a\0b", "expected File (a path)"),
    (array(), [1, 2], "expected array(any, any), given [1, 2] (list)"),
    (array(m.float64, (2,)), np.zeros(3), "given an array of float64, shape (3,)"),
    (array(m.float64, (2,)), np.zeros((2, 1)), "given an array of float64, shape (2, 1)"),
    (array(m.float64), np.zeros(2, np.float32), "expected array(float64, any), given an array"),
    (array(m.float64), np.zeros(2, ">f8"), "given an array of float64 in foreign byte order"),
]


@pytest.mark.parametrize(("port", "value"), GOOD, ids=str)
def test_a_value_of_the_type_is_taken(port: PortType, value: object) -> None:
    assert port.check(value) is None
    assert port.quick()(value)


@pytest.mark.parametrize(("port", "value", "words"), BAD, ids=str)
def test_another_value_is_refused_naming_what_was_expected_and_given(
    port: PortType, value: object, words: str
) -> None:
    assert words in (port.check(value) or "")
    assert not port.quick()(value)


def test_a_path_object_of_bytes_is_no_file() -> None:
    class BytesPath:
        def __fspath__(self) -> bytes:
            return b"/tmp"

    assert m.File.check(BytesPath()) is not None


def test_the_bare_type_knows_no_check() -> None:
    with pytest.raises(NotImplementedError):
        PortType("mine").check(1)


@pytest.mark.parametrize(
    ("accepting", "given", "fits"),
    [
        (m.int64, m.int64, True),
        (m.int64, m.int32, False),
        (m.any_, m.int64, True),
        (m.int64, m.any_, False),
        (array(), array(m.float64, (3,)), True),
        (array(m.float64, (None,)), array(m.float64, (3,)), True),
        (array(m.float64, (3,)), array(m.float64, (None,)), False),
        (array(m.float64, (3,)), array(m.float64), False),
        (array(m.float64), array(m.float32), False),
        (array(m.float64), array(), False),
        (array(), m.int64, False),
    ],
)
def test_a_port_accepts_only_what_always_fits(
    accepting: PortType, given: PortType, fits: bool
) -> None:
    assert accepting.accepts(given) is fits


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (m.float64, "float64"),
        (m.bool_, "bool"),
        ("uint8", "uint8"),
        (float, "float64"),
        (np.int16, "int16"),
        (np.dtype("float32"), "float32"),
        (None, None),
    ],
)
def test_an_array_names_its_dtype_in_many_ways(dtype: object, name: str | None) -> None:
    assert array(dtype).dtype == name


@pytest.mark.parametrize("dtype", ["text", object, 3, []])
def test_an_unknown_dtype_is_refused_where_it_is_written(dtype: object) -> None:
    with pytest.raises(TypeError, match="expected one of bool, complex128"):
        array(dtype)


@pytest.mark.parametrize("shape", [(-1,), (1.5,), (True,)])
def test_a_wrong_shape_is_refused_where_it_is_written(shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="expected non-negative ints, names, None for any"):
        array(None, shape)


def test_an_array_says_its_name_for_people() -> None:
    assert str(array(m.float64, (None, 3))) == "array(float64, (any, 3))"
    assert str(array()) == "array(any, any)"


def test_equal_types_are_equal_after_a_journey() -> None:
    for port in (m.int64, m.float32, m.File, array(m.float64, (None, 3))):
        assert pickle.loads(pickle.dumps(port)) == port


def test_a_huge_value_is_shown_in_few_words() -> None:
    assert len(brief_repr(b"x" * 10**8)) < 100
    assert len(brief_repr("x" * 10**7)) < 100
    assert len(brief_repr(list(range(10**6)))) < 100
    assert brief_repr(b"ab") == "b'ab' (bytes)"
    assert brief_repr(-(10**5000)) == "a number of 5,001 digits (int)"


@pytest.mark.parametrize("most", [20, 60])
def test_bytes_are_cut_to_what_may_be_shown_and_no_sooner(most: int) -> None:
    assert brief_repr(b"x" * most, most) == f"{b'x' * most!r} (bytes)"
    assert brief_repr(b"x" * (most + 1), most) == f"{b'x' * (most - 3)!r}... (bytes)"


def test_a_value_whose_repr_raises_is_shown_too() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Broken" in brief_repr(Broken())


def test_types_are_checked_where_numpy_is_not_loaded() -> None:
    program = (
        "from flowos.model import int64, float64, array; import sys;"
        "assert 'numpy' not in sys.modules;"
        "assert int64.check(3) is None and int64.check(3.0);"
        "assert float64.check(3.0) is None;"
        "assert array().check([1])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_value_whose_class_is_named_as_a_built_in_is_shown_without_a_text() -> None:
    namesake = type("array", (), {})
    assert brief_repr(namesake()) == "a value without a text (array)"


@pytest.mark.parametrize("hint", [GenericAlias(dict, (str,)), GenericAlias(list, (int, str))])
def test_a_hint_of_another_number_of_types_is_no_port_type(hint: object) -> None:
    with pytest.raises(WiringError, match=r"^here: expected a port type[^\n]*$"):
        port_type("here", hint)
