"""The tutorials and how-to pages that need no cluster and no image, block by block."""

import os
import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from tests.tutorials import DOCS, run_page

MadeOnce = Callable[[str, Callable[[Path], None]], Path]

HOW_TO = re.findall(r"^howto/(\S+)$", (DOCS / "index.md").read_text(), re.MULTILINE)
OF_A_RUN = ("how-fast", "trust-a-number", "which-setting", "numbers-out")
"""They go on with what the tutorial of measuring has stored."""
ON_A_CLUSTER = ("try-slurm",)
"""Run by tests/cluster/test_tutorial.py."""
SHORTER = {
    "measure": {
        "--minutes 0.3": "--minutes {}",
        "measure -- sort": "measure --minutes {} -- sort",
        "compare --command": "compare --minutes {} --command",
    },
    "paper": {"--minutes 0.4": "--minutes {}"},
}
MINUTES = {"measure": (0.05, 1), "paper": (0.4, 1, 2)}
"""What is shown is the same as with the times of the pages. Less where a few numbers do; more where
a try that fails, on a busy machine, takes longer than all that is to be measured."""
OTHER_MPI = re.compile(r"mpi.*[.](mpich|hydra)")


@pytest.fixture(scope="session")
def home(made_once: MadeOnce) -> dict[str, str]:
    """One of all pages, as compilers are tried anew for each."""
    return {"HOME": str(made_once("home-of-pages", lambda _: None))}


@pytest.fixture(scope="session")
def one_mpi(made_once: MadeOnce) -> dict[str, str]:
    """A PATH with the same programs, but one MPI where there are two, as both show the same."""

    def fill(folder: Path) -> None:
        paths = [path for path in os.environ["PATH"].split(":") if Path(path).is_dir()]
        there = {each.name: each for path in reversed(paths) for each in Path(path).iterdir()}
        for name, program in there.items():
            if "mpicc.openmpi" not in there or not OTHER_MPI.match(name):
                (folder / name).symlink_to(program)

    return {"PATH": str(made_once("programs-of-pages", fill))}


@pytest.mark.parametrize("name", ["feed", "flows", "measure", "paper", "solve"])
def test_a_tutorial_is_as_it_says(
    name: str, tmp_path: Path, home: dict[str, str], one_mpi: dict[str, str]
) -> None:
    variables = {**home, **one_mpi} if name == "paper" else home
    tries = MINUTES.get(name, (0,))
    for minutes in tries:
        folder = tmp_path / str(minutes)
        folder.mkdir()
        instead = {old: new.format(minutes) for old, new in SHORTER.get(name, {}).items()}
        with suppress(AssertionError) if minutes != tries[-1] else nullcontext():
            run_tutorial(name, folder, instead, variables)
            break


def run_tutorial(
    name: str, folder: Path, instead: dict[str, str], variables: dict[str, str]
) -> None:
    kept = {**variables, "XDG_DATA_HOME": str(folder / "data")}  # `last` is of this test
    assert run_page(DOCS / f"tutorials/{name}.md", folder, variables=kept, instead=instead) >= 3
    for page in OF_A_RUN if name == "measure" else ():
        assert run_page(DOCS / f"howto/{page}.md", folder, variables=kept) >= 1


def test_how_to_pages_are_as_they_say_one_after_the_other(
    tmp_path: Path, home: dict[str, str]
) -> None:
    """In one folder with one store: a page may go on with what an earlier one made."""
    kept = {**home, "XDG_DATA_HOME": str(tmp_path / "data")}
    pages = [page for page in HOW_TO if page not in (*OF_A_RUN, *ON_A_CLUSTER)]
    ran = [run_page(DOCS / f"howto/{page}.md", tmp_path, variables=kept) for page in pages]
    assert {page.stem for page in (DOCS / "howto").glob("*.md")} == {*HOW_TO}
    assert sum(count > 0 for count in ran) >= 11


@pytest.mark.parametrize(
    "line",
    [
        "flowos nosuchcommand",
        "flowos nosuchcommand | cat",
        "flowos compare nosuchrun --axis stores",
        "timeout -s KILL 60 true",
    ],
)
def test_a_page_whose_command_fails_is_not_as_it_says(line: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```console\n$ {line}\n...\n```\n")
    with pytest.raises(AssertionError, match="exit code"):
        run_page(page, tmp_path, variables={"XDG_DATA_HOME": str(tmp_path / "data")})
