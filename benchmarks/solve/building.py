"""Files that are created once, outside of the repository: programs, a venv, AMGCL's headers."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ("scipy", "ilupp", "pyamg")
DEBIAN = {
    "petsc": "libpetsc-real-dev",
    "hypre": "libhypre-dev",
    "eigen": "libeigen3-dev",
    "amgcl": "libamgcl-dev",
}
AMGCL_SUITE = "bookworm contrib"
"""The suite with Debian's libamgcl-dev, which is only unpacked; apt's own lists do not change."""
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class NotHere(Exception):  # noqa: N818 - reads as what happened
    """The benchmark needs something that is not on this machine; says what, and how to get it."""


def default_folder() -> Path:
    """Outside of the repository: matrices and programs are large and outlive a checkout."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "flowos-benchmarks" / "solve"


def say(words: str) -> None:
    """Print progress to standard error; results go to standard output."""
    print(f"solve: {words}", file=sys.stderr, flush=True)


def program(name: str, folder: Path) -> Path:
    """The contestant's C++ program, compiled if its source changed. Raises NotHere on failure."""
    compiler = _compiler(mpi=name in ("petsc", "hypre"))
    return compiled(HERE / f"solve_{name}.cpp", (compiler, *_flags(name, folder)), folder)


def compiled(source: Path, words: Sequence[str], folder: Path, processor: str = "native") -> Path:
    """Compile a program, again if a source, or a header next to one, has changed. words: compiler,
    flags, sources, then libraries. Raises NotHere, with the reason, on failure."""
    digest = hashlib.sha256(" ".join([*words, processor, platform.node()]).encode())
    sources = {source, *(Path(word) for word in words if word.endswith(".cpp"))}
    headers = {header for each in sources for header in each.parent.glob("*.h")}
    for read in sorted(sources | headers):
        digest.update(read.read_bytes())
    made = folder / "programs" / f"{source.stem}-{digest.hexdigest()[:16]}"
    if made.exists():
        return made
    say(f"compiling {source.name} ...")
    made.parent.mkdir(parents=True, exist_ok=True)
    trial = made.with_suffix(f".{os.getpid()}")
    compiler, *flags = words
    command = [compiler, "-O3", f"-march={processor}", str(source), *flags, "-o", str(trial)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        first = (errors or done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise NotHere(f"{source.name} does not compile: {first}")
    trial.rename(made)
    return made


def _compiler(mpi: bool) -> str:
    """The compiler; Debian's PETSc and hypre need Open MPI's, whichever MPI is the default."""
    names = ("mpicxx.openmpi", "mpicxx") if mpi else ("g++", "clang++")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise NotHere(f"no {names[0]}: apt install {'libopenmpi-dev' if mpi else 'g++'}")
    return found


def mpirun(ranks: int) -> Sequence[str]:
    """The command line that starts so many ranks, each on cores of its own."""
    found = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if found is None:
        raise NotHere("no mpirun: apt install openmpi-bin")
    return (found, "-n", str(ranks), "--use-hwthread-cpus", "--bind-to", "hwthread")


MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _flags(name: str, folder: Path) -> Sequence[str]:
    standard = ("-std=c++20", "-DNDEBUG")
    match name:
        case "petsc":
            return (*standard, *_pkg_config(name, "PETSc"))
        case "hypre":
            if not Path("/usr/include/hypre/HYPRE.h").exists():
                raise NotHere(_install_line(name))
            return (*standard, "-I/usr/include/hypre", "-lHYPRE")
        case "eigen":
            return (*standard, "-fopenmp", *_pkg_config(name, "eigen3"))
        case "amgcl":
            return (*standard, "-fopenmp", "-DAMGCL_NO_BOOST", f"-I{_amgcl(folder)}")
    raise ValueError(name)


def _pkg_config(name: str, module: str) -> Sequence[str]:
    words = ["pkg-config", "--cflags", "--libs", module]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise NotHere(_install_line(name)) from None
    return done.stdout.split()


def _install_line(name: str) -> str:
    return f"apt install {DEBIAN[name]} pkg-config"


def _amgcl(folder: Path) -> Path:
    """The folder that has amgcl/: the system's, or unpacked from Debian's package."""
    system = Path("/usr/include")
    if (system / "amgcl").exists():
        return system
    unpacked = folder / "amgcl"
    if not unpacked.exists():
        say(f"unpacking libamgcl-dev of Debian's {AMGCL_SUITE} ...")
        trial = folder / f"amgcl.{os.getpid()}"
        try:
            _fetch_amgcl(trial)
            (trial / "unpacked").rename(unpacked)
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", None) or str(error)
            raise NotHere(
                "no AMGCL: apt install libamgcl-dev, of Debian's contrib; unpacking it failed: "
                + why.strip().splitlines()[-1]
            ) from None
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    return unpacked / "usr" / "include"


def _fetch_amgcl(folder: Path) -> None:
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    source = f"deb [signed-by={KEYS}] http://deb.debian.org/debian {AMGCL_SUITE}\n"
    (folder / "list").write_text(source)
    options = {
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "list",
        "Dir::Etc::sourceparts": "-",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": os.environ.get("USER", "root"),
    }
    words = ["apt-get", "-q=2", *(f"-o{name}={value}" for name, value in options.items())]
    for action in (["update"], ["download", "libamgcl-dev"]):
        subprocess.run([*words, *action], cwd=folder, capture_output=True, text=True, check=True)
    (archive,) = folder.glob("libamgcl-dev_*.deb")
    line = ["dpkg-deb", "-x", str(archive), str(folder / "unpacked")]
    subprocess.run(line, capture_output=True, text=True, check=True)


def python_of_peers(folder: Path) -> Path:
    """The Python with the peers' packages, installed if needed. Raises NotHere on failure."""
    digest = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:8]
    venv = folder / f"venv-{digest}"
    python = venv / "bin" / "python"
    if not (venv / "installed").exists():
        say(f"installing {', '.join(PACKAGES)} into {venv} ...")
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        line = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(venv, ignore_errors=True)
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            raise NotHere(f"pip did not install {', '.join(PACKAGES)}: {lines[-1][:300]}")
        (venv / "installed").touch()
    return python


def on_cores(cores: int) -> Mapping[str, str]:
    """Variables for all contestants: threads bound to cores, and BLAS with one thread."""
    return {
        "OMP_NUM_THREADS": str(cores),
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": "cores",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **MPI_AS_ROOT,
    }
