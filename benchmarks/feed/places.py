"""The folder for data that is created once, and the compiler of its C++ programs."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wconversion")


class NotHere(Exception):  # noqa: N818 - reads as what happened
    """The benchmark needs something that is not on this machine; says what, and how to get it."""


def default_folder() -> Path:
    """Outside of the repository: data sets, peers and settings are large and outlive a checkout."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "flowos-benchmarks" / "feed"


def program(name: str, folder: Path) -> Path:
    """Our C++ program of that name, compiled if its source changed. Raises NotHere on failure."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NotHere("no C++ compiler: apt install g++")
    flags = _flags(name)
    sources = [HERE / f"{name}.cpp", *sorted(HERE.glob("*.h"))]
    digest = hashlib.sha256(" ".join([compiler, *flags]).encode())
    for source in sources:
        digest.update(source.read_bytes())
    made = folder / "programs" / f"{name}-{digest.hexdigest()[:16]}"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        trial = made.with_suffix(f".{os.getpid()}")
        words = [compiler, "-std=c++20", "-O2", *WARNINGS, str(sources[0]), *flags, "-pthread"]
        done = subprocess.run([*words, "-o", str(trial)], capture_output=True, text=True)
        if done.returncode != 0:
            raise NotHere(f"{name}.cpp does not compile: {done.stderr.strip().splitlines()[0]}")
        trial.rename(made)
    return made


def _flags(name: str) -> Sequence[str]:
    """Compiler flags and libraries of a program."""
    if name == "slowfs" and shutil.which("fusermount3") is None:
        raise NotHere("no fusermount3: apt install fuse3")
    if name == "limit" and _includes("jpeglib.h"):
        return ("-DFLOWOS_JPEG", "-ljpeg")
    return ()


def _includes(header: str) -> bool:
    words = ["g++", "-E", "-include", "stdio.h", "-include", header, "-x", "c++", os.devnull]
    return subprocess.run(words, capture_output=True).returncode == 0


def say(words: str) -> None:
    """Print progress to standard error; results go to standard output."""
    print(f"feed: {words}", file=sys.stderr, flush=True)
