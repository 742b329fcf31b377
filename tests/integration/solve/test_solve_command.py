"""`flowos solve`, as a person at a terminal calls it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from .matrices import graph, laplacian, residual

Flowos = Callable[..., subprocess.CompletedProcess[str]]


def test_a_generated_system_is_solved_told_of_and_drawn(flowos: Flowos) -> None:
    shown = flowos("solve", "poisson:16x16x16")
    first, *rest = shown.stdout.splitlines()
    assert first.startswith("poisson:16x16x16: converged: ")
    assert "  matrix: 4096 rows, 27136 entries" in rest
    assert "relative residual, - - goal 1.00e-07" in rest
    assert any(line.startswith("1e-07 |") for line in rest)
    assert shown.stderr == ""


def test_a_file_is_solved_with_a_right_hand_side_and_x_is_kept(
    flowos: Flowos, tmp_path: Path
) -> None:
    a, b = graph(3000, 2), np.random.default_rng(1).standard_normal(3000)
    scipy_io.mmwrite(tmp_path / "a.mtx", a, symmetry="symmetric", precision=17)
    np.save(tmp_path / "b.npy", b)
    words = ("solve", "a.mtx", "--rhs", "b.npy", "--out", "x.npy", "--json")
    one, two = (json.loads(flowos(*words, "--threads", n).stdout) for n in ("1", "2"))
    assert one["converged"]
    assert one["planned"]["entries"] == a.nnz
    assert one["x_sha256"] == two["x_sha256"]
    assert residual(a, np.load(tmp_path / "x.npy"), b) <= 1e-7
    assert len(one["info"]["residuals"]) == one["info"]["iterations"]
    assert "residuals" not in one  # said once
    assert one["info"]["setup"]["colours"] >= 2


def test_the_residual_is_drawn_to_files(flowos: Flowos, tmp_path: Path) -> None:
    for name, begins in (("r.svg", "<svg"), ("r.html", "<!doctype html>")):
        flowos("solve", "poisson:12x12x12", "--plot", name)
        assert (tmp_path / name).read_text().startswith(begins)


def test_a_dry_run_says_what_would_be_solved(flowos: Flowos, tmp_path: Path) -> None:
    told = flowos("solve", "poisson:256x256x512", "--dry-run", "--json").stdout
    assert json.loads(told)["rows"] == 256 * 256 * 512
    assert json.loads(told)["entries"] == 7 * 2**25 - 2 * (2 * 256 * 512 + 256 * 256)
    scipy_io.mmwrite(tmp_path / "a.mtx", laplacian(6, 6), symmetry="symmetric")
    told = flowos("solve", "a.mtx", "--rhs", "random:3", "--dry-run").stdout
    assert told == "a.mtx: 36 rows, 156 entries, right-hand side random:3, to a residual of 1e-07\n"


def test_what_does_not_converge_is_told_and_is_a_failure(flowos: Flowos) -> None:
    shown = flowos("solve", "poisson:20x20x20", "--maxiter", "2", code=1).stdout
    assert "not converged: all the iterations that were allowed are done: 2 iterations" in shown


def test_one_triangle_of_a_general_file_is_enough(flowos: Flowos, tmp_path: Path) -> None:
    lower = sparse.tril(laplacian(6, 6))
    scipy_io.mmwrite(tmp_path / "lower.mtx", lower, symmetry="general")
    refused = flowos("solve", "lower.mtx", code=1).stderr
    assert refused.startswith("flowos solve: lower.mtx: the matrix is not symmetric: ")
    assert "(2, 1) and (1, 2) differ; of one with a triangle alone say --lower, and" in refused
    told = flowos("solve", "lower.mtx", "--lower", "--json").stdout
    assert json.loads(told)["info"]["reason"] == "converged"


def test_all_choices_are_taken(flowos: Flowos) -> None:
    words = ("--block", "32", "--colours", "4", "--relax", "0.5", "--precision", "fp64")
    told = flowos("solve", "poisson:16", *words, "--coarse", "none", "--rtol", "1e-9", "--json")
    done = json.loads(told.stdout)
    assert done["planned"]["rtol"] == 1e-9
    assert done["info"]["precision"] == "fp64"
    assert done["info"]["setup"]["relax"] == 0.5
    assert done["info"]["setup"]["levels"] == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("poisson",), 2, "expected cells along x, y and z, as poisson:128x128x128"),
        (("poisson:0x4",), 2, "expected cells"),
        (("poisson:4x4x4x4",), 2, "expected cells"),
        (("poisson:2000x2000x2000",), 2, "8000000000 rows; at most 2147483647 can be"),
        (("poisson:1290x1290x1290",), 1, "GB"),
        (("g3like:x",), 2, "expected g3like, or g3like:SEED"),
        (("nosuch.mtx",), 1, "nosuch.mtx: No such file or directory"),
        (("poisson:4", "--rhs", "b"), 2, "expected ones, random, random:SEED or a file: NAME.npy"),
        (("poisson:4", "--rhs", "b.npy"), 1, "b.npy: No such file or directory"),
        (("poisson:4", "--rhs", "text.npy"), 1, "text.npy: no NumPy file of numbers, or cut off"),
        (("poisson:4", "--rhs", "objects.npy"), 1, "objects.npy: no NumPy file of numbers, or"),
        (("poisson:4", "--rhs", "cut.npy"), 1, "cut.npy: no NumPy file of numbers, or cut off"),
        (("poisson:4", "--rhs", "short.npy"), 1, "short.npy has shape (3,): expected (4,)"),
        (("poisson:4", "--rhs", "two.npy"), 1, "two.npy has shape (4, 2): expected (4,)"),
        (("poisson:4", "--rhs", "words.npy"), 1, "words.npy holds <U1: expected real numbers"),
        (("poisson:4", "--rhs", "nan.npy"), 1, "nan.npy[1] is nan: expected finite numbers"),
        (("poisson:4", "--rhs", "large.npy"), 1, "large.npy[0] is inf: expected finite numbers"),
        (("poisson:4", "--nullspace", "constant"), 1, "poisson:4: row 1: does not add up to 0"),
        (("diagonal.mtx",), 1, "diagonal.mtx: row 3: the diagonal is -2; only positive definite"),
        (("upper.mtx", "--lower"), 1, "upper.mtx: --lower: the matrix has an entry (1, 2) above"),
        (("text.mtx",), 1, "text.mtx: line 1: no Matrix Market file"),
    ],
)
def test_bad_words_are_one_line(
    flowos: Flowos, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "text.mtx").write_text("hello")
    (tmp_path / "text.npy").write_text("hello")
    np.save(tmp_path / "short.npy", np.ones(3))
    np.save(tmp_path / "two.npy", np.ones((4, 2)))
    np.save(tmp_path / "words.npy", np.array(list("abcd")))
    np.save(tmp_path / "nan.npy", [1.0, np.nan, 1.0, 1.0])
    np.save(tmp_path / "large.npy", np.full(4, np.longdouble("1e4000")))
    np.save(tmp_path / "objects.npy", np.array([None, {}]), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "two.npy").read_bytes()[:-9])
    scipy_io.mmwrite(tmp_path / "diagonal.mtx", sparse.diags_array([1.0, 3, -2]))
    scipy_io.mmwrite(tmp_path / "upper.mtx", sparse.triu(laplacian(2, 2)), symmetry="general")
    refused = flowos("solve", *words, code=code).stderr
    assert refused.startswith("flowos solve: ")
    assert said in refused
    assert refused.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--out", "x.txt"),
        ("--plot", "r.png"),
        ("--plot", "no/r.svg"),
        ("--threads", "0"),
        ("--threads", "99999"),
        ("--block", "5000"),
        ("--colours", "1025"),
        ("--lower", "--symmetrize"),
        ("--rtol", "-1"),
        ("--relax", "1.5"),
    ],
)
def test_where_nothing_could_be_written_nothing_is_computed(
    flowos: Flowos, words: tuple[str, ...]
) -> None:
    assert "error: argument" in flowos("solve", "poisson:4", *words, code=2).stderr


def test_a_terminal_shows_the_residual_as_it_falls_and_ctrl_c_ends_it(
    terminal: Callable[..., Any],
) -> None:
    at = terminal()
    at.type("$FLOWOS solve poisson:32x32x32\n")
    assert "solving [" in at.read_until("iteration 1 ")
    at.read_until("poisson:32x32x32: converged: ")
    at.read_until("$> ")
    at.type("$FLOWOS solve poisson:96x96x96 --coarse none --rtol 1e-13; echo code=$?=\n")
    at.read_until("iteration 1 ")
    at.type("\x03")
    assert "flowos solve: interrupted" in at.read_until("code=130=")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 64 kB."""
    at = tmp_path / "small"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(at)], check=True)
    yield at
    subprocess.run(["umount", str(at)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
@pytest.mark.parametrize("words", [("--out", "x.npy"), ("--plot", "r.svg"), ("--plot", "r.html")])
def test_a_full_disk_is_told_and_what_was_there_stays(
    flowos: Flowos, small_disk: Path, words: tuple[str, str]
) -> None:
    kept = small_disk / words[1]
    kept.write_bytes(b"kept")
    (small_disk / "full").write_bytes(bytes(60 << 10))
    done = flowos("solve", "poisson:30x30x30", words[0], str(kept), "--json", code=1)
    assert done.stderr == (
        f"flowos solve: {kept}: No space left on device; nothing was kept there\n"
    )
    assert json.loads(done.stdout)["converged"]
    assert kept.read_bytes() == b"kept"
    assert sorted(path.name for path in small_disk.iterdir()) == sorted(["full", words[1]])


def test_a_device_is_written_to_and_stays_one(flowos: Flowos, tmp_path: Path) -> None:
    for name, device, code in (("a.npy", "/dev/null", 0), ("b.npy", "/dev/full", 1)):
        (tmp_path / name).symlink_to(device)
        done = flowos("solve", "poisson:9", "--out", name, code=code)
        assert ("No space left on device" in done.stderr) == bool(code)
        assert Path(device).is_char_device()


def test_a_link_is_followed_to_what_it_names(flowos: Flowos, tmp_path: Path) -> None:
    (tmp_path / "x.npy").symlink_to("other.npy")
    flowos("solve", "poisson:9", "--out", "x.npy")
    assert (tmp_path / "x.npy").is_symlink()
    assert np.load(tmp_path / "other.npy").shape == (9,)


def test_too_little_memory_is_one_line(variables: dict[str, str]) -> None:
    """Under a limit of a batch system, as Grid Engine's h_vmem, or on a machine with so little."""
    command = "ulimit -v 2000000; exec python -m flowos solve poisson:300x300x300"
    shell = ["bash", "-c", command.replace("python", sys.executable)]
    done = subprocess.run(shell, capture_output=True, text=True, env=variables, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "it takes more memory than there is" in done.stderr or "machine has" in done.stderr


def test_what_nothing_solves_is_told_with_both_residuals(flowos: Flowos, tmp_path: Path) -> None:
    ring = sparse.csr_array(np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]]))
    scipy_io.mmwrite(tmp_path / "ring.mtx", ring, symmetry="symmetric")
    np.save(tmp_path / "b.npy", [3.0, 0.0, 0.0])
    told = flowos("solve", "ring.mtx", "--nullspace", "constant", "--rhs", "b.npy", code=1)
    assert "not converged: nothing solves it, as b does not add up to 0" in told.stdout
    assert "5.77e-01 of b as it was given" in told.stdout
