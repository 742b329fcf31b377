"""Source code of bodies: its language, its command line, and what a compiler says in one line."""

import pytest

from flowos.model import (
    SourceCode,
    alternatives,
    first_error,
    headers_of,
    included_names,
    is_source_text,
    language_of,
    misses_c_abi,
)
from flowos.model._source_code import Language


def code(path: str = "", language: Language = "c++", *flags: str) -> SourceCode:
    return SourceCode(text="int x;\n", path=path, language=language, flags=flags)


@pytest.mark.parametrize(
    ("path", "language"),
    [("a.c", "c"), ("a.cpp", "c++"), ("a.C", "c++"), ("x/a.F90", "fortran"), ("a.py", None)],
)
def test_a_suffix_says_the_language(path: str, language: str | None) -> None:
    assert language_of(path) == language


def test_the_person_is_shown_their_own_file() -> None:
    assert code("/home/me/a.cc").content == '#line 1 "/home/me/a.cc"\nint x;\n'
    assert code("", "fortran").content.startswith('# 1 "source.f90"\n')
    assert code("/a.txt", "c").suffix == ".c"
    assert code("/home/me/a.cc").suffix == ".cc"
    assert [code("", "opencl").name, code("", "cuda").name] == ["source.cl", "source.cu"]


def test_the_command_looks_for_headers_beside_the_source() -> None:
    command = code("/home/me/a.cc", "c++", "-lm").command("g++", "in.cc", "out.so", "out.d")
    assert command[0] == "g++"
    assert command[-4:] == ("in.cc", "-o", "out.so", "-lm")
    assert command[command.index("-iquote") :][:2] == ("-iquote", "/home/me")
    assert "-std=c++20" in command
    fortran = code("", "fortran").command("gfortran", "in.f90", "out.so", "out.d")
    assert fortran[fortran.index("-I") :][:2] == ("-I", ".")
    assert "-MD" in code("", "c++", "-isystem", "/inc").command("g++", "a.cc", "a.so", "a.d")
    assert "-std=c++20" not in code("", "c").command("cc", "in.c", "out.so", "out.d")


def test_the_question_for_types_reads_the_source_as_the_command_does() -> None:
    asked = code("/home/me/a.cc", "c++", "-Werror").type_command("g++", "in.cc", "made")
    assert asked[-4:] == ("-Werror", "-fsyntax-only", "-w", "-fno-diagnostics-color")
    assert {"-std=c++20", "-iquote", "/home/me", "in.cc"} <= {*asked}
    fortran = code("", "fortran").type_command("gfortran", "in.f90", "made")
    assert fortran[fortran.index("-J") :][:2] == ("-J", "made")
    assert fortran[-1] == "-fc-prototypes"
    assert "-J" not in code("", "fortran", "-Jmods").type_command("gfortran", "in.f90", "made")


GCC = """/home/me/a.cc: In function 'int f()':
/home/me/a.cc:3:5: error: 'y' was not declared in this scope
    3 |     y;
/home/me/a.cc:9:1: error: another
"""
POCL = """warning: /home/me/a.cl:1:1: unused
error: /home/me/a.cl:3:5: use of undeclared identifier 'y'
"""
NVRTC = """/home/me/a.cu(1): warning #177-D: variable "x" was declared but never referenced

/home/me/a.cu(3): error: identifier "y" is undefined
      y = 1;
"""
GFORTRAN = """/home/me/a.f90:2:6:

    2 |   y = 1
      |      1
Error: Symbol 'y' at (1) has no IMPLICIT type
"""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (GCC, "/home/me/a.cc:3:5: 'y' was not declared in this scope"),
        ("a.c:1:10: fatal error: no.h: No such file", "a.c:1:10: no.h: No such file"),
        (POCL, "/home/me/a.cl:3:5: use of undeclared identifier 'y'"),
        (NVRTC, '/home/me/a.cu:3: identifier "y" is undefined'),
        ("a.cu(2): catastrophic error: no file", "a.cu:2: no file"),
        (GFORTRAN, "/home/me/a.f90:2:6: Symbol 'y' at (1) has no IMPLICIT type"),
        ("a.f90:2:6:\n\nError: no such symbol\n", "a.f90:2:6: no such symbol"),
        ("Fatal Error: a.mod cannot be read\n", "Fatal Error: a.mod cannot be read"),
        ("a.f90:2:6:\n\nWarning: unused\n", "Warning: unused"),
        ("warning\nld: undefined reference to `f'\nmore\n", "ld: undefined reference to `f'"),
        (
            "ld: cannot find -lno\ncollect2: error: ld returned 1 exit status",
            "ld: cannot find -lno",
        ),
        ("error: ld failed\na: multiple definition of `f'", "a: multiple definition of `f'"),
        ("a.o: not recognized\ncollect2: error: ld returned 1 exit status", "a.o: not recognized"),
        (
            "linking:\nCannot find symbol f in kernel library\nfailed\n",
            "Cannot find symbol f in kernel library",
        ),
        ("first\nlast\n", "last"),
        ("", "it said nothing"),
    ],
)
def test_the_first_error_is_one_line(said: str, line: str) -> None:
    assert first_error(said) == line


def test_headers_are_read_from_a_rule_of_make() -> None:
    rule = "body.so: /tmp/x/body.cpp \\\n /home/me/a.h \\\n /home/my\\ own/b.h\n"
    assert headers_of(rule) == ["/home/me/a.h", "/home/my own/b.h"]
    assert headers_of("") == []


def test_names_of_headers_are_found() -> None:
    text = '#include <vector>\n#include "a.h"\n  # include "b/c.h"\n// "d.h"\n`include "e>.vh"\n'
    assert included_names(text) == ["vector", "a.h", "b/c.h", "e>.vh"]
    assert included_names("#include<f.cuh>\n#include <g.cuh\n") == ["f.cuh"]
    other = """#define H "w.h"\n#include H\n  INCLUDE 'w.inc'\nsource(file = "w.R")\n"""
    assert included_names(other) == ["w.h", "w.inc", "w.R"]
    assert included_names('include("w.jl"); include(joinpath("a", "b"))') == ["w.jl"]


def test_a_function_under_another_name_is_found() -> None:
    assert misses_c_abi("triad", b"\0_Z5triadPKfPfl\0").startswith('write extern "C" before triad')
    assert misses_c_abi("Triad", b"\0triad_\0") == "write bind(c, name='Triad') after its arguments"
    assert misses_c_abi("triad", b"\0other\0") == ""


def test_code_is_no_path() -> None:
    assert is_source_text('extern "C" int f() { return 0; }')
    assert is_source_text("line\nline")
    assert not is_source_text("src/triad.cpp")
    assert is_source_text("f <- g", "r")
    assert is_source_text("f = function(x) x", "r")
    assert not is_source_text("f <- g", "c")
    assert not is_source_text("fit.R", "r")
    assert is_source_text("f(x) = 2x", "julia")
    assert not is_source_text("fit.jl", "julia")
    assert code("", "julia").name == "source.jl"


def test_words_are_counted_for_people() -> None:
    assert alternatives(["a"]) == "a"
    assert alternatives(["a", "b"]) == "a or b"
    assert alternatives(["a", "b", "c"]) == "a, b or c"
