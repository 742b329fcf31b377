"""Bodies in CUDA: compiled by NVRTC for named architectures, and one clear line for what is wrong.

None of it needs a GPU: where there is none, that is what a task says once its kernel is compiled.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo

VECTOR = fo.array(fo.float32, ("n",))
TRIAD = """
__global__ void triad(const float* b, const float* __restrict__ c, double s, long long n,
                      float* a) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] + (float)s * c[i];
}
"""
PORTS: Any = {"inputs": {"b": VECTOR, "c": VECTOR, "s": fo.float64}, "outputs": {"a": VECTOR}}
B, C = np.arange(4, dtype="f4"), np.ones(4, "f4")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "flowos" / "bodies"


def kernel(source: Any = TRIAD, name: str = "triad", **more: Any) -> Any:
    options = {"grid": "n/256", "arch": "sm_90", **PORTS, **more}
    return fo.cuda(source, name, **options)


def failure(task: Any, *values: object) -> str:
    inputs = [fo.flow_input(port.name, port.type) for port in task.inputs]
    flow = fo.flow_output(task(*inputs))
    with fo.slice(flow, workers="inline") as opened, pytest.raises(fo.FlowosError) as caught:
        opened.run(*values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_kernel_is_compiled_for_named_architectures_and_kept(cache: Path) -> None:
    fun = kernel().body.fun
    found = {arch: fun.cubin(arch) for arch in ("sm_80", "sm_90")}
    for name, cubin in found.values():
        assert cubin.startswith(b"\x7fELF")
        assert name.encode() in cubin
        assert "triad" in name
    assert found["sm_80"] != found["sm_90"]
    files = {file: file.stat().st_mtime_ns for file in cache.glob("*.cubin")}
    assert len(files) == 2
    assert fun.cubin("sm_80") == found["sm_80"]
    assert {file: file.stat().st_mtime_ns for file in cache.glob("*.cubin")} == files
    for file in files:
        file.write_bytes(file.read_bytes()[:1000])
    assert fun.cubin("sm_80") == found["sm_80"]


def test_without_a_driver_a_task_says_so_once_it_is_compiled() -> None:
    said = failure(kernel(), B, C, 1.0)
    assert (
        "task 'triad' raised EngineMissing: there is no CUDA driver (libcuda.so.1): run it where"
        in said
    )
    assert "EngineMissing: there is no CUDA driver" in failure(kernel(arch=None), B, C, 1.0)


def test_a_source_that_does_not_compile_is_shown_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "triad.cu"
    file.write_text(TRIAD.replace("b[i]", "d[i]"))
    said = failure(kernel(file), B, C, 1.0)
    assert said.startswith(
        f"task 'triad' raised CompileFailed: {file}:5: identifier \"d\" is undefined"
    )
    said = failure(kernel('#include "no.h"\n' + TRIAD), B, C, 1.0)
    assert "source.cu:1: cannot open source file" in said
    assert "CompileFailed: " in failure(kernel(flags=["--no-such-flag"]), B, C, 1.0)
    said = failure(kernel(arch="sm_7"), B, C, 1.0)
    assert "CompileFailed: arch='sm_7': NVRTC " in said
    assert re.search(r" compiles for sm_\d+, .*sm_90\b.* or sm_\d+;", said)
    assert "CompileFailed: " in failure(kernel(arch="sm_90", flags=["-arch=x"]), B, C, 1.0)


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("triad(", "triade(", "source.cu has no kernel triad"),
        (
            ", double s",
            "",
            "kernel triad takes another number of arguments than its ports make, 5: float * b, "
            "float * c, double s, long long n, float * a",
        ),
        ("double s", "float s", "has another type for argument 3: s is passed as double"),
        ("const float* b", "const double* b", "argument 1: b is passed as float *"),
        ("double s", "double* s", "argument 3: s is passed as double"),
        ("long long n", "int n", "argument 4: n is passed as long long"),
        ("__global__ void", "__global__ int", " __global__ function must have a void return"),
        ("__global__", "__device__", "source.cu: triad is no kernel: it lacks __global__"),
    ],
)
def test_what_a_kernel_does_not_take_is_named(was: str, becomes: str, said: str) -> None:
    assert said in failure(
        kernel(TRIAD.replace(was, becomes, 1).replace("(float)s * ", "")), B, C, 1.0
    )


def test_types_that_are_the_same_are_taken(tmp_path: Path) -> None:
    (tmp_path / "types.h").write_text("typedef long Length; struct Pair { float x, y; };\n")
    file = tmp_path / "f.cu"
    file.write_text(
        '#include "types.h"\n'
        'extern "C" __global__ void f(bool t, char c, unsigned long u, const Pair* b, Length n,'
        " float* a) { a[0] = t + c + u + b[0].x + n; }"
    )
    inputs = {"t": fo.bool_, "c": fo.int8, "u": fo.uint64, "b": VECTOR}
    task: Any = fo.cuda(file, "f", grid=1, block=1, inputs=inputs, outputs={"a": VECTOR})
    name, _cubin = task.body.fun.cubin("sm_80")
    assert name == "f"
    (tmp_path / "types.h").write_text("typedef int Length; struct Pair { float x, y; };\n")
    with pytest.raises(fo.NoRetry, match="argument 5: n is passed as long long"):
        task.body.fun.cubin("sm_80")


ONE = "void k(float* y) { y[0] = V; }"


def one(file: Path, name: str = "k", flags: tuple[str, ...] = ()) -> Any:
    """A kernel that has one output and no inputs but V, which others define."""
    return fo.cuda(file, name, grid=1, inputs={}, outputs={"y": fo.float32}, flags=flags)


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("#include <v.cuh>", ()),
        ('#include "v.cuh"', ()),
        ('#include "sub/outer.cuh"', ()),
        ("", ("-include", "v.cuh")),
        ("", ("--pre-include=v.cuh",)),
    ],
)
def test_what_is_kept_depends_on_each_header_that_nvrtc_reads(
    tmp_path: Path, line: str, flags: tuple[str, ...]
) -> None:
    """One in a folder within that of the source may include one that is next to the source."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/outer.cuh").write_text('#include "v.cuh"\n')
    (tmp_path / "k.cu").write_text(f'{line}\nextern "C" __global__ {ONE}\n')
    found, headers = [], []
    for value in (1, 2):
        (tmp_path / "v.cuh").write_text(f"#define V {value}\n")
        fun = one(tmp_path / "k.cu", flags=flags).body.fun
        found.append(fun.cubin("sm_90")[1])
        headers.append(fun.code.headers)
    assert found[0] != found[1]
    assert (headers[0] != headers[1]) == bool(line)  # a result is kept by these


def test_macros_and_names_of_a_person_are_left_alone(tmp_path: Path) -> None:
    names = ["T", "U", "F", "I", "V", "kind", "Kind", "At", "Of", "Kernel", "value", "count", "is"]
    macros = "".join(f"#define {name} 16\n" for name in names)
    (tmp_path / "k.cu").write_text(f"{macros}__global__ {ONE}\n")
    assert "1k" in one(tmp_path / "k.cu").body.fun.cubin("sm_90")[0]
    for name in ("k_POINTER", "NAME", "ASSERTS"):
        (tmp_path / "k.cu").write_text(f"{macros}__global__ {ONE.replace('k(', name + '(')}\n")
        assert name in one(tmp_path / "k.cu", name).body.fun.cubin("sm_90")[0]


PROGRAM = f"""
import numpy as np, flowos as fo
v = fo.array(fo.float32, ("n",))
inputs = {{"b": v, "c": v, "s": fo.float64}}
triad = fo.cuda({TRIAD!r}, "triad", size="n", inputs=inputs, outputs={{"a": v}})
b, s = fo.flow_input("b", v), fo.flow_input("s", fo.float64)
made = triad(b, b, s)
with fo.slice(fo.flow_output(triad(made, made, 1.0)), workers="inline") as opened:
    print(*opened.run(np.arange(6, dtype="f4")[::2], 2.0))
    print(*opened.run(np.zeros(0, "f4"), 2.0))
    try:
        opened.run(np.ones(1000, "f4"), -1.0)
    except fo.FlowosError as error:
        print(error)
"""


def test_with_a_driver_kernels_are_launched_and_arrays_stay(tmp_path: Path) -> None:
    """The driver is a stand-in: what it cannot show is that a GPU does as it does."""
    source = Path(__file__).with_name("cuda_driver.c")
    words = ["gcc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "libcuda.so.1"), "-ldl"]
    subprocess.run(words, check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    *found, failed, counted = done.stdout.splitlines()
    assert found == ["[ 0. 12. 24.]", "[]"]
    said = "BodyError: triad: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
    assert said in failed
    assert counted == "arrays copied in 2, out 1; allocations left 0, kept 0"


def test_nvrtc_that_is_missing_is_said_with_its_package() -> None:
    program = f"""
import sys; sys.modules["cuda.bindings"] = None
import flowos as fo, numpy as np
v = fo.array(fo.float32, ("n",))
f = fo.cuda({TRIAD!r}, "triad", size="n", inputs={{"b": v, "c": v, "s": fo.float64}},
            outputs={{"a": v}}, arch="sm_90")
f.body.fun(np.ones(2, "f4"), np.ones(2, "f4"), 1.0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "EngineMissing: NVRTC cannot be loaded" in done.stderr.splitlines()[-1]
    assert "pip install 'flowos-hpc[cuda]'" in done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"grid": None}, "give grid=, the blocks of each axis, or size=, the threads"),
        ({"size": "n"}, "give grid=, the blocks of each axis, or size=, the threads"),
        ({"grid": "m"}, "grid: no extent and no integer input is 'm'; there is n"),
        ({"block": (16, 16)}, "block=(16, 16) (tuple); expected an integer above 0"),
        ({"block": 4096}, "block=4096; a block has 1024 threads at most"),
        (
            {"grid": None, "size": ("n", 2, 65), "block": (1, 2, 65)},
            "block=(1, 2, 65); its third axis is 64 at most",
        ),
        ({"arch": "90"}, "arch='90' (str); expected one such as 'sm_90'"),
        ({"name": ""}, "kernel='' (str); expected the name of a function"),
        ({"inputs": {"x": fo.complex64}}, "has no type there"),
    ],
)
def test_what_is_no_body_is_refused_at_once(more: dict[str, Any], said: str) -> None:
    with pytest.raises(fo.WiringError, match=r"^cuda '") as caught:
        kernel(name=more.pop("name", "triad"), **more)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_threads_are_divided_into_blocks() -> None:
    fun = kernel(grid=None, size=("n", 3), block=(64, 2)).body.fun
    assert [size.of({"n": 1000}) for size in fun.grid] == [16, 2]
    assert fun.block == (64, 2)


def test_the_body_says_its_engine() -> None:
    assert kernel().body.engine == "cuda"
