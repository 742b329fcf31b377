"""Bodies in C++, C and OpenCL: what they need besides right code, and one line where it lacks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flowos as fo

ONE: Any = {"inputs": {"x": fo.int64}, "outputs": {"y": fo.int64}}
TWICE = 'extern "C" int twice(long x, long* y) { *y = 2 * x; return 0; }'
GROUPS = "__kernel {} void groups(long x, __global long* y) {{ *y = get_num_groups(0); }}"
REQUIRED = "__attribute__((reqd_work_group_size(4, 1, 1)))"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(task: Any) -> Any:
    with fo.slice(fo.flow_output(task(fo.flow_input("x", fo.int64))), workers="inline") as opened:
        return opened.run(10)[0]


def failure(task: Any) -> str:
    with pytest.raises(fo.TaskFailed) as caught:
        run(task)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    said = failure(fo.cxx(TWICE, "twice", **ONE))
    assert "there is no C++ compiler: install g++, or name one in CXX" in said
    for name in ("icpx", "/nowhere/g++", str(Path.cwd())):
        monkeypatch.setenv("CXX", name)
        said = failure(fo.cxx(TWICE, "twice", **ONE))
        assert f"no C++ compiler '{name}', which CXX names" in said


def test_a_compiler_may_be_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(shutil.which("g++")))
    assert run(fo.cxx(TWICE, "twice", **ONE)) == 20


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    said = failure(fo.cxx(TWICE, "twice", **ONE))
    assert "the cache /dev/null/flowos/bodies (Not a directory): name another cache folder" in said
    assert ".py:" not in said


def test_a_byte_order_mark_is_no_code(tmp_path: Path) -> None:
    file = tmp_path / "twice.cpp"
    file.write_text(TWICE, encoding="utf-8-sig")
    assert run(fo.cxx(file, "twice", **ONE)) == 20


@pytest.mark.parametrize(
    ("code", "language"), [('extern "C" { int twice = 3; }', "c++"), ("int twice[9] = {3};", "c")]
)
def test_a_variable_is_not_called(code: str, language: str) -> None:
    said = failure(fo.cxx(code, "twice", language=language, **ONE))
    assert "twice is a variable, not a function;" in said


def test_a_kernel_has_the_groups_that_it_requires() -> None:
    code = GROUPS.format(REQUIRED)
    assert run(fo.opencl(code, "groups", size="x/4*4", group=4, **ONE)) == 3
    for group in (None, 2):
        said = failure(fo.opencl(code, "groups", size="x/4*4", group=group, **ONE))
        assert ": the kernel requires groups of (4, 1, 1) (reqd_work_group_size);" in said


def test_what_a_platform_refuses_is_one_line() -> None:
    said = failure(fo.opencl(GROUPS.format(""), "groups", size="x", flags=["-cl-none-such"], **ONE))
    assert "CompileFailed: Invalid build option: -cl-none-such;" in said
    calls = f"long far(int);\n{GROUPS.format('').replace('get_num_groups', 'far')}"
    said = failure(fo.opencl(calls, "groups", size="x", **ONE))
    assert "CompileFailed: Cannot find symbol far in kernel library;" in said


def test_a_folder_that_pocl_cannot_write_to_is_named() -> None:
    program = "from flowos.engine import opencl_devices\nopencl_devices()\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "POCL_CACHE_DIR": "/dev/null/pocl"},
        capture_output=True,
        text=True,
    )
    assert "there is no OpenCL device: pocl has to write to /dev/null/pocl; name" in done.stderr
