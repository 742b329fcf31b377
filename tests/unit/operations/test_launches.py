"""How a program of a probe is started in an environment."""

from dataclasses import replace
from pathlib import Path, PurePath

from flowos.engine import here
from flowos.model import Facts
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.operations.measure._environments import bare_on
from flowos.operations.measure._words import words_in
from flowos.probes import Program

NOWHERE = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)


def test_a_program_is_alone_on_the_node_and_its_scratch_folder_is_named_in_its_words() -> None:
    bare = bare_on(here(), NOWHERE, Path("/f"), PurePath("/s"))
    program = Program(argv=("fio", "--folder={scratch}"), ranks=2, variables=(("A", "b"),))
    launch = bare.launch(words_in(bare, program, BinaryCache(bare)), program)
    assert launch.argv == ("fio", "--folder=/s")
    assert launch.needs.alone
    assert (launch.ranks, launch.cwd) == (2, PurePath("/f"))
    assert dict(launch.variables)["A"] == "b"


def test_the_own_storage_of_a_node_is_named_in_the_words_of_a_program() -> None:
    usual = bare_on(here(), NOWHERE, Path("/f"), PurePath("/s"))
    program = Program(argv=("train", "{scratch}", "--own={own}"))
    for bare, own in ((usual, "/var/tmp"), (replace(usual, own_storage=PurePath("/o")), "/o")):
        launch = bare.launch(words_in(bare, program, BinaryCache(bare)), program)
        assert launch.argv == ("train", "/s", f"--own={own}")


def test_an_mpi_program_that_is_installed_is_started_by_its_own_words() -> None:
    bare = bare_on(here(), NOWHERE, Path("/f"), PurePath("/s"))
    program = Program(argv=("/usr/bin/xhpl", "x"), ranks=2, mpi_family="openmpi", mpirun="mpirun")
    assert words_in(bare, program, BinaryCache(bare)) == ("/usr/bin/xhpl", "x")


def test_the_same_binary_gets_no_libraries_of_ours_and_no_variables_of_the_environment() -> None:
    bare = replace(bare_on(here(), NOWHERE, Path("/f"), PurePath("/s")), binary="same")
    names = {name for name, _ in bare.launch(("x",), Program(argv=())).variables}
    assert "PATH" in names
    assert not [name for name in names if name.startswith("LD_")]
