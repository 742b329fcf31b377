"""hpl and hpcg, by every compiler here: right answers that check themselves, wrong ones caught."""

import subprocess
from pathlib import Path

import pytest

from flowos.model import Case, Exited, Outcome, Unmeasured
from flowos.probes._own_folder import in_own_folder
from flowos.probes.hpcg import INTENSITY
from flowos.probes.hpl import Hpl
from tests.integration.test_programs_ceilings import (
    BOTH,
    COMPILERS,
    CPU,
    PROGRAMS,
    Built,
    built,
    numpys_library,
    readings,
    run,
)

__all__ = ["built"]

NUMPY = ("--library", str(numpys_library()), "--symbol", "scipy_{}_64_", "--family", "openblas")
BLAS = r"""
typedef long long integer;
static double at(const double *a, integer lda, integer i, integer j) { return a[j * lda + i]; }
void dgemm_(char *ta, char *tb, integer *m, integer *n, integer *k, double *alpha, double *a,
            integer *lda, double *b, integer *ldb, double *beta, double *c, integer *ldc) {
  (void)ta; (void)tb; (void)beta;
  for (integer j = 0; j < *n; j++)
    for (integer i = 0; i < *m; i++)
      for (integer l = 0; l < *k; l++)
        c[j * *ldc + i] += *alpha * at(a, *lda, i, l) * at(b, *ldb, l, j);
  if (WRONG && *m > 100) c[0] *= 1 + 1e-9;
}
void dtrsm_(char *side, char *upper, char *trans, char *unit, integer *m, integer *n,
            double *alpha, double *a, integer *lda, double *b, integer *ldb) {
  (void)side; (void)trans; (void)alpha;
  for (integer j = 0; j < *n; j++)
    for (integer step = 0; step < *m; step++) {
      const integer i = *upper == 'U' ? *m - 1 - step : step;
      double *x = b + j * *ldb;
      for (integer k = *upper == 'U' ? i + 1 : 0; k < (*upper == 'U' ? *m : i); k++)
        x[i] -= at(a, *lda, i, k) * x[k];
      if (*unit == 'N') x[i] /= at(a, *lda, i, i);
    }
}
#ifdef SAYS
void dgetrf_(integer *m, integer *n, double *a, integer *lda, integer *p, integer *info) {
  (void)m; (void)n; (void)a; (void)lda; (void)p;
  *info = SAYS;
}
void dgetrs_(char *t) { (void)t; }
#endif
"""


def a_blas(folder: Path, *, wrong: int = 0, lapack: int | None = None) -> Path:
    """A plain BLAS. wrong: rounds badly. lapack: it has one, which says this and does nothing."""
    source, library = folder / "blas.c", folder / "libplain.so"
    source.write_text(BLAS)
    flags = (f"-DWRONG={wrong}", *(() if lapack is None else (f"-DSAYS={lapack}",)))
    subprocess.run(("gcc", "-O2", "-shared", "-fPIC", *flags, source, "-o", library), check=True)
    return library


@pytest.mark.parametrize("compiler", COMPILERS)
def test_lapack_solves_what_hpl_solves(built: Built, compiler: str) -> None:
    words = (*NUMPY, "--cpus", BOTH, "--sizes", "1,100,300", "--seconds", "20")
    found = readings(built.program(compiler, "hpl"), *words)
    assert [(r["metric"], r["levels"]["n"]) for r in found] == [
        (metric, n) for n in ("1", "100", "300") for metric in ("flops", "time")
    ]
    rate, time = found[4]["values"], found[5]["values"]
    assert rate[0] * time[0] == pytest.approx(2 / 3 * 300**3 + 1.5 * 300**2, rel=1e-6)
    assert all(float(r["notes"]["residual"]) < 1 for r in found)
    assert {r["notes"]["factored_by"] for r in found} == {"dgetrf"}


def test_a_library_without_lapack_is_used_for_our_own_factors(built: Built, tmp_path: Path) -> None:
    words = ("--cpus", CPU, "--sizes", "2,3,301", "--seconds", "20")
    found = readings(built.program("gcc", "hpl"), "--library", a_blas(tmp_path), *words)
    assert {r["notes"]["factored_by"] for r in found} == {"recursive LU, dgemm"}
    assert found[-1]["levels"]["n"] == "301"
    assert 1e-4 < float(found[-1]["notes"]["residual"]) < 1


@pytest.mark.parametrize(
    ("wrong", "lapack", "reason"),
    [
        (1, None, "n 256: wrong solution, its scaled residual is"),
        (0, 0, "n 256: wrong solution, its scaled residual is"),
        (0, 7, "n 256: the library says that the matrix is singular"),
    ],
)
def test_a_wrong_solution_is_no_number(
    built: Built, tmp_path: Path, wrong: int, lapack: int | None, reason: str
) -> None:
    library = a_blas(tmp_path, wrong=wrong, lapack=lapack)
    done = run(built.program("gcc", "hpl"), "--library", library, "--cpus", CPU, "--sizes", "300")
    assert done.returncode == 1
    assert reason in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--library", "/nowhere/libblas.so"), "/nowhere/libblas.so: cannot open"),
        (("--symbol", "{}_64_"), "neither LAPACK nor dgemm, dtrsm"),
        (("--sizes", "1000000"), "no size fits into the memory that is free"),
    ],
)
def test_what_cannot_be_solved_is_told(
    built: Built, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    library = ("--library", a_blas(tmp_path), "--cpus", CPU)
    done = run(built.program("gcc", "hpl"), *library, *words)
    outcome = Outcome(end=Exited(done.returncode), stdout=done.stdout.encode())
    read = Hpl().read(Case("hpl"), outcome)
    assert isinstance(read, Unmeasured)
    assert reason in read.reason


@pytest.mark.parametrize(
    "words", [("--sizes", "1,x"), ("--sizes", "0"), ("--cpus", "-1"), ("--symbol", "dgemm")]
)
def test_what_was_asked_wrongly_is_said(built: Built, words: tuple[str, ...]) -> None:
    done = run(built.program("gcc", "hpl"), *NUMPY, "--cpus", CPU, *words)
    assert done.returncode == 1
    assert "--sizes" in done.stderr or "--cpus" in done.stderr


# --- HPCG ------------------------------------------------------------------------------------


def test_a_set_ends_with_the_residual_of_hpcgs_reference(built: Built) -> None:
    """That of xhpcg 3.1 by two ranks of 32x32x32 rows is 1.26595e-16 (tests/data/hpcg)."""
    if BOTH == CPU:
        pytest.skip("two cpus are needed")
    words = ("--cpus", BOTH, "--size", "32", "--seconds", "0")
    flops, bandwidth = readings(built.program("gcc", "hpcg"), *words)
    assert float(flops["notes"]["residual"]) == pytest.approx(1.26595e-16, rel=1e-3)
    assert (flops["metric"], bandwidth["metric"]) == ("flops", "bandwidth")
    # its share of the set-up is in the former alone
    share = flops["values"][0] / bandwidth["values"][0] / INTENSITY.flop_per_byte
    assert 0.8 < share <= 1.005


@pytest.mark.parametrize("compiler", COMPILERS)
def test_sets_are_repeated_for_the_time_that_was_asked(built: Built, compiler: str) -> None:
    words = ("--cpus", CPU, "--size", "16", "--seconds", "0.3")
    flops, _ = readings(built.program(compiler, "hpcg"), *words)
    assert 1 <= len(flops["values"]) <= 64


@pytest.mark.parametrize(
    ("line", "instead", "reason"),
    [
        ("for (int32_t i = level->rows; i--;) relax(level, i);", "", "not symmetric"),
        ("if (at == LEVELS - 1) return;", "return;", ""),
        (
            "-1;\n  }\n  level->counts",
            "-2;\n  }\n  level->counts",
            "50 iterations left the residual at",
        ),
    ],
)
def test_what_is_not_hpcg_is_caught(tmp_path: Path, line: str, instead: str, reason: str) -> None:
    """A sweep forward alone; stencils that are not definite. Fewer levels are its own choice."""
    text = (PROGRAMS / "hpcg.c").read_text()
    assert text.count(line) == 1
    source, program = tmp_path / "hpcg.c", tmp_path / "hpcg"
    source.write_text(text.replace(line, instead))
    flags = ("-O2", "-pthread", f"-I{PROGRAMS}")
    subprocess.run(("gcc", *flags, source, "-o", program, "-lm"), check=True)
    done = run(program, "--cpus", CPU, "--size", "16", "--seconds", "0")
    assert (done.returncode == 1) == bool(reason)
    assert reason in done.stderr


@pytest.mark.parametrize("size", ["8", "20", "408", "x"])
def test_a_size_that_has_no_four_levels_is_refused(built: Built, size: str) -> None:
    done = run(built.program("gcc", "hpcg"), "--cpus", CPU, "--size", size)
    assert done.returncode == 1
    assert "a multiple of 8" in done.stderr


# --- programs with files of fixed names ------------------------------------------------------


def test_a_program_finds_its_file_and_leaves_no_folder(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", "cat in.dat; echo made > out-1.txt; exit 3")
    words = in_own_folder(command, reads="in.dat", text="100% 'a'\n", shows="out-*.txt none-*")
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "100% 'a'\nmade\n", "")
    assert list(tmp_path.iterdir()) == []


def test_ranks_do_not_share_a_folder(tmp_path: Path) -> None:
    words = in_own_folder(("/bin/pwd",), reads="HPL.dat", text="")
    places = {
        subprocess.run(words, capture_output=True, cwd=tmp_path, check=True).stdout
        for _ in range(2)
    }
    assert len(places) == 2
    assert list(tmp_path.iterdir()) == []
