"""The programs through PyTorch on processors: right results, checked; clear refusals."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowos.probes import package_data
from flowos.probes._base import CANNOT_MEASURE_HERE

pytest.importorskip("torch", reason="pip install torch")

PROGRAMS = Path(str(package_data("probes/programs")))


def run(program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, str(PROGRAMS / program), *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


def readings(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["readings"]
    assert all(value > 0 for reading in found for value in reading["values"])
    return found


def levels(found: list[dict[str, Any]], name: str) -> list[str]:
    return [reading["levels"][name] for reading in found]


def test_products_of_each_type_that_processors_have() -> None:
    types = ("--types", "f64,f32,bf16,fp8")
    words = ("gemm", "--device", "cpu", "--seconds", "0.1", "--sizes", "16,48", *types)
    found = readings(run("torch_device.py", *words))
    assert levels(found, "type") == ["f64", "f64", "f32", "f32", "bf16", "bf16"]
    assert levels(found, "n") == ["16", "48"] * 3


def test_the_kernels_of_stream() -> None:
    words = ("stream", "--device", "cpu", "--seconds", "0.1", "--bytes", "80000")
    found = readings(run("torch_device.py", *words))
    assert levels(found, "kernel") == ["copy", "scale", "add", "triad"]


def test_what_needs_a_gpu_says_so() -> None:
    words = ("--device", "cuda:0", "--bodies", "64", "--types", "f32", "--seconds", "1")
    done = run("nbody_gpu.py", *words)
    if done.returncode:  # else there is one
        assert done.returncode == CANNOT_MEASURE_HERE, done.stderr
        assert json.loads(done.stdout)["cannot"]


def test_collectives_of_two_ranks_count_as_nccl_tests_does() -> None:
    words = ("--ranks", "2", "--backend", "gloo", "--seconds", "0.1", "--sizes", "8,4096")
    found = readings(run("torch_collectives.py", *words))
    by = {tuple([r["metric"], *r["levels"].values()]): r["values"] for r in found}
    assert {key[1] for key in by} == {"allreduce", "allgather", "reducescatter"}
    for kind, factor in (("allreduce", 1.0), ("allgather", 0.5), ("reducescatter", 0.5)):
        times, bus = by["time", kind, "4096"], by["bus_bandwidth", kind, "4096"]
        assert bus == pytest.approx([factor * 4096 / seconds for seconds in times])


def test_a_rank_that_fails_ends_the_others() -> None:
    words = ("--ranks", "2", "--backend", "gloo", "--seconds", "0.1", "--sizes", "8,many")
    done = run("torch_collectives.py", *words)
    assert done.returncode == 1
    assert "many" in done.stderr
