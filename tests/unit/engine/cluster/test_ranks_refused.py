"""Launchers whose ranks a cluster does not start are refused in one line, before anything runs."""

from collections.abc import Callable, MutableMapping
from typing import cast

import pytest

from flowos.drivers import LAUNCHERS, Launcher, family_of
from flowos.drivers.launchers.direct import Direct
from flowos.engine.sge._sge_node import SgeNode, _mpirun_of
from flowos.engine.slurm._slurm_node import SlurmNode
from flowos.model import MPIS, Launch, LaunchFailed

BARE = Launch(argv=("true",)).env
GRID_KNOWS = "it knows openmpi, mpich, mvapich, intel"


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch) -> str:
    """As that of an MPI which is added to the drivers, and not to what clusters know."""
    table = cast("MutableMapping[str, Callable[..., Launcher]]", LAUNCHERS)
    monkeypatch.setitem(table, "new", lambda **_: Direct(name="new", family="mpich"))
    return "new"


def a_node_of_grid_engine() -> SgeNode:
    """What is asked of it here it knows without its job."""
    return object.__new__(SgeNode)


def a_node_of_slurm() -> SlurmNode:
    """Its srun has been asked what it speaks."""
    node = object.__new__(SlurmNode)
    node._types = ("none", "pmi2", "pmix")
    return node


def test_a_cluster_starts_ranks_of_each_mpi_that_is_of_a_family() -> None:
    of_a_family = [mpi for mpi in MPIS if family_of(mpi)]
    assert of_a_family == ["openmpi", "mpich", "mvapich", "intel"]
    for mpi in of_a_family:
        a_node_of_grid_engine().check_mpi(BARE, mpi)
        a_node_of_slurm().check_mpi(BARE, mpi)


@pytest.mark.parametrize("launcher", ["other", "srun-mpich", "new"])
def test_grid_engine_starts_no_ranks_by_what_does_not_know_its_nodes(
    new: str, launcher: str
) -> None:
    assert new in LAUNCHERS
    with pytest.raises(LaunchFailed) as told:
        a_node_of_grid_engine().check_mpi(BARE, launcher)
    assert str(told.value) == f"Grid Engine starts no ranks of {launcher!r}; {GRID_KNOWS}"


def test_ranks_that_were_not_said_to_be_of_an_mpi_are_refused_too() -> None:
    a_node_of_grid_engine().check_mpi(BARE, "direct")  # one process is no rank
    with pytest.raises(LaunchFailed, match=f"starts no ranks of 'direct'; {GRID_KNOWS}"):
        _mpirun_of("direct")


@pytest.mark.parametrize("launcher", ["other", "srun-mpich", "new"])
def test_srun_starts_no_ranks_by_what_is_of_no_family(new: str, launcher: str) -> None:
    assert new in LAUNCHERS
    with pytest.raises(LaunchFailed) as told:
        a_node_of_slurm().check_mpi(BARE, launcher)
    assert str(told.value) == f"srun starts no ranks of {launcher!r}; it knows openmpi and mpich"
