"""Runs clang-tidy on all our C and C++, with the flags that each kind of file is compiled with.

`python tools/tidy.py`. Files that passed are skipped: a stamp in the cache folder is the hash of
all input of clang-tidy: checks, flags, the file and the headers of ours that it includes, and the
versions of the tool, the compiler and the libraries.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import clang_tidy
import nanobind

# Not the wheel's script: a Python around each of these programs.
CLANG_TIDY = str(clang_tidy.get_executable("clang-tidy"))
STAMPS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flowos/tidy"
NATIVE = ("-Isrc/flowos/feeder/native", "-Isrc/flowos/solver/native")
# One shared header brings the standard ones to the measuring programs, and what their
# words are was settled where we start them.
OF_PROGRAMS = "-misc-include-cleaner,-bugprone-unchecked-string-to-number-conversion"


@dataclass(frozen=True)
class Kind:
    """Files that are compiled alike, as git names them."""

    files: tuple[str, ...]
    flags: tuple[str, ...]
    checks: str = ""


def kinds() -> Iterator[Kind]:
    python = sysconfig.get_path("include")
    mpi = mpi_headers()
    yield Kind(
        ("bind/*.cpp",),
        ("-std=c++20", f"-isystem{nanobind.include_dir()}", f"-isystem{python}", *NATIVE),
    )
    yield Kind(
        ("src/*.cpp", "tests/native/*.cpp", ":!*/mpi/*.cpp", ":!*/bodies/hdl/*"),
        ("-std=c++20", "-DFLOWOS_JPEG", *NATIVE),
    )
    yield Kind(("src/*/mpi/*.cpp",), ("-std=c++20", "-DOMPI_SKIP_MPICXX", *mpi, *NATIVE))
    yield Kind(
        ("src/*.c",),
        ("-std=gnu11", "-fopenmp", *mpi, "-mavx512f", "-mfma", "-Isrc/flowos/probes/programs"),
        OF_PROGRAMS,
    )


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def tracked(*patterns: str) -> list[Path]:
    return [Path(line) for line in said("git", "ls-files", *patterns).splitlines()]


def mpi_headers() -> list[str]:
    words = said("mpicc", "-show").split() if shutil.which("mpicc") else []
    return [word.replace("-I", "-isystem", 1) for word in words if word.startswith("-I")]


@cache
def headers() -> dict[str, list[Path]]:
    """Our headers by their names: one name counts for all files that have it."""
    found: dict[str, list[Path]] = {}
    for path in tracked("*.h"):
        found.setdefault(path.name, []).append(path)
    return found


def read_with(path: Path, seen: set[Path]) -> set[Path]:
    """The file, and what of ours it includes."""
    seen.add(path)
    for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)', path.read_text(), re.MULTILINE):
        for header in headers().get(Path(name).name, ()):
            if header not in seen:
                read_with(header, seen)
    return seen


@cache
def versions() -> str:
    programs = said(CLANG_TIDY, "--version") + said("gcc", "--version")
    return f"{programs}{nanobind.__version__}{sys.version}"


def stamp(kind: Kind, file: Path) -> Path:
    """There once this has passed."""
    parts = [versions(), Path(".clang-tidy").read_text(), kind.checks, *kind.flags]
    for path in sorted(read_with(file, set())):
        parts += [str(path), path.read_text()]
    return STAMPS / hashlib.sha256("\0".join(parts).encode()).hexdigest()


def passes(kind: Kind, file: Path) -> bool:
    passed = stamp(kind, file)
    if passed.exists():
        return True
    words = (CLANG_TIDY, "--quiet", f"--checks={kind.checks}", str(file), "--", *kind.flags)
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 0:
        passed.touch()
    else:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def all_pass(kinds: Iterable[Kind]) -> bool:
    STAMPS.mkdir(parents=True, exist_ok=True)
    work = [(kind, file) for kind in kinds for file in tracked(*kind.files)]
    with ThreadPoolExecutor(2) as pool:
        return all(list(pool.map(lambda each: passes(*each), work)))


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[1])
    sys.exit(not all_pass(kinds()))
