"""Checks that the MPI that starts the ranks on the node fits the MPI in their image.

Open MPI: mpirun and library speak PMIx plus extensions of their own, so both must be of the same
minor series. MPICH family (MPICH, MVAPICH, Intel MPI): Hydra speaks PMI-1 and PMI-2 to any of
them, whatever the version; a library that was built for another process manager does not connect.
"""

import re
from collections.abc import Iterable

from flowos._dataclasses import dataclass
from flowos.drivers._base import MpiFamily, Reason
from flowos.drivers._tables import launcher_named

ASKS_INSIDE = (("ompi_info", "--version"), ("mpichversion",), ("mpiname", "-a"))
"""Command lines by which an installed MPI prints its version."""

_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "mvapich": "MVAPICH", "intel": "Intel MPI"}
_PACKAGES = {"openmpi": "openmpi-bin", "mpich": "mpich"}
_SAYS: tuple[tuple[MpiFamily, str], ...] = (
    ("openmpi", r"\((?:Open ?MPI|OpenRTE)\)|Open MPI v"),
    ("mpich", r"HYDRA|MPICH|MVAPICH|Intel\(R\) MPI"),
)
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_BUILT_FOR = re.compile(r"--with-(?:pmi=([\w/]+)|(pmix)\b)")
_HYDRA_SPEAKS = ("", "simple", "pmi1", "pmi2", "pmi2/simple")
_OPEN_MPI_LIBRARY = re.compile(r"libmpi\.so\.40\.(\d)0\.\d+")
_OPEN_MPI_SERIES = {"0": "3.0", "1": "3.1", "2": "4.0", "3": "4.1", "4": "5.0"}
_MPICH_LIBRARY = re.compile(r"lib(?:mpich|mpi)\.so\.12(?:\.\d+)*")

_LINKED: tuple[tuple[MpiFamily, str], ...] = (
    ("openmpi", r"libmpi(?:_\w+)?\.so\.[2-9]\d"),
    ("mpich", r"libmpi(?:ch\w*|cxx|fort|_\w+)?\.so\.12"),
)


@dataclass(frozen=True, slots=True)
class MpiSaid:
    """Family and version of an MPI. manager: its process manager, if it prints that."""

    family: MpiFamily
    version: str = ""
    manager: str = ""

    def __str__(self) -> str:
        return f"{_NAMES[self.family]} {self.version}".strip()

    @property
    def series(self) -> str:
        return ".".join(self.version.split(".")[:2])


def family_of(launcher: str) -> MpiFamily | None:
    """Of a launcher by its name; see `Launcher`. Raises LaunchFailed if there is none."""
    return launcher_named(launcher).family


def mpi_said(text: str) -> MpiSaid | None:
    """Parse the output of mpirun, ompi_info, mpichversion or MPI_Get_library_version."""
    for family, pattern in _SAYS:
        if re.search(pattern, text):
            number, built = _NUMBER.search(text), _BUILT_FOR.search(text)
            manager = next(filter(None, built.groups()), "") if built else ""
            return MpiSaid(family, number[0] if number else "", manager)
    return None


def mpis_in_files(names: Iterable[str]) -> tuple[MpiSaid, ...]:
    """MPIs found by the names of library files, for images without an MPI program."""
    found = []
    for name in sorted(names):
        if match := _OPEN_MPI_LIBRARY.fullmatch(name):
            found.append(MpiSaid("openmpi", _OPEN_MPI_SERIES.get(match[1], "")))
        elif _MPICH_LIBRARY.fullmatch(name):
            found.append(MpiSaid("mpich"))
    return tuple(dict.fromkeys(found))


def wrong_mpirun(launcher: str, mpirun: str, says: str) -> Reason | None:
    """Why this program cannot start ranks for the launcher, according to its version output."""
    outside, requested = mpi_said(says), family_of(launcher)
    if outside is None or outside.family == requested or requested is None:
        return None
    name = _NAMES[launcher]
    return Reason(
        code="other-mpi",
        text=f"'{mpirun}' is of {outside}, not of {name}",
        remedy=f"name the mpirun of {name} (--mpirun PATH), "
        f"or ask for {_NAMES[outside.family]} (--mpi {outside.family})",
    )


def other_mpi(launcher: str, program: str, libraries: Iterable[str]) -> Reason | None:
    """Why the launcher cannot start ranks of a program that is linked with these libraries."""
    requested = family_of(launcher)
    found = {f: lib for lib in libraries for f, what in _LINKED if re.fullmatch(what, lib)}
    if requested is None or not found or requested in found:
        return None
    family, library = next(iter(found.items()))
    return Reason(
        code="other-mpi",
        text=f"'{program}' was built with {_NAMES[family]} ({library}), and is to be started as a "
        f"program of {_NAMES[launcher]}: its ranks would not find each other",
        remedy=f'ask for {_NAMES[family]} (mpi="{family}"), or build it with {_NAMES[launcher]}',
    )


def incompatibility(
    requested: MpiFamily, outside: MpiSaid | None, inside: Iterable[MpiSaid]
) -> Reason | None:
    """Why ranks started by `outside` would not connect in the image; None if they will."""
    inside = tuple(inside)
    of_family = [mpi for mpi in inside if mpi.family == requested]
    name, version = _NAMES[requested], outside.series if outside else ""
    has = ", ".join(map(str, inside))
    needed = f"{name} {version}".strip()
    install = f"have {needed} in the image (Debian: apt install {_PACKAGES[requested]})"
    if not inside:
        return Reason(
            code="mpi-missing",
            text=f"it has no MPI, and the node starts ranks with {outside or name}",
            remedy=f"{install}; if it lies apart, name its bin folder in PATH",
        )
    if not of_family:
        return Reason(
            code="mpi-family",
            text=f"it has {has}, but the node starts ranks with {outside or name}: "
            "each would be a world of its own",
            remedy=f"{install}, or start with the {_NAMES[inside[0].family]} of the node",
        )
    if requested == "mpich":
        return _manager_incompatibility(of_family)
    if version and all(mpi.series not in ("", version) for mpi in of_family):
        return Reason(
            code="mpi-version",
            text=f"it has {has}, but the node starts ranks with {outside}",
            remedy=install,
        )
    return None


def _manager_incompatibility(inside: list[MpiSaid]) -> Reason | None:
    if any(mpi.manager in _HYDRA_SPEAKS for mpi in inside):
        return None
    return Reason(
        code="mpi-manager",
        text=f"its {inside[0]} was built for {inside[0].manager}, and mpiexec does not speak that",
        remedy="build it with --with-pmi=simple, or start it with that manager",
    )
