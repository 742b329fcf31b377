"""What a compiler says of a function's type, and whether the function can be called by its ports.

The complaints are those of g++ 12, gcc 12, clang 14 and gfortran 12.
"""

import pytest

import flowos as fo
from flowos.model import NativeEntry, NativePorts, native_ports

VECTOR = fo.array(fo.float32, ("n",))
PORTS = native_ports("f", {"b": VECTOR}, {"a": VECTOR})
G = NativeEntry("g", "c++")
BY_PORTS = "by its ports it is int g(const float *b, int64_t n, float *a), in the source "
GXX = "a.cpp:9:15: error: invalid application of 'sizeof' to incomplete type 'flowos_Has_<{}>'"
CLANGXX = "a.cpp:9:15: error: implicit instantiation of undefined template 'flowos_Has_<{}>'"
GCC = "a.c:10:34: error: invalid operands to binary * (have {} and 'double')"
CLANG = "a.c:10:34: error: invalid operands to binary expression ({} and 'double')"


@pytest.mark.parametrize(
    ("language", "said", "type_"),
    [
        ("c++", GXX.format("int(const std::complex<float>*) noexcept"), None),
        ("c++", CLANGXX.format("int (const float *, double (*)[3])"), None),
        ("c++", "a.cpp:11:45: error: '::g' has not been declared", ""),
        ("c", GCC.format("'int (*)(long int)'"), "int (*)(long int)"),
        ("c", GCC.format("'int (*)(int64_t)' {aka 'int (*)(long int)'}"), "int (*)(long int)"),
        ("c", CLANG.format("'int (real *)' (aka 'int (float *)')"), "int (float *)"),
        ("c", "a.c:14:31: error: 'g' undeclared (first use in this function)", ""),
        ("fortran", "int g (const double *x, long n);", "int(const double *, long)"),
        ("fortran", "void g (void);", "void(void)"),
        (
            "fortran",
            "int other (int g);\nint g (__GFORTRAN_FLOAT_COMPLEX *z, int w /* WARNING: odd */ );",
            "int(float _Complex *, int)",
        ),
        ("fortran", "int other (int g);", ""),
    ],
)
def test_the_type_is_what_the_compiler_says(language: str, said: str, type_: str | None) -> None:
    expected = said.partition("<")[2].removesuffix(">'") if type_ is None else type_
    assert NativeEntry("g", language).type_in(said) == expected


def test_a_compiler_is_asked_after_the_source_and_fortrans_without_it() -> None:
    assert "decltype(::g)" in NativeEntry("g", "c++").probe
    assert "((g) * 1.0)" in NativeEntry("g", "c").probe
    assert NativeEntry("g", "fortran").probe == ""


@pytest.mark.parametrize(
    "has",
    [
        "int(const float*, long int, float*)",
        "int (const float *, long, float *) noexcept",
        "int (*)(const float * restrict,  const long int,  float * restrict)",
        "int(float*, long long int, float* const __restrict)",
        "int (const float *, unsigned long, float *) __attribute__((nonnull))",
        "int (const volatile float *, const long, float (*)[4])",
        "int(const float (&)[4], long int, float&)",
        "unsigned int(const Row*, long int, void*)",
        "Status(const float*, Count, float*)",
        "int(void (*)(int, int), long int, std::array<float, 3>*)",
    ],
)
def test_what_reads_the_arguments_as_they_are_passed_can_be_called(has: str) -> None:
    assert G.misfit(PORTS, has) == ""


@pytest.mark.parametrize(
    "has", ["", "int(const float*, ...)", "void (*(int))(int)", "what", "(int)"]
)
def test_what_is_not_known_is_not_refused(has: str) -> None:
    assert G.misfit(PORTS, has) == ""


@pytest.mark.parametrize(
    ("has", "why"),
    [
        ("int(const float*)", "takes 1 argument, and is called with 3"),
        ("int(void)", "takes 0 arguments, and is called with 3"),
        ("int()", "takes 0 arguments, and is called with 3"),
        (
            "int(const float*, int, float*)",
            "takes int as argument 2, and is called with int64_t n",
        ),
        (
            "int(const double*, long int, float*)",
            "takes const double* as argument 1, and is called with const float *b",
        ),
        (
            "int(float, long int, float*)",
            "takes float as argument 1, and is called with const float *b",
        ),
        (
            "int(const float**, long int, float*)",
            "takes const float** as argument 1, and is called with const float *b",
        ),
        (
            "int(const float*, const long int&, float*)",
            "takes const long int& as argument 2, and is called with int64_t n",
        ),
        (
            "int(const float*, long int, const float*)",
            "takes const float* as argument 3, and is called with float *a",
        ),
        (
            "int(const float*, long int, long double*)",
            "takes long double* as argument 3, and is called with float *a",
        ),
        (
            "int(const float*, long int, int (*)[3])",
            "takes int (*)[3] as argument 3, and is called with float *a",
        ),
        (
            "void(const float*, long int, float*)",
            "returns void, not an int (0, or the task fails)",
        ),
        (
            "double(const float*, long int, float*)",
            "returns double, not an int (0, or the task fails)",
        ),
        (
            "int*(const float*, long int, float*)",
            "returns int*, not an int (0, or the task fails)",
        ),
    ],
)
def test_what_would_read_something_else_is_refused_with_both_types(has: str, why: str) -> None:
    said = G.misfit(PORTS, has)
    assert said.startswith(f"g {why}: {BY_PORTS}")
    result, _, inside = has.partition("(")
    assert said.endswith(f"in the source {result} g({inside.replace('void)', ')')}")


@pytest.mark.parametrize("has", ["int (*)()", "int ()"])
def test_what_c_says_without_a_prototype_is_not_refused(has: str) -> None:
    """gcc's words and clang's."""
    entry = NativeEntry("g", "c")
    assert entry.misfit(PORTS, has) == ""
    assert "takes 0 arguments" in entry.misfit(PORTS, has.replace("()", "(void)"))


def one(dtype: str) -> NativePorts:
    return native_ports("f", {"x": getattr(fo, dtype)}, {})


@pytest.mark.parametrize(
    ("dtype", "taken", "refused"),
    [
        ("bool_", ["bool", "_Bool", "unsigned char", "char"], ["int", "unsigned int"]),
        ("int8", ["signed char", "char"], ["unsigned char", "short"]),
        ("uint8", ["unsigned char", "char"], ["bool", "signed char"]),
        ("int16", ["short", "short int"], ["short unsigned int"]),
        ("uint16", ["unsigned short"], ["short", "unsigned"]),
        ("int32", ["int", "signed"], ["long", "unsigned int", "float", "int*"]),
        ("int64", ["long", "long long int"], ["unsigned long", "int"]),
        ("uint64", ["long unsigned int"], ["long"]),
        ("float32", ["float"], ["double"]),
        ("float64", ["double"], ["float", "long double", "_Complex double"]),
    ],
)
def test_each_number_has_its_types(dtype: str, taken: list[str], refused: list[str]) -> None:
    assert [has for has in taken if G.misfit(one(dtype), f"int({has})")] == []
    assert [has for has in refused if not G.misfit(one(dtype), f"int({has})")] == []


@pytest.mark.parametrize(
    ("dtype", "taken", "refused"),
    [
        ("uint8", ["signed char", "char"], ["short"]),
        ("uint16", ["short"], ["int"]),
        ("uint32", ["int"], ["long", "float"]),
        ("uint64", ["long"], ["int", "double"]),
    ],
)
def test_fortran_has_no_unsigned_integers(dtype: str, taken: list[str], refused: list[str]) -> None:
    port = getattr(fo, dtype)
    for entry, good, bad in (
        (NativeEntry("g", "fortran"), taken, refused),
        (NativeEntry("g", "c"), [], [taken[0], *refused]),
    ):
        for kinds, fits in ((good, True), (bad, False)):
            for kind in kinds:
                array = native_ports("f", {"x": fo.array(port, ("n",))}, {"y": port})
                has = f"int({kind} *, long, {kind} *)"
                assert (entry.misfit(array, has) == "") == fits, has


def test_complex_arrays_may_be_read_as_pairs_of_real_numbers() -> None:
    ports = native_ports("f", {"z": fo.array(fo.complex64, ("n",))}, {})
    kinds = [
        "_Complex float",
        "std::complex<float>",
        "complex<float>",
        "float",
        "std::__1::complex<float>",
    ]
    assert not any(G.misfit(ports, f"int(const {kind}*, long)") for kind in kinds)
    for kind in ("std::complex<double>", "double", "std::complex<long double>", "int"):
        assert "const float _Complex *z" in G.misfit(ports, f"int({kind}*, long)")
    assert G.misfit(ports, "int(std::complex<Odd>*, long)") == ""


def test_an_extent_may_be_a_size_also_where_it_is_an_input() -> None:
    ports = native_ports("f", {"n": fo.int64}, {"a": VECTOR})
    assert G.misfit(ports, "int(unsigned long, float*)") == ""
