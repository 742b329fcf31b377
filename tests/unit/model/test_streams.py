"""Streams of a module: which ports one beat carries, and what cannot be."""

from typing import Any

import pytest

import flowos as fo
from flowos.model import STREAM_DTYPES, HdlStream, WiringError, native_ports, streams_of

WORDS = fo.array(fo.uint32, ("n", 2))
INPUTS: Any = {"a": WORDS, "b": fo.array(fo.float64, ("n", 2)), "n": fo.int64, "k": fo.int8}
OUTPUTS: Any = {"c": WORDS, "d": fo.uint16, "e": fo.int64}
INTO: Any = {"s": ("a", "b", "k")}
OUT: Any = {"m": "c", "p": ["d", "e"]}


def made(
    into: object = INTO, out: object = OUT
) -> tuple[tuple[HdlStream, ...], tuple[HdlStream, ...]]:
    return streams_of("hdl 'f'", native_ports("f", INPUTS, OUTPUTS, STREAM_DTYPES), into, out)


def test_a_stream_has_the_elements_of_its_ports_side_by_side() -> None:
    (take,), (give, scalars) = made()
    assert (take.lanes, take.widths, take.bits, take.shape) == ((0, 1, 3), (4, 8, 1), 104, ("n", 2))
    assert (give.lanes, give.beats({"n": 5})) == ((0,), 10)
    assert (scalars.widths, scalars.beats({})) == ((2, 8), 1)


@pytest.mark.parametrize(
    ("into", "out", "said"),
    [
        (None, OUT, 'into=None (NoneType); expected streams and the ports of each, such as {"s": '),
        ({}, OUT, "into={} (dict); expected streams"),
        ({"s__x": "a"}, OUT, "into: 's__x' (str) is no name of a stream, such as 's'"),
        ({3: "a"}, OUT, "into: 3 (int) is no name of a stream"),
        ({"s": ()}, OUT, "into: stream 's' carries no ports: () (tuple)"),
        ({"s": 3}, OUT, "into: stream 's' carries no ports: 3 (int)"),
        ({"s": ("a", "x")}, OUT, "into: stream 's' carries 'x'; there are a, b, n, k"),
        ({"s": ("a", "b"), "t": "a"}, OUT, "into: 'a' is carried twice"),
        ({"s": "a"}, OUT, "input 'b' is in no stream of into="),
        ({"s": ("a", "b")}, OUT, "input 'k' is in no stream of into="),
        (INTO, {"m": "c"}, "output 'd' is in no stream of out="),
        (INTO, {"m": ("c", "d"), "p": "e"}, "out: stream 'm' has a scalar in each beat"),
        (INTO, {"s": "c", "p": ("d", "e")}, "stream 's' is one of into and one of out"),
    ],
)
def test_streams_that_cannot_be_are_refused(into: object, out: object, said: str) -> None:
    with pytest.raises(WiringError) as caught:
        made(into, out)
    assert said in str(caught.value)
    assert str(caught.value).startswith("hdl 'f'")
    assert "\n" not in str(caught.value)


def test_arrays_of_one_stream_have_one_shape() -> None:
    ports = native_ports("f", {"a": WORDS, "b": fo.array(fo.uint32, ("n",))}, {"c": WORDS})
    with pytest.raises(WiringError, match=r"stream 's' carries a: .* and b: .*, of other shapes"):
        streams_of("f", ports, {"s": ("a", "b")}, {"m": "c"})
    with pytest.raises(WiringError, match=r"stream 's' carries b: .* and a: .*, of other shapes"):
        streams_of("f", ports, {"s": ("b", "a")}, {"m": "c"})
    with pytest.raises(WiringError, match="carries 'x'; there are no ports"):
        streams_of("f", native_ports("f", {}, {"c": fo.int8}), {"s": "x"}, {"m": "c"})
