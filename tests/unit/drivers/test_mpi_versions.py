"""Versions as real programs print them, and which fit together."""

import pytest

from flowos.drivers import (
    LAUNCHERS,
    MpiSaid,
    family_of,
    incompatibility,
    mpi_said,
    mpis_in_files,
    other_mpi,
    wrong_mpirun,
)
from flowos.model import MPIS

OPEN_MPI = MpiSaid("openmpi", "4.1.4")
MPICH = MpiSaid("mpich", "4.0.2")

MPICHVERSION = "MPICH Version:    \t{}\nMPICH Device:    \tch4:ucx\nMPICH configure: \t{}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/", OPEN_MPI),
        ("mpirun (Open MPI) 5.0.9\n", MpiSaid("openmpi", "5.0.9")),
        ("Open MPI v4.1.4\n\nhttp://www.open-mpi.org/community/help/", OPEN_MPI),
        ("Open MPI v4.0.3, package: Debian OpenMPI, ident: 4.0.3", MpiSaid("openmpi", "4.0.3")),
        ("HYDRA build details:\n    Version:                  4.0.2\n    CC: gcc", MPICH),
        (MPICHVERSION.format("4.0.2", "--with-slurm=/usr --with-pm=hydra"), MPICH),
        (
            MPICHVERSION.format("4.1.2", "--prefix=/opt --with-pmi=pmix --with-pmix=/usr"),
            MpiSaid("mpich", "4.1.2", "pmix"),
        ),
        (
            MPICHVERSION.format("4.2.0", "'--with-pmix=/usr'"),
            MpiSaid("mpich", "4.2.0", "pmix"),
        ),
        (
            MPICHVERSION.format("3.4.2", "--with-pmi=pmi2/simple"),
            MpiSaid("mpich", "3.4.2", "pmi2/simple"),
        ),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005",
            MpiSaid("mpich", "2021.11"),
        ),
        ("MVAPICH2 2.3.7 Wed March 02 22:00:00 EST 2022 ch3:mrail", MpiSaid("mpich", "2.3.7")),
        ("MPICH Version:", MpiSaid("mpich")),
        ("slurm 22.05.8", None),
        ("", None),
    ],
)
def test_an_mpi_is_told_from_what_it_says(text: str, said: MpiSaid | None) -> None:
    assert mpi_said(text) == said


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["libmpi.so.40.30.4", "libmpi.so.40", "libmpi_mpifh.so.40.30.0"], ["Open MPI 4.1"]),
        (["libmpi.so.40.20.1"], ["Open MPI 4.0"]),
        (["libmpi.so.40.40.7"], ["Open MPI 5.0"]),
        (["libmpi.so.40.90.1"], ["Open MPI"]),
        (["libmpich.so.12.2.2", "libmpichcxx.so.12.2.2", "libmpi.so.12"], ["MPICH"]),
        (["libmpich.so.12", "libmpi.so.40.30.4"], ["Open MPI 4.1", "MPICH"]),
        (["libmpi.so.1", "libmpidevice.so"], []),
    ],
)
def test_without_a_program_the_library_files_tell(names: list[str], found: list[str]) -> None:
    assert sorted(map(str, mpis_in_files(names))) == sorted(found)


def test_every_launcher_of_an_mpi_is_of_a_family() -> None:
    assert {name: family_of(name) for name in LAUNCHERS} == {
        "direct": None,
        "openmpi": "openmpi",
        "mpich": "mpich",
        "mvapich": "mpich",
        "intel": "mpich",
        "other": None,
        "srun": None,
        "srun-openmpi": "openmpi",
        "srun-mpich": "mpich",
    }


@pytest.mark.parametrize("launcher", [mpi for mpi in MPIS if family_of(mpi)])
def test_every_launcher_of_a_family_is_called_by_name_where_it_is_the_wrong_one(
    launcher: str,
) -> None:
    libraries = ["libmpi.so.40", "libmpi.so.12"]
    told = [other_mpi(launcher, "x", [library]) for library in libraries]
    assert told.count(None) == 1


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        (OPEN_MPI, OPEN_MPI),
        (OPEN_MPI, MpiSaid("openmpi", "4.1.6")),
        (OPEN_MPI, MpiSaid("openmpi")),
        (MPICH, MpiSaid("mpich", "3.4.2", "pmi2/simple")),
        (MPICH, MpiSaid("mpich")),
    ],
)
def test_the_same_series_or_any_of_the_mpich_family_fits(outside: MpiSaid, inside: MpiSaid) -> None:
    other = MPICH if outside.family == "openmpi" else OPEN_MPI
    assert incompatibility(outside.family, outside, [inside]) is None
    assert incompatibility(outside.family, outside, [other, inside]) is None
    assert incompatibility(outside.family, None, [inside]) is None


def test_of_several_open_mpis_in_an_image_one_of_the_series_is_enough() -> None:
    several = [MpiSaid("openmpi", "5.0.9"), OPEN_MPI]
    for inside in (several, several[::-1]):
        assert incompatibility("openmpi", OPEN_MPI, inside) is None


@pytest.mark.parametrize(
    ("outside", "inside", "code", "text"),
    [
        (
            OPEN_MPI,
            [],
            "mpi-missing",
            "it has no MPI, and the node starts ranks with Open MPI 4.1.4",
        ),
        (
            OPEN_MPI,
            [MPICH],
            "mpi-family",
            "it has MPICH 4.0.2, but the node starts ranks with Open MPI 4.1.4",
        ),
        (MPICH, [OPEN_MPI], "mpi-family", "it has Open MPI 4.1.4, but the node starts ranks with"),
        (
            OPEN_MPI,
            [MpiSaid("openmpi", "5.0.9")],
            "mpi-version",
            "it has Open MPI 5.0.9, but the node starts ranks with Open MPI 4.1.4",
        ),
        (
            OPEN_MPI,
            [MpiSaid("openmpi", "4.0.3"), MpiSaid("openmpi", "5.0.9")],
            "mpi-version",
            "it has Open MPI 4.0.3, Open MPI 5.0.9, but the node starts ranks with Open MPI 4.1.4",
        ),
        (
            MPICH,
            [MpiSaid("mpich", "4.1.2", "pmix")],
            "mpi-manager",
            "its MPICH 4.1.2 was built for pmix",
        ),
    ],
)
def test_what_would_not_form_one_world_is_refused_with_the_reason(
    outside: MpiSaid, inside: list[MpiSaid], code: str, text: str
) -> None:
    reason = incompatibility(outside.family, outside, inside)
    assert reason is not None
    assert reason.code == code
    assert text in reason.text
    assert reason.remedy


def test_without_a_version_the_family_of_the_node_is_named() -> None:
    reason = incompatibility("mpich", None, [])
    assert reason is not None
    assert reason.text == "it has no MPI, and the node starts ranks with MPICH"


def test_a_starter_of_another_mpi_than_asked_for_is_refused_by_what_it_says() -> None:
    says = "mpirun (Open MPI) 4.1.4"
    assert wrong_mpirun("openmpi", "mpirun", says) is None
    assert wrong_mpirun("openmpi", "my-wrapper", "") is None
    reason = wrong_mpirun("mpich", "/usr/bin/mpirun", says)
    assert reason is not None
    assert reason.text == "'/usr/bin/mpirun' is of Open MPI 4.1.4, not of MPICH"
    assert reason.remedy == (
        "name the mpirun of MPICH (--mpirun PATH), or ask for Open MPI (--mpi openmpi)"
    )
    assert wrong_mpirun("intel", "mpiexec", "HYDRA build details:\n Version: 4.0.2") is None
    assert wrong_mpirun("other", "mpiexec", says) is None
    intel = wrong_mpirun("intel", "mpiexec", says)
    assert intel is not None
    assert intel.text == "'mpiexec' is of Open MPI 4.1.4, not of Intel MPI"


@pytest.mark.parametrize(
    ("launcher", "libraries", "built_with"),
    [
        ("openmpi", ("libm.so.6", "libmpich.so.12", "libc.so.6"), "MPICH (libmpich.so.12)"),
        ("openmpi", ("libmpifort.so.12", "libmpi.so.12"), "MPICH (libmpi.so.12)"),
        ("mpich", ("libmpi_mpifh.so.40", "libmpi.so.40"), "Open MPI (libmpi.so.40)"),
        ("intel", ("libmpi.so.40",), "Open MPI (libmpi.so.40)"),
    ],
)
def test_a_program_that_is_linked_with_another_mpi_is_refused_with_what_mends_it(
    launcher: str, libraries: tuple[str, ...], built_with: str
) -> None:
    reason = other_mpi(launcher, "./solve", libraries)
    assert reason is not None
    assert reason.text.startswith(f"'./solve' was built with {built_with}, and is to be started as")
    assert reason.remedy.startswith(f"ask for {built_with.partition(' (')[0]} (mpi=")


@pytest.mark.parametrize(
    ("launcher", "libraries"),
    [
        ("openmpi", ("libc.so.6",)),
        ("openmpi", ("libmpi.so.40", "libmpich.so.12")),
        ("mpich", ("libmpi.so.12",)),
        ("mvapich", ("libmpi.so.12",)),
        ("other", ("libmpi.so.12",)),
    ],
)
def test_a_program_that_does_not_show_another_mpi_is_started(
    launcher: str, libraries: tuple[str, ...]
) -> None:
    assert other_mpi(launcher, "./solve", libraries) is None
