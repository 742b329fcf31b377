"""Functions in C++, C and Fortran whose types are not what the ports make."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.engine.bodies._compile import library_of
from flowos.engine.bodies._source import source_code

VECTOR = fo.array(fo.float32, ("n",))
B = np.arange(4, dtype="f4")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "flowos" / "bodies"


def run(task: Any, workers: Any = "inline") -> Any:
    with fo.slice(fo.flow_output(task(fo.flow_input("b", VECTOR))), workers=workers) as opened:
        (found,) = opened.run(B)
    return found


def failure(task: Any, workers: Any = "inline") -> str:
    with pytest.raises(fo.TaskFailed) as caught:
        run(task, workers)
    assert "\n" not in str(caught.value)
    return str(caught.value)


G: Any = {"inputs": {"b": VECTOR}, "outputs": {"a": VECTOR}}
FORTRAN_G = """{} bind(c) result(code)
  use iso_c_binding
  integer(c_int64_t){} :: n
  real(c_float) :: b(*), a(*)
  integer(c_int) :: code
  code = 0
end"""
WRONG = [
    ("c++", "int g(const float* b, float* a) { return 0; }", "g takes 2 arguments"),
    ("c++", "int g(const double* b, long n, float* a) { return 0; }", "g takes const double"),
    ("c++", "int g(const float* b, int n, float* a) { return 0; }", "g takes int as argument 2"),
    ("c++", "void g(const float* b, long n, float* a) {}", "g returns void"),
    ("c", "int g(const float *b, float *a) { return 0; }", "g takes 2 arguments"),
    ("c", "int g(const real *b, int64_t n, float *a) { return 0; }", "g takes const double"),
    ("c", "void g(const float *b, int64_t n, float *a) {}", "g returns void"),
    ("fortran", FORTRAN_G.format("function g(b, a)", ""), "g takes 2 arguments"),
    ("fortran", FORTRAN_G.format("function g(b, n, a)", ""), "g takes long * as argument 2"),
    (
        "fortran",
        "subroutine g(b, n, a) bind(c)\nreal :: b(*), a(*)\ninteger(8), value :: n\nend",
        "g returns void",
    ),
]
BEFORE = {
    "c++": 'extern "C" ',
    "c": "#include <stdint.h>\ntypedef double real;\n",
    "fortran": "",
}


@pytest.mark.parametrize(("language", "text", "said"), WRONG)
def test_a_function_that_takes_something_else_is_refused_with_both_types(
    language: str, text: str, said: str
) -> None:
    task = fo.cxx(f"{BEFORE[language]}{text}\n", "g", language=language, **G)
    message = failure(task, "process")
    suffix = {"c++": "cpp", "c": "c", "fortran": "f90"}[language]
    assert f"task 'g' raised CompileFailed: source.{suffix}: " in message
    assert said in message
    assert (
        "by its ports it is int g(const float *b, int64_t n, float *a), in the source " in message
    )


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "head",
    [
        "int g(const float* __restrict b, const int64_t n, float* const __restrict a) noexcept",
        "int g(float* b, size_t n, void* a_) noexcept(true)",
        '[[gnu::visibility("default")]] int32_t g(const real (*b)[1], long long n, real& a_)',
    ],
)
def test_a_function_may_say_the_same_in_other_words(
    monkeypatch: pytest.MonkeyPatch, compiler: str, head: str
) -> None:
    monkeypatch.setenv("CXX", compiler)
    at = "&a_" if "real&" in head else "a_" if "void*" in head else "a"
    body = f"float* out = (float*){at}; for (size_t i = 0; i < size_t(n); ++i) out[i] = 7;"
    text = "#include <cstddef>\n#include <cstdint>\nusing real = float;\n"
    text += f'extern "C" {head} {{ {body} return 0; }}'
    flags = [
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Werror",
        "-pedantic",
        "-fdiagnostics-color=always",
    ]
    a = run(fo.cxx(text, "g", flags=flags, **G))
    assert a.tolist() == [7.0] * 4


@pytest.mark.parametrize("kind", ["namespace", "macro", "alias", "linked"])
def test_what_a_compiler_does_not_say_runs_all_the_same(tmp_path: Path, kind: str) -> None:
    body = "{ for (long i = 0; i < n; ++i) a[i] = 7; return 0; }"
    plain = f'extern "C" int g(const float* b, long n, float* a) {body}'
    texts = {
        "namespace": f"namespace x {{ {plain} }}",
        "macro": f"#define MADE(g) {plain}\nMADE(g)\n#define g(x) 3",
        "alias": plain.replace(" g(", " h(") + '\nextern "C" int i() __attribute__((alias("h")));'
        '\nasm(".globl g\\n.set g, h");',
        "linked": "// nothing of g\n",
    }
    flags = []
    if kind == "linked":
        (tmp_path / "g.c").write_text(f"int g(const float* b, long n, float* a) {body}")
        subprocess.run(["cc", "-c", "-fPIC", "g.c"], cwd=tmp_path, check=True)
        flags = [str(tmp_path / "g.o")]
    a = run(fo.cxx(texts[kind], "g", flags=flags, **G))
    assert a.tolist() == [7.0] * 4


def test_a_type_that_was_mended_in_a_header_is_seen(tmp_path: Path) -> None:
    """Of both the same library is made."""
    header, source = tmp_path / "real.h", tmp_path / "g.c"
    source.write_text('#include "real.h"\nint g(const real *b, long n, real *a) { return 0; }')
    task: Any = fo.cxx(str(source), "g", **G)
    header.write_text("typedef int real;")
    assert "g takes const int *" in failure(task)
    header.write_text("typedef float real;")
    assert run(fo.cxx(str(source), "g", **G)).shape == (4,)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_without_a_prototype_runs(monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    monkeypatch.setenv("CC", compiler)
    text = "int g(b, n, a) const float *b; long n; float *a; { a[0] = 7; return 0; }\n"
    assert run(fo.cxx(text, "g", language="c", **G))[0] == 7


def test_unsigned_numbers_are_given_to_fortran() -> None:
    kind, values = fo.array(fo.uint16, ("n",)), np.array([0, 7, 65535], "u2")
    text = FORTRAN_G.format("function g(b, n, a)", ", value").replace("real(c_float)", "integer(2)")
    text = text.replace("code = 0", "code = 0; a(1:n) = b(1:n)")
    task = fo.cxx(text, "g", language="fortran", inputs={"b": kind}, outputs={"a": kind})
    with fo.slice(fo.flow_output(task(fo.flow_input("b", kind))), workers="inline") as opened:
        np.testing.assert_array_equal(opened.run(values), [values])


def test_a_library_that_was_kept_before_is_asked_too(cache: Path) -> None:
    text = 'extern "C" int g(const float* b, float* a) { return 0; }'
    library_of(source_code("", text, "c++", []))
    assert len(list(cache.glob("*.so"))) == 1
    assert "g takes 2 arguments" in failure(fo.cxx(text, "g", **G))
    assert len(list(cache.glob("*.so"))) == 1
