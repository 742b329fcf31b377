"""clock, flops, working_set and gemm, by every compiler here: right answers, clear refusals."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import pytest

from flowos.model import Case, Exited, Killed, Outcome, Unmeasured
from flowos.probes import gemm, working_set

PROGRAMS = Path(gemm.__file__).parent / "programs"
STRICT = ("-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pthread")
LIBRARIES = ("-ldl", "-lm")
QEMU, CROSS = shutil.which("qemu-aarch64-static"), shutil.which("aarch64-linux-gnu-gcc")
COMPILERS = [name for name in ("gcc", "clang", "clang-16") if shutil.which(name)]
SOURCES = ("clock.c", "flops.c", "working_set.c", "gemm.c")
CPU = str(min(os.sched_getaffinity(0)))
BOTH = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
SMALL = {
    "clock": ("--repetitions", "3"),
    "flops": ("--repetitions", "2", "--seconds", "0.002"),
    "working_set": ("--most", "4000000", "--repetitions", "2", "--seconds", "0.0005"),
}
"""Arguments that keep the test short."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> "Built":
    return Built(tmp_path_factory.mktemp("programs"))


class Built:
    """Programs by compiler and name, each compiled once, without a warning."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = cache(self._program)

    def _program(self, compiler: str, name: str) -> Path:
        out = self.folder / f"{name}-{Path(compiler).name}"
        more = ("-static",) if compiler == CROSS else ()
        source = str(PROGRAMS / f"{name}.c")
        subprocess.run(
            (compiler, *STRICT, *more, source, "-o", str(out), *LIBRARIES[len(more) :]), check=True
        )
        return out


def run(*argv: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """With this environment, less what the person set for libraries, plus `variables`."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "BLIS_", "MKL_"))}
    return subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**own, **variables},
    )


def readings(*argv: str | Path) -> list[dict[str, Any]]:
    done = run(*argv)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["readings"]
    assert all(value > 0 for reading in found for value in reading["values"])
    return found


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_clock_is_measured_on_each_cpu(built: Built, compiler: str) -> None:
    found = readings(built.program(compiler, "clock"), "--cpus", BOTH, *SMALL["clock"])
    assert [r["levels"]["cpu"] for r in found if r["metric"] == "clock"] == BOTH.split(",")
    assert {(r["metric"], r["unit"]) for r in found} == {("clock", "Hz"), ("add_imul_ratio", "1")}
    assert all(len(r["values"]) == 3 for r in found)


def test_the_clock_is_the_same_while_others_run_on_the_cpu(built: Built) -> None:
    """Of time with the others in it, four of them leave a fifth."""

    def clocks() -> list[float]:
        found = readings(built.program(COMPILERS[0], "clock"), "--cpus", CPU, *SMALL["clock"])
        return [v for r in found if r["metric"] == "clock" for v in r["values"]]

    alone = max(clocks())
    spin = ("taskset", "-c", CPU, sys.executable, "-c", "while True: pass")
    others = [subprocess.Popen(spin) for _ in range(4)]
    try:
        busy = clocks()
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert statistics.median(busy) > 0.6 * alone


@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_instruction_set_of_this_machine_has_a_ceiling_for_both_types(
    built: Built, compiler: str
) -> None:
    found = readings(built.program(compiler, "flops"), "--cpus", BOTH, *SMALL["flops"])
    flags = Path("/proc/cpuinfo").read_text().split()
    names = {"sse4_2": "sse4.2", "avx": "avx", "avx2": "avx2", "avx512f": "avx512f"}
    expected = {name for flag, name in names.items() if flag in flags} or {"neon"}
    assert expected <= {r["levels"]["isa"] for r in found}
    assert {r["levels"]["type"] for r in found if r["levels"]["isa"] in expected} == {"f32", "f64"}
    assert len(found) == len({tuple(r["levels"].items()) for r in found})


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_curve_reaches_from_the_first_size_to_the_last(built: Built, compiler: str) -> None:
    found = readings(built.program(compiler, "working_set"), "--cpus", BOTH, *SMALL["working_set"])
    sizes = [int(r["levels"]["bytes"]) for r in found if r["metric"] == "triad"]
    assert sizes == sorted(set(sizes))
    assert sizes[0] < 20_000
    assert sizes[-1] > 3_000_000
    assert {r["metric"] for r in found} <= set(working_set.KERNELS)


@pytest.mark.parametrize("per_octave", [1, 2, 3, 5])
def test_the_size_that_was_asked_for_is_the_last(built: Built, per_octave: int) -> None:
    asked = 3 << 18
    sizes = ("--least", str(3 << 12), "--most", str(asked), "--per-octave", str(per_octave))
    words = (*sizes, "--repetitions", "1", "--seconds", "0.0001")
    found = readings(built.program("gcc", "working_set"), "--cpus", CPU, *words)
    assert int(found[-1]["levels"]["bytes"]) == asked


def test_the_sizes_go_on_until_the_curve_is_flat_and_not_beyond_their_limit(built: Built) -> None:
    least, most, limit = 3 << 14, 3 << 15, 3 << 24
    sizes = ("--least", str(least), "--most", str(most), "--limit", str(limit))
    words = (*sizes, "--per-octave", "1", "--repetitions", "2", "--seconds", "0.0005")
    found = readings(built.program("gcc", "working_set"), "--cpus", CPU, *words)
    best: dict[int, float] = {}
    for r in found:
        size = int(r["levels"]["bytes"])
        best[size] = max(best.get(size, 0.0), *r["values"])
    *_, before, last = sorted(best)
    assert most <= last <= limit
    assert last == limit or best[last] >= working_set.FLAT * best[before]
    beyond = [size for size in best if most <= size < last]
    assert all(best[size] < working_set.FLAT * best[size // 2] for size in beyond)


@pytest.mark.skipif(not (QEMU and CROSS), reason="needs gcc-aarch64-linux-gnu and qemu-user-static")
@pytest.mark.parametrize("cpu", ["cortex-a72", "max,sve512=on"])
def test_the_programs_give_right_answers_on_aarch64(built: Built, cpu: str) -> None:
    """Emulated: every kernel checks its own answer; the rates mean nothing."""
    assert QEMU is not None
    assert CROSS is not None
    for name in ("clock", "flops"):
        program = built.program(CROSS, name)
        words = ("--cpus", CPU, "--repetitions", "1", "--seconds", "0.001")
        found = readings(QEMU, "-cpu", cpu, program, *words)
    isas = {r["levels"]["isa"] for r in found}
    more = {"sve", "neon_dotprod", "neon_i8mm", "neon_bf16"}
    assert isas == {"neon"} | (more if "sve" in cpu else set())


def test_a_burst_that_is_cut_short_converges_all_the_same(built: Built) -> None:
    """As on a busy machine, where the rounds that fit into a burst are timed far too few."""
    words = ("--cpus", CPU, "--repetitions", "1", "--seconds", "1e-9")
    assert readings(built.program("gcc", "flops"), *words)


def test_a_kernel_that_leaves_out_a_chain_is_caught(tmp_path: Path) -> None:
    for file in PROGRAMS.glob("flo*"):
        shutil.copy(file, tmp_path)
    header = tmp_path / "flops_kernel.h"
    text = header.read_text()
    assert '"0,2,4,6,8,10"' in text
    header.write_text(text.replace('"0,2,4,6,8,10"', '"0,2,4,6,8"'))
    program = tmp_path / "broken"
    subprocess.run(
        ("gcc", "-O2", "-pthread", str(tmp_path / "flops.c"), "-o", str(program)), check=True
    )
    done = run(program, "--cpus", CPU, "--repetitions", "1", "--seconds", "0.001")
    assert done.returncode == 1
    assert "chain 10 ended at" in done.stderr


@pytest.mark.parametrize("name", ["clock", "flops", "working_set", "gemm"])
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "usage: "),
        (("--cpus", "0-"), "write it as 0,2,4-7"),
        (("--cpus", "x"), "write it as 0,2,4-7"),
        (("--cpus", "4-2"), "write it as 0,2,4-7"),
        (("--cpus", "9999999"), "numbers below"),
    ],
)
def test_bad_words_give_one_clear_line(
    built: Built, name: str, words: tuple[str, ...], complaint: str
) -> None:
    done = run(built.program("gcc", name), *words)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_cpu_that_is_not_there_is_named(built: Built) -> None:
    done = run(built.program("gcc", "flops"), "--cpus", "8000")
    assert done.returncode == 1
    assert "cannot run on cpu 8000" in done.stderr


# --- GEMM ------------------------------------------------------------------------------------


def numpys_library() -> Path:
    folder = Path(numpy.__file__).parent.parent / "numpy.libs"
    return next(folder.glob("libscipy_openblas64*.so"))


def multiply(program: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    library = ("--library", str(numpys_library()), "--symbol", "scipy_{}_64_")
    words = ("--family", "openblas", "--cpus", CPU, "--sizes", "64,100")
    return run(program, *library, *words, *more, **variables)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_numpys_library_multiplies_and_names_its_kernels(built: Built, compiler: str) -> None:
    done = multiply(built.program(compiler, "gemm"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["readings"]
    levels = [(r["levels"]["type"], r["levels"]["n"]) for r in found]
    assert levels == [("f64", "64"), ("f64", "100"), ("f32", "64"), ("f32", "100")]
    assert found[0]["notes"]["kernel"] != ""
    assert found[0]["notes"]["environment"] == ""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="these kernels are of x86-64")
def test_forced_kernels_are_those_that_run(built: Built) -> None:
    done = multiply(built.program("gcc", "gemm"), "--core", "Nehalem")
    notes = json.loads(done.stdout)["readings"][0]["notes"]
    assert notes == {"kernel": "Nehalem", "forced_by": "OPENBLAS_CORETYPE=Nehalem"}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="these kernels are of x86-64")
def test_kernels_that_the_environment_forces_are_told(built: Built) -> None:
    done = multiply(built.program("gcc", "gemm"), OPENBLAS_CORETYPE="Nehalem")
    notes = json.loads(done.stdout)["readings"][0]["notes"]
    assert notes == {"kernel": "Nehalem", "environment": "OPENBLAS_CORETYPE=Nehalem"}


def test_sizes_for_which_no_time_is_left_are_left_out(built: Built) -> None:
    done = multiply(built.program("gcc", "gemm"), "--sizes", "64,4096", "--seconds", "0.01")
    assert done.returncode == 0
    assert {r["levels"]["n"] for r in json.loads(done.stdout)["readings"]} == {"64"}


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BLAS that multiplies wrongly, and dies by SIGILL where kernels are forced."""
    folder = tmp_path_factory.mktemp("planted")
    source = folder / "planted.c"
    source.write_text(
        "#include <stdlib.h>\n"
        'void dgemm_(void) { if (getenv("OPENBLAS_CORETYPE")) __builtin_trap(); }\n'
        "void sgemm_(void) {}\n"
    )
    library = folder / "libplanted.so"
    subprocess.run(("gcc", "-shared", "-fPIC", str(source), "-o", str(library)), check=True)
    return library


def test_a_library_that_multiplies_wrongly_is_caught(built: Built, planted: Path) -> None:
    words = ("--library", planted, "--cpus", CPU, "--sizes", "64")
    done = run(built.program("gcc", "gemm"), *words)
    assert done.returncode == 1
    assert "wrong product: f64, n 64" in done.stderr


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="traps by SIGILL on x86-64")
def test_kernels_that_the_cpu_lacks_end_the_child_and_become_a_reason(
    built: Built, planted: Path
) -> None:
    words = ("--library", planted, "--family", "openblas", "--core", "SkylakeX", "--cpus", CPU)
    done = run(built.program("gcc", "gemm"), *words)
    outcome = Outcome(end=Killed(-done.returncode))
    case = Case("gemm", levels=(("library", "planted"),), details=(("core", "SkylakeX"),))
    read = gemm.Gemm().read(case, outcome)
    assert isinstance(read, Unmeasured)
    assert read.reason == "planted has no SkylakeX kernels that run here (SIGILL)"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--library", "/nowhere/libblas.so"), "/nowhere/libblas.so: cannot open"),
        (("--symbol", "{}_64_"), "lacks the function"),
        (("--family", "blis", "--core", "skx"), "does not know the kernels"),
    ],
)
def test_a_library_that_cannot_be_used_is_told_with_the_reason(
    built: Built, planted: Path, words: tuple[str, ...], reason: str
) -> None:
    done = run(built.program("gcc", "gemm"), "--library", planted, "--cpus", CPU, *words)
    outcome = Outcome(end=Exited(done.returncode), stdout=done.stdout.encode())
    read = gemm.Gemm().read(Case("gemm"), outcome)
    assert isinstance(read, Unmeasured)
    assert reason in read.reason
