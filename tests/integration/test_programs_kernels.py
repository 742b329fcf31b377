"""The program that measures kernels: right results, checked; clear refusals."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from flowos.probes import package_data
from flowos.probes._base import CANNOT_MEASURE_HERE

PROGRAM = Path(str(package_data("probes/programs"))) / "kernels.py"
WORDS = ("--seconds", "0.2", "--sizes", "16,1000", "--orders", "8,33", "--types", "i32,i64,f32,f64")


def run(*words: str, program: Path = PROGRAM) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, str(program), *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


def test_each_kernel_of_each_type() -> None:
    done = run("--device", "cpu", *WORDS)
    assert done.returncode == 0, done.stderr
    readings: list[dict[str, Any]] = json.loads(done.stdout)["readings"]
    assert all(value > 0 for reading in readings for value in reading["values"])
    by = {(r["metric"], *(r["levels"][name] for name in ("kernel", "type"))) for r in readings}
    types = ("i32", "i64", "f32", "f64")
    vectors = ("sort", "prefix_sum", "merge", "histogram")
    assert {(m, k) for m, k, _ in by} == {
        *(("elements", kernel) for kernel in vectors),
        *(("bandwidth", kernel) for kernel in vectors[1:]),
        ("flops", "gemm"),
    }
    assert {t for _, k, t in by if k == "sort"} == {*types}
    assert {t for _, k, t in by if k == "gemm"} == {"f32", "f64"}


def test_a_wrong_result_is_no_number(tmp_path: Path) -> None:
    """By a copy next to kernels, one of which loses an element."""
    ours = Path(str(package_data("kernels"))) / "array_kernels.py"
    (tmp_path / "array_kernels.py").write_text(
        ours.read_text() + "\n\ndef sort(x):\n    found = np.sort(x)\n    found[0] = found[1]\n"
        "    return found\n"
    )
    copy = tmp_path / "kernels.py"
    copy.write_text(PROGRAM.read_text())
    done = run("--device", "cpu", *WORDS, program=copy)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kernels: sort of 16 elements of i32\n"


def test_a_gpu_that_is_not_there_is_refused() -> None:
    done = run("--device", "cuda:99", *WORDS)
    assert done.returncode == CANNOT_MEASURE_HERE, done.stderr
    assert json.loads(done.stdout)["cannot"].startswith("CuPy: ")
