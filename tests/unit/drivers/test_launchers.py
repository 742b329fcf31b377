"""The command lines of the launchers, compared whole."""

from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.drivers import LAUNCHERS, family_of, launcher_named
from flowos.drivers.launchers.mpich import Hydra
from flowos.drivers.launchers.openmpi import OpenMpi
from flowos.drivers.launchers.srun import Srun, read_types, refusal_of_types, types_words
from flowos.model import Launch, LaunchFailed, Needs

INNER = ("/opt/flowos-init", "/tmp/flowos-7/abc/0", "--", "./program", "a b", "-n")


def line(name: str, *, ranks: int = 2, cores: int = 1, oversubscribe: bool = False) -> str:
    launch = Launch(argv=("./program",), ranks=ranks, needs=Needs(cores=cores))
    launcher = launcher_named(name, f"/bin/mpirun.{name}", oversubscribe=oversubscribe)
    argv = launcher.wrap(INNER, launch)
    assert argv[-len(INNER) :] == INNER
    return " ".join(argv[: -len(INNER)])


def test_direct_adds_nothing() -> None:
    assert launcher_named("direct").wrap(INNER, Launch(argv=("x",))) == INNER


def test_direct_refuses_a_gang() -> None:
    with pytest.raises(LaunchFailed, match="x: 2 ranks need an MPI launcher"):
        launcher_named("direct").wrap(INNER, Launch(argv=("x", "-a"), ranks=2))


def test_openmpi_binds_each_rank_to_its_core_and_needs_no_ssh() -> None:
    assert line("openmpi") == (
        "/bin/mpirun.openmpi --mca plm isolated -n 2 --map-by slot:PE=1 --bind-to core"
    )


GRID = {
    ("openmpi", 1, False): "--mca plm isolated -n 4 --host n1:8 --map-by ppr:4:node:PE=2 "
    "--bind-to core",
    ("openmpi", 2, False): "-n 4 --host n1:4,n2:4 --map-by ppr:2:node:PE=2 --bind-to core",
    ("openmpi", 2, True): "-n 4 --host n1:4,n2:4 --oversubscribe --bind-to none",
    ("mpich", 1, True): "-launcher fork -hosts n1:4 -n 4",
    ("mpich", 2, False): "-launcher sge -hosts n1:2,n2:2 -n 4 -bind-to core:2",
}


@pytest.mark.parametrize(("name", "nodes", "oversubscribe"), GRID)
def test_on_nodes_of_grid_engine_ranks_are_spread_evenly(
    name: str, nodes: int, oversubscribe: bool
) -> None:
    launch = Launch(argv=("x",), ranks=4, needs=Needs(cores=2))
    launcher = launcher_named(name, "/bin/mpirun", oversubscribe=oversubscribe)
    assert isinstance(launcher, OpenMpi | Hydra)
    words = replace(launcher, hosts=("n1", "n2")[:nodes]).wrap(("y",), launch)
    assert " ".join(words) == f"/bin/mpirun {GRID[name, nodes, oversubscribe]} y"


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_ranks_are_bound_to_cores_unless_it_is_said_otherwise(name: str) -> None:
    launch = Launch(argv=("x",), ranks=2)
    default = LAUNCHERS[name]().wrap(INNER, launch)
    assert default == launcher_named(name).wrap(INNER, launch)
    assert default != launcher_named(name, oversubscribe=True).wrap(INNER, launch)


def test_openmpi_gives_each_rank_the_cores_that_it_needs() -> None:
    assert line("openmpi", ranks=3, cores=4) == (
        "/bin/mpirun.openmpi --mca plm isolated -n 3 --map-by slot:PE=4 --bind-to core"
    )


def test_openmpi_oversubscribes_only_when_asked_and_binds_nothing_then() -> None:
    assert line("openmpi", oversubscribe=True) == (
        "/bin/mpirun.openmpi --mca plm isolated -n 2 --oversubscribe --bind-to none"
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mpich", "-n 2 -bind-to core:3"),
        ("mvapich", "-n 2 -bind-to core:3"),
        ("intel", "-n 2 -genv I_MPI_PIN_DOMAIN 3:compact"),
        ("other", "-n 2"),
    ],
)
def test_the_hydras_bind_in_their_own_words(name: str, options: str) -> None:
    assert line(name, cores=3) == f"/bin/mpirun.{name} {options}"
    assert line(name, oversubscribe=True) == f"/bin/mpirun.{name} -n 2"


def test_without_a_starter_the_usual_name_is_looked_for_in_path() -> None:
    first = {name: launcher_named(name).wrap(("x",), Launch(argv=("x",)))[0] for name in LAUNCHERS}
    assert first == {
        "direct": "x",
        "openmpi": "mpirun",
        "mpich": "mpiexec",
        "mvapich": "mpiexec",
        "intel": "mpiexec",
        "other": "mpiexec",
        "srun": "srun",
        "srun-openmpi": "srun",
        "srun-mpich": "srun",
    }


def test_an_unknown_launcher_is_one_line_that_names_the_known() -> None:
    with pytest.raises(LaunchFailed) as told:
        launcher_named("mpirun")
    assert str(told.value) == (
        "unknown launcher 'mpirun'; known are direct, intel, mpich, mvapich, openmpi, other, "
        "srun, srun-mpich, srun-openmpi"
    )


def test_a_launch_in_a_folder_keeps_its_path_out_of_the_launcher() -> None:
    launch = Launch(argv=("x",), ranks=2, cwd=PurePath("/no such"))
    assert "/no such" not in launcher_named("openmpi").wrap(INNER, launch)


def test_what_ranks_leave_lies_in_the_folders_given_and_openmpi_may_be_root() -> None:
    folder, memory = PurePath("/tmp/run"), PurePath("/dev/shm/run")
    kept = {name: dict(launcher_named(name).kept_in(folder, memory)) for name in LAUNCHERS}
    may = {name for name in kept["openmpi"] if "_ALLOW_RUN_AS_ROOT" in name}
    assert len(may) == 4
    assert {kept["openmpi"].pop(name) for name in may} == {"1"}
    assert kept["direct"] == {}
    assert kept["mpich"] == kept["intel"] == {"UCX_POSIX_DIR": "/dev/shm/run"}
    assert kept["openmpi"] == {
        "OMPI_MCA_orte_tmpdir_base": "/tmp/run",
        "PRTE_MCA_prte_tmpdir_base": "/tmp/run",
        "OMPI_MCA_btl_vader_backing_directory": "/dev/shm/run",
        "OMPI_MCA_btl_sm_backing_directory": "/dev/shm/run",
        "UCX_POSIX_DIR": "/dev/shm/run",
    }


def test_a_guard_is_seen_by_the_other_mpi_only_and_asks_no_name_server() -> None:
    (of_openmpi,) = launcher_named("openmpi").guards
    (of_mpich,) = launcher_named("mpich").guards
    assert of_openmpi[0].startswith("PMI_")
    assert len(of_openmpi[1].partition(":")[0]) > 63
    assert of_mpich[0].startswith("OMPI_MCA_")
    assert launcher_named("direct").guards == launcher_named("other").guards == ()


@pytest.mark.parametrize(
    ("mpi", "options", "lost"),
    [
        ("openmpi", "--mpi=pmix -n 5", "--ntasks-per-node=3"),
        ("mpich", "--mpi=pmi2 -n 5", "--ntasks-per-node=3"),
        ("", "--mpi=none -n 1", "--no-kill"),
    ],
)
def test_srun_starts_a_step_with_what_the_mpi_of_the_program_speaks(
    mpi: str, options: str, lost: str
) -> None:
    launch = Launch(argv=("x",), ranks=5 if mpi else 1, needs=Needs(cores=2))
    step = Srun(job="17", mpi=mpi, nodes=("n1", "n2"))
    assert step.wrap(("x",), launch) == (
        *f"srun --jobid=17 --overlap {options} --nodes=2 --nodelist=n1,n2".split(),
        *("--cpus-per-task=2", "--kill-on-bad-exit=1", lost, "x"),
    )


def test_a_step_of_an_old_slurm_shares_its_job_without_a_word() -> None:
    new, old = (Srun(job="17", overlaps=overlaps) for overlaps in (True, False))
    launch = Launch(argv=("x",))
    words = tuple(word for word in new.wrap(("x",), launch) if word != "--overlap")
    assert old.wrap(("x",), launch) == words != new.wrap(("x",), launch)


TYPES = {  # of Slurm 19.05, 22.05 and 26.05
    "srun: MPI types are...\nsrun: cray_shasta\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\n": (
        *("cray_shasta", "none", "pmi2", "pmix_v3"),
    ),
    "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: "
    "pmix_v4\n": ("pmix", "none", "pmi2"),
    "MPI plugin types are...\n\tnone\n": ("none",),
    "srun: error: nothing of the kind\n": (),
}


@pytest.mark.parametrize(("text", "types"), TYPES.items())
def test_srun_lists_what_it_speaks(text: str, types: tuple[str, ...]) -> None:
    assert types_words() == ("srun", "--mpi=list")
    assert read_types(text) == types


@pytest.mark.parametrize(
    ("mpi", "types", "says"),
    [
        ("openmpi", ("none", "pmix_v3"), ""),
        ("mpich", ("pmi2",), ""),
        ("", ("none",), ""),
        ("mpich", (), ""),
        (
            "openmpi",
            ("none", "pmi2"),
            "srun here has no --mpi=pmix, which ranks of Open MPI need (none, pmi2); have the site "
            "install Slurm's plugin mpi/pmix, or build the program with MPICH and its like",
        ),
        (
            "mpich",
            ("none", "cray_shasta"),
            "srun here has no --mpi=pmi2, which ranks of MPICH and its like need (none, "
            "cray_shasta); have the site install Slurm's plugin mpi/pmi2",
        ),
    ],
)
def test_an_mpi_that_srun_does_not_speak_with_is_refused_with_what_mends_it(
    mpi: str, types: tuple[str, ...], says: str
) -> None:
    assert refusal_of_types(mpi, types) == says


@pytest.mark.parametrize(("binds", "options"), [(True, ("--cpu-bind=none",)), (False, ())])
def test_srun_gives_one_rank_all_cpus_unbound(binds: bool, options: tuple[str, ...]) -> None:
    step = Srun(job="17", nodes=("n1",), shares=True, binds=binds)
    assert step.wrap(("x",), Launch(argv=("x",), needs=Needs(cores=2))) == (
        *["srun", "--jobid=17", "--overlap", "--mpi=none", "-n", "1", "--nodes=1", "--nodelist=n1"],
        *(*options, "--kill-on-bad-exit=1", "--no-kill", "x"),
    )


def test_srun_shares_cores_where_it_oversubscribes() -> None:
    assert line("srun-mpich", oversubscribe=True) == (
        "/bin/mpirun.srun-mpich --overlap --mpi=pmi2 -n 2 --overcommit "
        "--kill-on-bad-exit=1 --no-kill"
    )


def test_srun_refuses_ranks_that_would_be_worlds_of_their_own() -> None:
    for mpi in ("intel", "mvapich", "other", "pmix"):
        with pytest.raises(LaunchFailed, match=f"of openmpi or mpich, not of '{mpi}'"):
            Srun(mpi=mpi)
    with pytest.raises(LaunchFailed, match="x: 2 ranks need to know of which MPI"):
        launcher_named("srun").wrap(INNER, Launch(argv=("x",), ranks=2))
    line = Srun(uses_mpi=False).wrap(INNER, Launch(argv=("x",), ranks=2))
    assert line[2:5] == ("--mpi=none", "-n", "2")


def test_srun_guards_its_ranks_as_the_mpirun_of_their_mpi_does() -> None:
    for mpi in ("openmpi", "mpich"):
        assert launcher_named(f"srun-{mpi}").guards == launcher_named(mpi).guards
        assert family_of(f"srun-{mpi}") == mpi
    assert (launcher_named("srun").guards, family_of("srun")) == ((), None)


def test_ranks_in_an_image_ask_for_no_file_that_only_the_node_has() -> None:
    names = Srun().env_forwarded
    assert Srun(forwards_gpus=False).env_forwarded == tuple(n for n in names if n[:4] != "CUDA")
    inside = Srun(mpi="openmpi", in_image=True).guards
    assert inside == (*Srun(mpi="openmpi").guards, ("PMIX_MCA_gds", "hash"))
    assert Srun(mpi="mpich", in_image=True).guards == Srun(mpi="mpich").guards


def test_srun_sees_which_cluster_it_is_of_but_no_job_around_us() -> None:
    srun = launcher_named("srun", job="17")
    assert "SLURM_CONF" in srun.env_kept
    assert "SLURM_JOB_ID".startswith(srun.env_blocked)
    assert srun.kept_in(PurePath("/tmp/run"), PurePath("/dev/shm/run")) == ()
    assert launcher_named("openmpi").env_kept == launcher_named("direct").env_kept == ()
