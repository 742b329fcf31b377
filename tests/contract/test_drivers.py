"""What every driver promises, whichever it is."""

import pytest

from flowos.drivers import LAUNCHERS, RUNTIMES, launcher_named, runtime_named
from flowos.model import Launch, Needs

INNER = (
    "/opt/flowos-init",
    "/tmp/flowos-7/abc/0",
    "--",
    "prog",
    "",
    "a b",
    "--np",
    "$x",
    "{cores}",
)
LAUNCH = Launch(argv=INNER[3:])
GANGS = [name for name in LAUNCHERS if name not in ("direct", "srun")]


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_is_loaded_under_its_own_name(name: str) -> None:
    assert launcher_named(name).name == name


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_is_loaded_under_its_own_name(name: str) -> None:
    assert runtime_named(name).name == name


@pytest.mark.parametrize("name", LAUNCHERS)
@pytest.mark.parametrize("oversubscribe", [False, True])
def test_a_launcher_leaves_the_inner_words_as_they_are(name: str, oversubscribe: bool) -> None:
    argv = launcher_named(name, "/x/mpirun", oversubscribe=oversubscribe).wrap(INNER, LAUNCH)
    assert argv[-len(INNER) :] == INNER


@pytest.mark.parametrize("name", GANGS)
def test_a_gangs_launcher_says_how_many_ranks(name: str) -> None:
    launch = Launch(argv=("prog",), ranks=17, needs=Needs(cores=3, ranks=17))
    argv = launcher_named(name).wrap(("prog",), launch)
    assert argv[argv.index("-n") + 1] == "17"


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_hides_the_rank_of_a_gang_around_us(name: str) -> None:
    launcher = launcher_named(name)
    hidden = (*launcher.env_overridden, *launcher.env_blocked)
    for variable in ("PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        assert variable.startswith(hidden)


@pytest.mark.parametrize("name", GANGS)
def test_a_gangs_launcher_lets_a_rank_know_its_number(name: str) -> None:
    passed = launcher_named(name).env_forwarded
    assert any(v.startswith(passed) for v in ("PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"))
    assert not "PATH".startswith(passed)
    assert all(passed), "an empty prefix would let everything through"


@pytest.mark.parametrize("name", LAUNCHERS)
@pytest.mark.parametrize("around", GANGS)
def test_the_guard_of_a_gang_around_us_is_no_rank_of_ours(name: str, around: str) -> None:
    launcher = launcher_named(name)
    hidden = (*launcher.env_overridden, *launcher.env_blocked)
    assert all(v.startswith(hidden) for v, _ in launcher_named(around).guards)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_does_not_pass_its_own_guard_through(name: str) -> None:
    """It is for the rank alone: the launcher itself must not see it."""
    launcher = launcher_named(name)
    assert not any(v.startswith(launcher.env_forwarded or ("=",)) for v, _ in launcher.guards)
