"""Bodies in R by a real R: values both ways, what is refused, where errors are, what is left."""

import fcntl
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
    in_r,
    opened,
    run,
    vector,
)

body = in_r


@pytest.fixture(autouse=True, scope="module")
def one_process() -> Iterator[None]:
    """For all that runs in this process: it ends with the last slice."""
    with opened(body("x")):
        yield
    assert not _language_process._all


MIXED = """
mixed <- function(x, m, k, flag, name, names, z) {
  stopifnot(is.integer(x), dim(m) == c(2, 3), m[2, 1] == 10, is.logical(flag))
  cat("hello", name, "\\n")
  message("on stderr")
  list(z = Conj(z), turned = t(m), big = 2 * k, flag = !flag, names = c(rev(names), name),
       x = x * 2)
}
"""


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_values_go_both_ways_wherever_tasks_run(
    workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, small = vector(fo.bool_), vector(fo.int16)
    texts = list[str]
    inputs = {"x": small, "m": MATRIX, "k": fo.int64, "flag": flags, "name": str}
    outputs = {"x": small, "turned": fo.array(fo.float64, ("m", 2)), "big": fo.int64}
    task = fo.r(
        MIXED,
        "mixed",
        inputs={**inputs, "names": texts, "z": complex},
        outputs={**outputs, "flag": flags, "names": texts, "z": complex},
    )
    m = np.array([[0, 1, 2], [10.0, 11, 12]])
    x, flag = np.array([1, -2], "i2"), np.array([True, False])
    values = x, m, 2**40, flag, "wörld", ["a", "", "日"], 1 + 2j
    x2, turned, big, not_flag, names, z = run(task, *values, workers=workers)
    assert (x2.dtype, x2.tolist(), turned.tolist()) == (np.int16, [2, -4], m.T.tolist())
    assert (big, not_flag.tolist(), z) == (2**41, [False, True], 1 - 2j)
    assert names == ["日", "", "a", "wörld"]
    assert capsys.readouterr() == ("hello wörld \n", "on stderr\n")


def test_large_arrays_cross_in_memory() -> None:
    m = np.arange(80_000.0).reshape(200, 400)
    task = fo.r(
        "f <- function(m, v) { list(m[3, ] * 2, m * 2, rev(v)) }",
        "f",
        inputs={"m": MATRIX, "v": list[str]},
        outputs={"row": fo.array(fo.float64, ("m",)), "all": MATRIX, "v": list[str]},
    )
    texts = ["é" * 9000] * 5
    for given in (m, np.asfortranarray(m), np.repeat(m, 2, axis=0)[::2]):
        row, whole, v = run(task, given, texts)
        assert row.tolist() == (2 * m[2]).tolist()
        assert (whole.tolist(), v) == ((2 * m).tolist(), texts)


def test_doubles_keep_what_is_no_number() -> None:
    (y,) = run(body("c(NA, NaN, -Inf)"), X)
    assert np.isnan(y[:2]).all()
    assert y[2] == -np.inf
    told = body("if (is.na(x[1]) && !is.nan(x[1]) && is.nan(x[2])) x else NULL")
    assert np.isnan(run(told, y)[0][0])


REFUSED = [
    ("x", fo.int64, [2**53 + 1], "input 'x': it has 9007199254740993, and R's numbers are exact"),
    ("x", fo.uint64, [2**63], "input 'x': it has 9223372036854775808, and R's"),
    ("x", fo.int32, [-(2**31)], "input 'x': it has -2147483648, which is NA in R"),
    ("x * 2^30", fo.int32, [2], "output 'y': it has 2147483648.0, which is no int32"),
    ("x / 2", fo.int64, [1], "output 'y': it has 0.5, which is no int64"),
    ("x * 2^53", fo.int64, [3], "output 'y': it has 2.7021597764222976e+16, which is no int64"),
    ("c(NA_real_, x[-1])", fo.int64, [3], "output 'y': it has nan, which is no int64"),
    ("c(NA, x[-1])", fo.int32, [1], "output 'y': it has NA, which is no int32"),
    ("x + 200L", fo.int8, [1], "output 'y': it has 201, which is no int8"),
    ("x & NA", fo.bool_, [True], "output 'y': it has NA, which is no bool"),
    ("x * 1e300", fo.float32, [1], "output 'y': it has 1e+300, which is no float32"),
    ("c(x, x)", fo.float64, [1], "output 'y': expected 1 elements, given 2"),
    ("matrix(x)", fo.float64, [1], "output 'y': expected 1 elements, given 1 x 1"),
    ("'a'", fo.float64, [1], "output 'y': expected double, given character"),
    ("factor('a')", fo.int32, [1], "output 'y': expected integer without a class, given a factor"),
]


@pytest.mark.parametrize(("text", "dtype", "values", "said"), REFUSED, ids=lambda v: str(v)[:20])
def test_no_value_becomes_another_one(text: str, dtype: Any, values: Any, said: str) -> None:
    given = np.array(values, dtype.name.rstrip("_"))
    assert f"task 'f', {said}" in failure(body(text, vector(dtype), vector(dtype)), given)


def test_texts_that_r_has_not_and_extents_that_disagree() -> None:
    assert "'x': it has a NUL character" in failure(body("x", str, str), "a\0b")
    assert "output 'y': it has NA, and a text" in failure(body("c(x, NA)", str, list[str]), "a")
    two = fo.r(
        "f <- function(x, z) { x }", "f", inputs={"x": VECTOR, "z": VECTOR}, outputs={"y": VECTOR}
    )
    assert failure(two, X, X[:2]) == "task 'f', input 'z': extent 'n' is 2, and 3 in input 'x'"
    pair = {"a": fo.float64, "b": fo.float64}
    several = fo.r(
        "f <- function(x) { list(b = 1, a = 2) }", "f", inputs={"x": VECTOR}, outputs=pair
    )
    assert run(several, X) == [2.0, 1.0]
    several = fo.r(
        "f <- function(x) { list(b = 1, c = 2) }", "f", inputs={"x": VECTOR}, outputs=pair
    )
    assert "expected a list of a, b, given b, c" in failure(several, X)
    assert "expected a list of 2 outputs, given double of length 1" in failure(
        fo.r("f <- function(x) { 1 }", "f", inputs={"x": VECTOR}, outputs=pair), X
    )


def test_errors_say_where_they_are_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "fit.R"
    file.write_text(
        "check <- function(z) {\n  if (z > 1) {\n    stop('bad ', z)\n  }\n}\n\n"
        "fit.all <- function(x) {\n  y <- x + 1\n  lapply(x, check)\n  y + 'a'\n}\n"
    )
    task = fo.r(file, "fit.all", inputs={"x": VECTOR}, outputs={"y": VECTOR})
    assert f"raised BodyError: {file}:3: FUN: bad 2; given x" in failure(task, X)
    assert f"{file}:10: fit.all: non-numeric argument to binary" in failure(task, 0 * X)
    for code, said in (
        ("f <- function(x) {\n  x +\n}\n", "source.R:3:1: unexpected '}'"),
        ("\nlibrary(not.there)\nf <- 1", "source.R:2: there is no package called"),
        ("g <- function(x) {}", "source.R has no function f"),
        ("f <- function(x, y, z = 1) {}", "f takes 3 arguments, and is called with 1"),
    ):
        task = fo.r(code, "f", inputs={"x": VECTOR}, outputs={"y": VECTOR})
        assert f"raised CompileFailed: {said}" in failure(task, X)


def test_warnings_are_printed_and_a_sink_ends_with_its_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failure(body("sink('/dev/null'); cat('lost'); stop('so')"), X)
    run(body("sink('/dev/null'); x"), X)
    run(body("warning('careful'); cat('seen'); x"), X)
    assert capsys.readouterr() == ("seen", "Warning in f(x) : careful\n")


def test_a_slice_that_is_freed_leaves_r_to_one_that_is_opened() -> None:
    code = """
import threading
from tests.integration.engines.languages import VECTOR, X, in_r as body, opened
slow = body("Sys.sleep(.01); x + 1")
failed = []
def loop():
    try:
        for _ in range(4):
            with opened(slow) as held:
                held.run(X)
    except Exception as error:
        failed.append(error)
threads = [threading.Thread(target=loop) for _ in range(2)]
for each in threads: each.start()
for each in threads: each.join()
assert not failed, failed
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_message_longer_than_its_pipe_arrives() -> None:
    x = np.arange(5000.0)
    with opened(body("x + 1")) as held:
        held.run(X)
        fcntl.fcntl(_language_process._idle[-1].channel._asks, fcntl.F_SETPIPE_SZ, 4096)
        assert held.run(x)[0].tolist() == (x + 1).tolist()


def test_texts_cross_in_any_locale() -> None:
    code = """
from tests.integration.engines.languages import failure, in_r as body, run
assert run(body("paste0(x, nchar(x), '\u00e9')", str, str), "w\u00f6") == ["w\u00f62\u00e9"]
assert "it has bytes that are no text" in failure(body("rawToChar(as.raw(255))", str, str), "a")
"""
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)


def test_a_long_memory_file_is_given_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_language_channel, "KEPT_BYTES", 100_000)
    with opened(body("stop('so')")) as held:
        with pytest.raises(fo.TaskFailed):
            held.run(np.zeros(20_000))
        assert os.fstat(_language_process._idle[-1].channel._memory).st_size == 0


def test_code_may_be_one_line_and_have_lines_of_windows() -> None:
    for code in ("f <- function(x) x + 1", "f <- function(x) {\r\n  x + 1\r\n}\r\n"):
        task = fo.r(code, "f", inputs={"x": VECTOR}, outputs={"y": VECTOR})
        assert run(task, X)[0].tolist() == [1, 2, 3]


def test_an_error_may_have_a_message_of_several_parts() -> None:
    text = "stop(structure(class = c('e', 'error', 'condition'), list(message = c('a', 'b'))))"
    assert "a b; given x" in failure(body(text), X)


def add_one(x: Any) -> Any:
    return x + 1


def test_either_takes_a_body_in_r(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ports = {"iport_nametypes": ("x", VECTOR), "oport_nametypes": ("y", VECTOR)}
    in_python = fo.task({"task_name": "f", **ports, "fun": add_one})
    both = fo.either(in_python, body("x + 1"))
    flow = fo.flow_output(both(fo.flow_input("x", VECTOR)))
    for engine in ("r", "python"):
        with fo.slice(flow, engines=(engine,), workers="inline") as held:
            found: Any = held.run(X)[0]
            assert found.tolist() == [1, 2, 3]
            assert held.plan(X).tasks[0].engine == engine
    with fo.slice(flow, workers="inline") as held:
        for _ in range(8):
            found = held.run(X)[0]
            assert found.tolist() == [1, 2, 3]


def test_what_it_cannot_be_is_said_where_it_is_defined() -> None:
    wired = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
    for source, entry, said in (
        ("f <- 1\n", "f(x)", "entry='f(x)' (str); expected the name of a function"),
        ("/no/such.R", "f", "cannot read /no/such.R (No such file or directory)"),
    ):
        with pytest.raises(fo.WiringError) as caught:
            fo.r(source, entry, **wired)  # type: ignore[arg-type]
        assert said in str(caught.value)
    with pytest.raises(fo.WiringError, match="bytes_ has no type there"):
        body("x", bytes)
    assert pickle.loads(pickle.dumps(body("x").body.fun)).entry == "f"


@pytest.mark.parametrize("place", ["{}/w.R", "w.R"])
def test_kept_results_depend_on_what_the_source_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for factor in (2, 3):
        (tmp_path / "w.R").write_text(f"w <- {factor}\n")
        task = fo.r(
            f"source('{place.format(tmp_path)}')\nf <- function(x) w * x\n",
            "f",
            inputs={"x": VECTOR},
            outputs={"y": VECTOR},
        )
        found.append(task.body.fun.code.headers)  # type: ignore[union-attr]
    assert found[0] != found[1]
