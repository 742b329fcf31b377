"""Bodies in Julia by a real Julia: values both ways, what is refused, where errors are."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.engine.bodies import _language_channel, _language_process
from tests.integration.engines.languages import (
    MATRIX,
    VECTOR,
    X,
    failure,
    in_julia,
    needs_julia,
    opened,
    run,
    vector,
)

body = in_julia

WIRED: Any = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
PAIR: Any = {"inputs": {"x": VECTOR}, "outputs": {"a": fo.float64, "b": fo.float64}}


@pytest.fixture(scope="module")
def held_julia() -> Iterator[None]:
    """For all that runs in this process: it ends with the last slice."""
    with opened(body("x")):
        yield
    assert not _language_process._all


pytestmark = [needs_julia, pytest.mark.usefixtures("held_julia")]

MIXED = """
function mixed(x::Vector{Int16}, m::Matrix{Float64}, k::Int64, flags, name, names, z)
    @assert size(m) == (2, 3) && m[2, 1] == 10 && flags isa Vector{Bool}
    println("hello ", name)
    println(stderr, "on stderr")
    ccall(:puts, Cint, (Cstring,), "of C")
    (z = conj(z), turned = m', big = k + 1, flags = .!flags, x = 2 .* x,
     names = vcat(reverse(names), name))
end
"""


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_values_go_both_ways_wherever_tasks_run(
    workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, small, texts = vector(fo.bool_), vector(fo.int16), list[str]
    inputs = {"x": small, "m": MATRIX, "k": fo.int64, "flags": flags, "name": str}
    outputs = {"x": small, "turned": fo.array(fo.float64, ("m", 2)), "big": fo.int64}
    task = fo.julia(
        MIXED,
        "mixed",
        inputs={**inputs, "names": texts, "z": complex},
        outputs={**outputs, "flags": flags, "names": texts, "z": complex},
    )
    m = np.array([[0, 1, 2], [10.0, 11, 12]])
    x, flag = np.array([1, -2], "i2"), np.array([True, False])
    values = x, m, 2**62, flag, "wörld", ["a", "", "日\0"], 1 + 2j
    x2, turned, big, not_flag, names, z = run(task, *values, workers=workers)
    assert (x2.dtype, x2.tolist(), turned.tolist()) == (np.int16, [2, -4], m.T.tolist())
    assert (big, not_flag.tolist(), z) == (2**62 + 1, [False, True], 1 - 2j)
    assert names == ["日\0", "", "a", "wörld"]
    assert capsys.readouterr() == ("hello wörld\nof C\n", "on stderr\n")


LIMITS = [
    *[(f"{kind}int{bits}", 2**bits - 1) for kind in ("u",) for bits in (8, 16, 32, 64)],
    *[(f"int{bits}", -(2 ** (bits - 1))) for bits in (8, 16, 32, 64)],
    ("float16", 65504.0),
    ("float32", float(np.float32(1e38))),
    ("float64", 1e300),
    ("bool", True),
    ("complex64", complex(np.complex64(0.5 - 1e30j))),
    ("complex128", 1e300 - 2j),
]


@pytest.mark.parametrize(("dtype", "value"), LIMITS, ids=[name for name, _ in LIMITS])
def test_each_type_keeps_its_values(dtype: str, value: Any) -> None:
    """A scalar, and an array of them."""
    type_ = getattr(fo, dtype.replace("bool", "bool_"))
    array = fo.array(type_, ("n", 2))
    code = "f(a, v) = eltype(v) == typeof(a) ? (a, v) : error(typeof(a))\n"
    ports = {"a": type_, "v": array}
    task = fo.julia(code, "f", inputs=ports, outputs={"b": type_, "w": array})
    given = np.array([[value, 0], [1, value], [0, 0]], dtype)
    b, w = run(task, value, given)
    assert (b, type(b)) == (value, type(value))
    assert (w.dtype, w.tolist()) == (given.dtype, given.tolist())
    assert run(task, value, given[:0])[1].shape == (0, 2)


def test_large_arrays_cross_in_memory_and_stay_as_they_are() -> None:
    m = np.arange(80_000.0).reshape(200, 400)
    task = fo.julia(
        """
kept = Any[]
function f(m, v)
    push!(kept, m)
    (m[3, :] .* 2, 2 .* first(kept), reverse(v))
end
""",
        "f",
        inputs={"m": MATRIX, "v": list[str]},
        outputs={"row": fo.array(fo.float64, ("m",)), "all": MATRIX, "v": list[str]},
    )
    texts = ["é" * 9000, "", "b"] * 5
    with opened(task) as held:
        for i, given in enumerate((m, np.asfortranarray(m + 1), np.repeat(m, 2, axis=0)[::2])):
            row, whole, v = held.run(given, texts)
            assert row.tolist() == (2 * m[2] + 2 * (i == 1)).tolist()
            assert (whole.tolist(), v) == ((2 * m).tolist(), texts[::-1])


def test_a_chain_of_tasks_and_floats_that_are_no_number() -> None:
    x = fo.flow_input("x", VECTOR)
    twice = body("2 .* x")
    with fo.slice(fo.flow_output(twice(twice(x))), workers="inline") as held:
        found: Any = held.run(np.array([np.nan, -np.inf, 1.0]))[0]
        assert np.array_equal(found, [np.nan, -np.inf, 4.0], equal_nan=True)


GIVEN = [
    ("3.0 .* x", fo.int64, [1], [3]),
    ("view(x, :)", fo.float64, [1], [1.0]),
    ("1:3", fo.float64, [0, 0, 0], [1.0, 2.0, 3.0]),
    ("x .> 0", fo.bool_, [True, False], [True, False]),
    ("Any[x[1], 2.5]", fo.float64, [1, 2], [1.0, 2.5]),
    ("[0.1, NaN, Inf]", fo.float32, [0, 0, 0], np.array([0.1, np.nan, np.inf], "f4").tolist()),
    ("[1]", fo.complex64, [0], [1 + 0j]),
]


@pytest.mark.parametrize(("text", "dtype", "values", "gives"), GIVEN, ids=lambda v: str(v)[:20])
def test_an_output_may_be_of_another_type(text: str, dtype: Any, values: Any, gives: Any) -> None:
    given = np.array(values, dtype.name.rstrip("_"))
    (y,) = run(body(text, vector(dtype), vector(dtype)), given)
    assert np.array_equal(y, np.array(gives), equal_nan=True)
    assert y.dtype == given.dtype


REFUSED = [
    ("x ./ 2", fo.int64, [1], "output 'y': it has 0.5, which is no Int64"),
    ("x .* 2.0^62", fo.int64, [2], "output 'y': it has 9.223372036854776e18, which is no Int64"),
    ("[2.0f0^31]", fo.int32, [1], "output 'y': it has 2.1474836e9, which is no Int32"),
    ("[2.0^64]", fo.uint64, [1], "output 'y': it has 1.8446744073709552e19, which is no UInt64"),
    ("[2049]", fo.float16, [1], "output 'y': it has 2049, which is no Float16"),
    ("[NaN]", fo.int64, [3], "output 'y': it has NaN, which is no Int64"),
    ("x .+ 200", fo.int8, [1], "output 'y': it has 201, which is no Int8"),
    ("x .- 2", fo.uint8, [1], "which is no UInt8"),
    ("[2^53 + 1]", fo.float64, [1], "output 'y': it has 9007199254740993, which is no Float64"),
    ("[Int32(16777217)]", fo.float32, [1], "output 'y': it has 16777217, which is no Float32"),
    ("x .* 1e300", fo.float32, [1], "output 'y': it has 1.0e300, which is no Float32"),
    ("[true]", fo.int64, [1], "output 'y': expected Int64, given Bool"),
    ("[1]", fo.bool_, [True], "output 'y': expected Bool, given Int64"),
    ("[1 + 2im]", fo.float64, [1], "output 'y': expected Float64, given Complex{Int64}"),
    ("[missing]", fo.float64, [1], "output 'y': expected Float64, given Missing"),
    ("[1//3]", fo.float64, [1], "output 'y': expected Float64, given Rational{Int64}"),
    ("vcat(x, x)", fo.float64, [1], "output 'y': expected 1 elements, given 2"),
    ("reshape(x, 1, 1)", fo.float64, [1], "output 'y': expected 1 elements, given 1 x 1"),
    ("x[1]", fo.float64, [1], "output 'y': expected an array of Float64, given Float64"),
    ("nothing", fo.float64, [1], "output 'y': expected an array of Float64, given Nothing"),
]


@pytest.mark.parametrize(("text", "dtype", "values", "said"), REFUSED, ids=lambda v: str(v)[:20])
def test_no_value_becomes_another_one(text: str, dtype: Any, values: Any, said: str) -> None:
    given = np.array(values, dtype.name.rstrip("_"))
    found = failure(body(text, vector(dtype), vector(dtype)), given)
    assert found.startswith("task 'f', output 'y': ")
    assert said in found


def test_what_is_no_text_and_extents_that_disagree() -> None:
    assert "output 'y': it has bytes that are no text" in failure(body('"\\xff"', str, str), "a")
    assert "output 'y': expected String, given Missing" in failure(body("missing", str, str), "a")
    assert "expected String, given Int64" in failure(body("[x, 1]", str, list[str]), "a")
    assert "expected a vector of String, given String" in failure(body("x", str, list[str]), "a")
    assert "input 'x': 'utf-8' codec can't encode" in failure(body("x", str, str), "\ud800")
    assert run(body("split(x, ',')", str, list[str]), "a,b,c") == [["a", "b", "c"]]
    two = fo.julia("f(x, z) = x\n", "f", inputs={"x": VECTOR, "z": VECTOR}, outputs={"y": VECTOR})
    assert failure(two, X, X[:2]) == "task 'f', input 'z': extent 'n' is 2, and 3 in input 'x'"


def test_several_outputs_are_a_tuple_in_order_or_by_name() -> None:
    for text in ("(2, 1.0)", "(b = 1.0, a = 2)", "[2, 1]"):
        assert run(fo.julia(f"f(x) = {text}\n", "f", **PAIR), X) == [2.0, 1.0]
    for text, said in (
        ("(b = 1, c = 2)", "expected a, b, given b, c"),
        ("1.0", "expected a tuple of 2 outputs, given Float64"),
        ("(1, 2, 3)", "expected a tuple of 2 outputs, given Tuple{Int64,Int64,Int64} of length 3"),
    ):
        found = failure(fo.julia(f"f(x) = {text}\n", "f", **PAIR), X)
        assert said.replace(" ", "") in found.replace(" ", "")  # types are written in two ways


def test_errors_say_where_they_are_in_the_file(tmp_path: Path) -> None:
    file, other = tmp_path / "fit.jl", tmp_path / "check.jl"
    other.write_text('function check(z)\n    if z > 1\n        error("bad ", z)\n    end\nend\n')
    file.write_text(
        'include("check.jl")\n\n'
        'function fit!(x)\n    y = x .+ 1\n    foreach(check, x)\n    y .+ "a"\nend\n'
    )
    task = fo.julia(file, "fit!", **WIRED)
    assert f"raised BodyError: {other}:3: check: bad 2.0; given x" in failure(task, X)
    assert f"{file}:6: fit!: MethodError: no method matching +(" in failure(task, 0 * X)
    assert "Closest candidates" not in failure(task, 0 * X)
    other.write_text("\n\nfunction check(z)\n")
    assert f"raised CompileFailed: {other}:" in failure(fo.julia(file, "fit!", **WIRED), X)
    waited = body("fetch(Threads.@spawn sqrt(-1.0))")
    assert "DomainError with -1.0" in failure(waited, X)
    nameless = "f(x) = map(v -> v > 1 ? error(v) : v, x)"
    said = "source.jl:1: a function without a name: 2.0"
    assert said in failure(fo.julia(nameless, "f", **WIRED), X)
    with_keyword = "g(x; by) = error(by)\nf(x) = g(x; by = 2)"
    assert "source.jl:1: g: 2; given" in failure(fo.julia(with_keyword, "f", **WIRED), X)
    mute = "struct E <: Exception end\nBase.showerror(io::IO, ::E) = error()\nf(x) = throw(E())\n"
    assert "source.jl:3: f: " in failure(fo.julia(mute, "f", **WIRED), X)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("function f(x)\n  x +\n", "source.jl:"),
        ("\nusing NotThere\nf(x) = 1", "source.jl:2: ArgumentError: Package NotThere not found"),
        ('\n\nerror("at the top")', "source.jl:3: at the top"),
        ("g(x) = {\n", "source.jl"),
        ("g(x) = 1\n", "source.jl has no function f"),
        ("f(x, y) = 1\n", "f has no method for (::"),
        ("f(x::Vector{Int}) = 1\n", "f has no method for (::"),
        ("f = 1\n", "f has no method for (::"),
    ],
)
def test_what_cannot_be_loaded_is_said_with_its_place(code: str, said: str) -> None:
    assert f"raised CompileFailed: {said}" in failure(fo.julia(code, "f", **WIRED), X)


def test_warnings_are_printed_and_a_redirection_ends_with_its_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failure(body('redirect_stdout(open("/dev/null", "w")); println("lost"); error("so")'), X)
    run(body('redirect_stdout(open("/dev/null", "w")); println("lost"); x'), X)
    run(body('@warn "careful"; print("seen"); x'), X)
    printed = capsys.readouterr()
    assert printed.out == "seen"
    assert "Warning: careful" in printed.err


def test_a_long_memory_file_is_given_back_and_grows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_language_channel, "KEPT_BYTES", 100_000)
    x = np.arange(20_000.0)
    with opened(body('x[1] < 0 ? error("so") : x .+ 1')) as held:
        for _ in range(2):
            assert held.run(x)[0].tolist() == (x + 1).tolist()
            with pytest.raises(fo.TaskFailed):
                held.run(x - 1)
            assert os.fstat(_language_process._idle[-1].channel._memory).st_size == 0
        assert held.run(x[:7000])[0].tolist() == (x[:7000] + 1).tolist()


def test_a_result_may_be_longer_than_the_inputs() -> None:
    task = fo.julia(
        "f(n) = collect(1:n)\n",
        "f",
        inputs={"n": fo.int64},
        outputs={"y": fo.array(fo.int64, ("n",))},
    )
    with opened(task) as held:
        for n in (3, 30_000, 0, 300_000):
            assert held.run(n)[0].tolist() == list(range(1, n + 1))


def test_texts_cross_in_any_locale() -> None:
    code = """
from tests.integration.engines.languages import in_julia as body, run
assert run(body('x * string(length(x)) * "\u00e9"', str, str), "w\u00f6") == ["w\u00f62\u00e9"]
"""
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)


def test_code_may_be_one_line_and_have_lines_of_windows() -> None:
    for code in ("f(x) = x .+ 1", "function f(x)\r\n  x .+ 1\r\nend\r\n"):
        assert run(fo.julia(code, "f", **WIRED), X)[0].tolist() == [1, 2, 3]


def test_threads_have_a_process_each_and_it_has_the_cores_of_its_task() -> None:
    text = "ccall(:usleep, Cint, (Cuint,), 100_000); getpid()"
    slow = body(text, VECTOR, fo.int64)
    x = fo.flow_input("x", VECTOR)
    with fo.slice(fo.flow_output(slow(x), slow(x)), workers="thread", cores=2) as held:
        for _ in range(3):
            found = held.run(X)
        assert 1 <= len(set(found)) <= 2
    status = 'first(l for l in eachline("/proc/self/status") if occursin("Cpus_allowed_list", l))'
    (said,) = run(body(status, VECTOR, str, needs=fo.Needs(cores=1)), X, workers="process")
    assert said.split()[1].isdigit()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one core nothing moves")
def test_all_its_threads_move_to_the_cores_of_its_caller() -> None:
    text = """
    [split(line)[2] for thread in readdir("/proc/self/task")
        for line in eachline("/proc/self/task/$thread/status")
        if startswith(line, "Cpus_allowed_list")]
    """
    before = os.sched_getaffinity(0)
    with opened(body(text, VECTOR, list[str])) as held:
        assert len(held.run(X)[0]) > 1
        try:
            os.sched_setaffinity(0, {max(before)})
            assert set(held.run(X)[0]) == {str(max(before))}
        finally:
            os.sched_setaffinity(0, before)


def test_either_takes_a_body_in_julia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ports = {"iport_nametypes": ("x", VECTOR), "oport_nametypes": ("y", VECTOR)}
    in_python = fo.task({"task_name": "f", **ports, "fun": lambda x: x + 1})
    flow = fo.flow_output(fo.either(in_python, body("x .+ 1"))(fo.flow_input("x", VECTOR)))
    for engine in ("julia", "python"):
        with fo.slice(flow, engines=(engine,), workers="inline") as held:
            found: Any = held.run(X)[0]
            assert found.tolist() == [1, 2, 3]
            assert held.plan(X).tasks[0].engine == engine


def test_r_and_julia_serve_one_flow() -> None:
    in_r = fo.r("g <- function(x) x * 2", "g", **WIRED)
    flow = fo.flow_output(in_r(body("x .+ 1")(fo.flow_input("x", VECTOR))))
    with fo.slice(flow, workers="inline") as held:
        for _ in range(3):
            found: Any = held.run(X)[0]
            assert found.tolist() == [2, 4, 6]
        assert [each.program.language for each in _language_process._idle[-2:]] == ["Julia", "R"]


def test_what_it_cannot_be_is_said_where_it_is_defined() -> None:
    for source, entry, said in (
        ("f(x) = 1\n", "f(x)", "entry='f(x)' (str); expected the name of a function"),
        ("/no/such.jl", "f", "cannot read /no/such.jl (No such file or directory)"),
    ):
        with pytest.raises(fo.WiringError) as caught:
            fo.julia(source, entry, **WIRED)
        assert said in str(caught.value)
    with pytest.raises(fo.WiringError, match="bytes_ has no type there"):
        body("x", bytes)
    assert pickle.loads(pickle.dumps(body("x").body.fun)).entry == "f"


def test_kept_results_depend_on_what_the_source_includes(tmp_path: Path) -> None:
    found = []
    for factor in (2, 3):
        (tmp_path / "w.jl").write_text(f"w = {factor}\n")
        (tmp_path / "f.jl").write_text('include("w.jl")\nf(x) = w .* x\n')
        task = fo.julia(tmp_path / "f.jl", "f", **WIRED)
        found.append(task.body.fun.code.headers)  # type: ignore[union-attr]
        assert run(task, X)[0].tolist() == (factor * X).tolist()
    assert found[0] != found[1]
