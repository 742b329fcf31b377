"""Ports of bodies in another language: what they are called with, and what they cannot have."""

import pytest

import flowos as fo
from flowos.model import NATIVE_DTYPES, WiringError, dtype_of, native_ports

B = fo.array(fo.float32, ("n", 3))


def message(inputs: object, outputs: object) -> str:
    with pytest.raises(WiringError) as caught:
        native_ports("cxx 'f'", inputs, outputs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lengths_are_the_extents_that_are_no_input_themselves() -> None:
    outputs = {"a": fo.array(fo.int64, ("n", "k", 2)), "s": fo.float64, "flag": fo.bool_}
    ports = native_ports("f", {"b": B, "k": fo.int64, "c": fo.array(bool, ("m",))}, outputs)
    assert ports.lengths == ("n", "m")
    assert ports.shapes({"n": 4, "k": 5, "m": 6}) == [(4, 5, 2), (), ()]
    assert [dtype_of(port.type) for port in ports.outputs] == ["int64", "float64", "bool"]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_of_each_size_are_ports(bits: int) -> None:
    signed, unsigned = getattr(fo, f"int{bits}"), getattr(fo, f"uint{bits}")
    ports = native_ports("f", {"a": fo.array(signed, ("n",))}, {"b": unsigned})
    assert [dtype_of(port.type) for port in (*ports.inputs, *ports.outputs)] == [
        f"int{bits}",
        f"uint{bits}",
    ]


def test_a_language_may_have_more_types() -> None:
    more = (str, list[str])
    ports = native_ports(
        "f", {"a": fo.str_, "b": list[str]}, {"c": fo.str_}, NATIVE_DTYPES, others=more
    )
    assert [str(port) for port in ports.inputs] == ["a: str_", "b: list[str_]"]
    with pytest.raises(WiringError, match="str_ has no type there"):
        native_ports("f", {"a": fo.str_}, {})


def test_an_extent_of_outputs_alone_has_to_be_an_input() -> None:
    said = message({"b": B}, {"a": fo.array(fo.float32, ("m",))})
    assert said == (
        "cxx 'f', output 'a': no input says what extent 'm' is; add an input 'm' of fo.int64"
    )
    several = {"b": fo.array(fo.float32, ("n",)), "c": fo.array(fo.float32, ("m",))}
    said = message({"n": fo.int64}, several | {"d": fo.array(fo.float32, ("m",))})
    assert said.startswith("cxx 'f', output 'c': no input says what extent 'm' is; ")
    ports = native_ports("f", {"m": fo.int64}, {"a": fo.array(fo.float32, ("m",))})
    assert ports.lengths == ()
    assert ports.shapes(ports.sizes([7])) == [(7,)]


@pytest.mark.parametrize(
    ("port", "said"),
    [
        (fo.str_, "str_ has no type there; use a real number or an array of them"),
        (fo.complex64, "no type there; use an array, fo.array(fo.complex64, (1,))"),
        (fo.float16, "it cannot have float16, but bool, complex128"),
        (fo.array("float16", ("n",)), "it cannot have float16"),
        (fo.array(None, ("n",)), "leaves its dtype or an extent open"),
        (fo.array(fo.float32), "leaves its dtype or an extent open; say or name each"),
        (fo.array(fo.float32, (None, 3)), "leaves its dtype or an extent open"),
        ("int64", "expected a port type such as fo.int64"),
    ],
)
def test_what_a_body_cannot_have_is_refused(port: object, said: str) -> None:
    assert said in message({"x": port}, {"a": fo.int64})
    assert message({}, {"x": port}).startswith("cxx 'f', output 'x':")


@pytest.mark.parametrize("given", [None, [B], {1: B}])
def test_ports_are_a_dictionary(given: object) -> None:
    assert "inputs=" in message(given, {"a": fo.int64})
    assert "expected a dictionary of names and types" in message({}, given)


def test_an_empty_shape_is_one_number() -> None:
    ports = native_ports("f", {"x": fo.array(fo.float32, ())}, {"y": fo.array(fo.int8, (0,))})
    assert ports.shapes({}) == [(0,)]
