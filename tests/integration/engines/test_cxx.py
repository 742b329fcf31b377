"""Bodies in C++, C and Fortran by real compilers: results, and one clear line for what is wrong."""

import ctypes
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo

VECTOR = fo.array(fo.float32, ("n",))
TRIAD = """
#include <cstdint>
extern "C" int triad(const float* b, const float* c, double s, int64_t n, float* a) {
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] + static_cast<float>(s) * c[i];
  return 0;
}
"""
PORTS: Any = {"inputs": {"b": VECTOR, "c": VECTOR, "s": fo.float64}, "outputs": {"a": VECTOR}}
B, C = np.arange(4, dtype="f4"), np.ones(4, "f4")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "flowos" / "bodies"


def run(task: Any, *values: object, **options: Any) -> list[Any]:
    inputs = [fo.flow_input(port.name, port.type) for port in task.inputs]
    with fo.slice(fo.flow_output(task(*inputs)), **{"workers": "inline", **options}) as opened:
        values_found: list[Any] = opened.run(*values)
    return values_found


def failure(task: Any, *values: object, **options: Any) -> str:
    with pytest.raises(fo.FlowosError) as caught:
        run(task, *values, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_a_body_computes_wherever_tasks_run(workers: str) -> None:
    (a,) = run(fo.cxx(TRIAD, "triad", **PORTS), B, C, 3.0, workers=workers)
    assert a.tolist() == (B + 3 * C).tolist()


def test_a_chain_and_a_map_of_bodies() -> None:
    triad = fo.cxx(TRIAD, "triad", **PORTS)
    b, s = fo.flow_input("b", VECTOR), fo.flow_input("s", fo.float64)
    with fo.slice(fo.flow_output(triad(triad(b, C, s), C, 1.0))) as opened:
        rows: Any = opened.map([(B, 1.0), (B, 2.0)])
        found = [a.tolist() for (a,) in rows]
    assert found == [(B + 2).tolist(), (B + 3).tolist()]


C_SOURCE = """
#include <stdint.h>
#include <stdbool.h>
int mixed(int64_t i, float f, bool t, int8_t small, double d1, double d2, double d3, double d4,
          double d5, double d6, double d7, double d8, float f9, const int32_t *x, uint8_t u,
          int64_t last, int64_t n, double *sum, int32_t *all, bool *flag) {
  *sum = i + f + t + small + d1 + d2 + d3 + d4 + d5 + d6 + d7 + d8 + f9 + u + last;
  for (int64_t k = 0; k < n; k++) all[k] = 2 * x[k];
  *flag = n == 3;
  return 0;
}
"""


def test_many_arguments_of_many_types_arrive_in_their_order() -> None:
    floats = {f"d{n}": fo.float64 for n in range(1, 9)}
    vector = fo.array(fo.int32, ("n",))
    task = fo.cxx(
        C_SOURCE,
        "mixed",
        language="c",
        inputs={
            **{"i": fo.int64, "f": fo.float32, "t": fo.bool_, "small": fo.int8, **floats},
            **{"f9": fo.float32, "x": vector, "u": fo.uint8, "last": fo.int64},
        },
        outputs={"sum": fo.float64, "all": vector, "flag": fo.bool_},
    )
    x = np.array([1, -2, 3], "i4")
    values = [-5, 0.5, True, -3, *(float(2**n) for n in range(8)), 0.25, x, 200, 2**40]
    total, doubled, flag = run(task, *values)
    assert total == -5 + 0.5 + 1 - 3 + 255 + 0.25 + 200 + 2**40
    assert (doubled.tolist(), flag) == ([2, -4, 6], True)


FORTRAN = """
function scale(x, k, n, y) bind(c) result(code)
  use iso_c_binding
  integer(c_int64_t), value :: n
  real(c_double), value :: k
  real(c_double), intent(in) :: x(3, n)
  real(c_double), intent(out) :: y(3, n)
  integer(c_int) :: code
  y = k * x
  code = 0
end function
"""


def test_fortran_is_called_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "scale.f90").write_text(FORTRAN)
    rows = fo.array(fo.float64, ("n", 3))
    ports: Any = {"inputs": {"x": rows, "k": fo.float64}, "outputs": {"y": rows}}
    task = fo.cxx(tmp_path / "scale.f90", "scale", **ports)
    x = np.arange(6.0).reshape(2, 3)
    assert run(task, x, 2.0)[0].tolist() == (2 * x).tolist()
    plain = FORTRAN.replace(" bind(c)", "")
    task = fo.cxx(plain, "scale", language="fortran", **ports)
    assert "write bind(c, name='scale') after its arguments" in failure(task, x, 2.0)


def test_arrays_with_strides_are_copied_and_inputs_may_be_read_only() -> None:
    triad = fo.cxx(TRIAD, "triad", **PORTS)
    wide = np.arange(8, dtype="f4")
    wide.flags.writeable = False
    assert run(triad, wide[::2], wide[::-2], 1.0)[0].tolist() == [7.0] * 4


def test_extents_have_to_agree() -> None:
    triad = fo.cxx(TRIAD, "triad", **PORTS)
    said = "task 'triad', input 'c': extent 'n' is 5, and 4 in input 'b'"
    for workers in ("inline", "process"):
        assert failure(triad, B, np.ones(5, "f4"), 1.0, workers=workers) == said


def test_an_integer_input_says_how_long_an_output_is() -> None:
    text = """#include <cstdint>
    extern "C" int count(int64_t n, int64_t* a) {
      for (int64_t i = 0; i < n; ++i) a[i] = i;
      return n == 7;
    }"""
    outputs = {"a": fo.array(fo.int64, ("n",))}
    count = fo.cxx(text, "count", inputs={"n": fo.int64}, outputs=outputs)
    assert run(count, 3)[0].tolist() == [0, 1, 2]
    assert failure(count, -3) == "task 'count', input 'n': extent 'n' is -3"
    assert failure(count, 7) == "task 'count' raised BodyError: count returned 1; given n = 7 (int)"


def test_a_source_that_does_not_compile_is_shown_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "triad.cpp"
    file.write_text(TRIAD.replace("b[i]", "d[i]"))
    for workers in ("inline", "process"):
        said = failure(fo.cxx(file, "triad", **PORTS), B, C, 1.0, workers=workers)
        assert said.startswith(f"task 'triad' raised CompileFailed: {file}:4:")
        assert "'d' was not declared" in said


def test_what_the_library_lacks_is_named() -> None:
    plain = TRIAD.replace('extern "C" ', "")
    assert (
        'source.cpp has no function triad with the C ABI; write extern "C" before triad'
        in failure(fo.cxx(plain, "triad", **PORTS), B, C, 1.0)
    )
    said = failure(fo.cxx(TRIAD, "triade", **PORTS), B, C, 1.0)
    assert "source.cpp has no function triade with the C ABI;" in said
    unknown = TRIAD.replace("  for", "  extern void far(); far(); for")
    said = failure(fo.cxx(unknown, "triad", **PORTS), B, C, 1.0)
    assert "the library of source.cpp cannot be loaded: undefined symbol" in said


def test_what_does_not_link_is_said() -> None:
    said = failure(fo.cxx(TRIAD, "triad", flags=["-lnosuch"], **PORTS), B, C, 1.0)
    assert "cannot find -lnosuch" in said


@pytest.mark.parametrize(
    ("thrown", "words"), [('std::logic_error("odd")', "odd"), ("3", "not a std::exception")]
)
def test_what_a_body_throws_is_the_error_of_its_task(thrown: str, words: str) -> None:
    text = f"#include <stdexcept>\n{TRIAD.replace('return 0', f'throw {thrown}')}"
    said = failure(fo.cxx(text, "triad", **PORTS), B, C, 1.0)
    assert f"raised RuntimeError: the body threw a C++ exception: {words}; given" in said


def test_a_crash_ends_a_worker_and_names_the_task() -> None:
    text = """extern "C" int crash(long, long* y) { *(volatile int*)0 = 1; return *y = 0; }"""
    crash = fo.cxx(text, "crash", inputs={"x": fo.int64}, outputs={"y": fo.int64})
    said = failure(crash, 1, workers="process")
    assert "'crash'" in said
    assert "it was killed by signal 11 (SIGSEGV)" in said


def test_threads_run_two_bodies_at_once() -> None:
    """Each waits for the other, in a function that holds no lock of Python."""
    text = """#include <atomic>
    static std::atomic<int> here{0};
    extern "C" int meet(long, long* y) {
      *y = ++here;
      while (here < 2) {}
      return 0;
    }"""
    meet = fo.cxx(text, "meet", inputs={"x": fo.int64}, outputs={"y": fo.int64})
    x = fo.flow_input("x", fo.int64)
    with fo.slice(fo.flow_output(meet(x), meet(x)), workers="thread", cores=2) as opened:
        assert {*opened.run(1)} == {1, 2}


def compiled(cache: Path) -> dict[str, int]:
    return {file.name: file.stat().st_ino for file in cache.glob("*.so")}


def fresh(task: Any) -> Any:
    """As another process would have it."""
    made, arguments = task.body.fun.__reduce__()
    return made(*arguments)


def test_a_library_is_compiled_once_and_anew_when_its_headers_change(
    tmp_path: Path, cache: Path
) -> None:
    (tmp_path / "scale.h").write_text("constexpr long kScale = 2;\n")
    file = tmp_path / "scaled.cpp"
    file.write_text(
        '#include "scale.h"\nextern "C" int scaled(long x, long* y) { *y = kScale * x; return 0; }'
    )
    ports: Any = {"inputs": {"x": fo.int64}, "outputs": {"y": fo.int64}}
    task: Any = fo.cxx(file, "scaled", **ports)
    assert task.body.fun(21) == 42
    first = compiled(cache)
    assert fresh(task)(21) == 42
    assert compiled(cache) == first
    (tmp_path / "scale.h").write_text("constexpr long kScale = 3;\n")
    assert fresh(task)(21) == 63
    assert len(compiled(cache)) == 2
    flagged: Any = fo.cxx(file, "scaled", flags=["-DX"], **ports)
    assert flagged.body.fun(1) == 3


USES = 'extern "C" int w(); extern "C" int used(long x, long* y) { *y = w() * x; return 0; }'
ONE: Any = {"inputs": {"x": fo.int64}, "outputs": {"y": fo.int64}}


def linked(folder: Path, factor: int) -> None:
    """Makes libw.a and libv.so there, whose w() is this."""
    (folder / "w.c").write_text(f"int w(void) {{ return {factor}; }}")
    for words in (
        ["cc", "-c", "-fPIC", "w.c"],
        ["ar", "rcs", "libw.a", "w.o"],
        ["cc", "-shared", "-o", "libv.so", "w.o"],
    ):
        subprocess.run(words, cwd=folder, check=True)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [["{}/libw.a"], ["-L{}", "-l:libw.a"], ["-L", "{}", "-lw"]])
def test_a_library_is_made_anew_when_what_is_linked_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], compiler: str
) -> None:
    monkeypatch.setenv("CXX", compiler)
    words = [flag.format(tmp_path) for flag in flags]
    found = []
    for factor in (2, 3):
        linked(tmp_path, factor)
        task: Any = fo.cxx(USES, "used", flags=words, **ONE)
        found.append((task.body.fun(10), task.body.fun.code.headers))
    assert [result for result, _ in found] == [20, 30]
    assert found[0][1] != found[1][1]  # by these a result is kept


def test_kept_results_depend_on_shared_libraries_among_the_flags(tmp_path: Path) -> None:
    found = set()
    for factor in (2, 3):
        linked(tmp_path, factor)
        task: Any = fo.cxx(USES, "used", flags=[f"-L{tmp_path}", "-lv"], **ONE)
        found.add(task.body.fun.code.headers)
    assert len(found) == 2
    assert () not in found


CALLED = 'extern "C" int used(long x, long* y) { *y = W * x; return 0; }'
INCLUDES = """integer(c_int) function used(x, y) bind(c)
use iso_c_binding
integer(c_int64_t), value :: x
integer(c_int64_t) :: y
%s 'w.h'
y = w * x
used = 0
end function
"""


@pytest.mark.parametrize(
    ("name", "text", "flags"),
    [
        ("a.cpp", f'#include "w.h"\n{CALLED}', ["-I{}/inc"]),
        ("a.cpp", f"#include <w.h>\n{CALLED}", ["-isystem", "{}/inc"]),
        ("a.cpp", f'#define H "inc/w.h"\n#include H\n{CALLED}', []),
        ("a.cpp", CALLED, ["-include", "{}/inc/w.h"]),
        ("a.f90", INCLUDES % "INCLUDE", ["-I{}/inc"]),
    ],
)
def test_what_is_read_by_other_ways_is_seen_too(
    tmp_path: Path, name: str, text: str, flags: list[str]
) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / name).write_text(text)
    found = []
    for factor in (2, 3):
        line = f"integer(c_int64_t) :: w = {factor}" if name == "a.f90" else f"#define W {factor}"
        (tmp_path / "inc" / "w.h").write_text(f"{line}\n")
        words = [flag.format(tmp_path) for flag in flags]
        task: Any = fo.cxx(tmp_path / name, "used", flags=words, **ONE)
        found.append((task.body.fun(10), task.body.fun.code.headers))
    assert [result for result, _ in found] == [20, 30]
    assert found[0][1] != found[1][1]


@pytest.mark.parametrize("damage", ["library", "entry", "gone"])
def test_a_damaged_entry_is_compiled_anew(cache: Path, damage: str) -> None:
    task = fo.cxx(TRIAD, "triad", **PORTS)
    run(task, B, C, 1.0)
    (library,) = cache.glob("*.so")
    (entry,) = (each for each in cache.glob("*.json") if library.name in each.read_text())
    whole = library.read_bytes()
    if damage == "entry":
        entry.write_text("{")
    else:
        library.unlink()
    if damage == "library":
        library.write_bytes(whole[:1000])
    program = "import sys, pickle; pickle.loads(sys.stdin.buffer.read())._ready()"
    call = pickle.dumps(fresh(task))
    done = subprocess.run([sys.executable, "-c", program], input=call, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert library.read_bytes() == whole
    assert ctypes.CDLL(str(library)).triad is not None


def test_many_processes_compile_one_library(cache: Path) -> None:
    task = fo.cxx(TRIAD, "triad", **PORTS)
    calls = [fresh(task) for _ in range(4)]
    threads = [threading.Thread(target=call._ready) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled(cache)) == 1
    assert not [file for file in cache.glob(".*") if file.suffix != ".lock"]


def test_kept_results_depend_on_the_code() -> None:
    def total(text: str) -> Any:
        task = fo.cxx(text, "triad", cache=True, **PORTS)
        inputs = [fo.flow_input(port.name, port.type) for port in task.inputs]
        with fo.slice(fo.flow_output(task(*inputs)), workers="inline") as opened:
            found: Any = opened.run(B, C, 1.0)
        return float(found[0].sum())

    assert total(TRIAD) == total(TRIAD) == 10.0
    assert total(TRIAD.replace("* c[i]", "* c[i] * 2")) == 14.0


@pytest.mark.parametrize(
    ("source", "entry", "more", "said"),
    [
        ("no/such.cpp", "f", {}, "cannot read"),
        (3, "f", {}, "source=3 (int); expected a path or code"),
        ("", "f", {}, "source='' (str); expected a path or code"),
        (TRIAD, "a b", {}, "entry='a b' (str); expected the name of a function"),
        (TRIAD, "f", {"flags": "-O2"}, "flags='-O2' (str); expected a list of words"),
        (TRIAD, "f", {"language": "ada"}, "language='ada' (str); expected c, c++ or fortran"),
        (__file__, "f", {}, "says no language; give language='c++' or another"),
        (TRIAD, "f", {"inputs": {f"x{n}": fo.int64 for n in range(33)}}, "at most 32"),
        (TRIAD, "f", {"inputs": {"t": fo.str_}}, "input 't': str_ has no type there"),
    ],
)
def test_what_is_no_body_is_refused_at_once(
    source: Any, entry: str, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(fo.WiringError, match=r"^cxx '") as caught:
        fo.cxx(source, entry, **{"inputs": {}, "outputs": {"y": fo.int64}, **more})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
