"""Folders of the user, also of one without a home."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowos._user_folders import (
    HomeFolderError,
    cache_folder,
    config_folder,
    data_folder,
    expanded,
)

FOLDERS = {
    "XDG_DATA_HOME": (data_folder, ".local/share/flowos"),
    "XDG_CACHE_HOME": (cache_folder, ".cache/flowos"),
    "XDG_CONFIG_HOME": (config_folder, ".config/flowos"),
}
each = pytest.mark.parametrize("variable", FOLDERS)


@each
def test_a_variable_names_a_folder(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "/x")
    assert FOLDERS[variable][0]() == Path("/x/flowos")


@each
@pytest.mark.parametrize("value", ["", "relative/is/ignored"])
def test_without_it_the_folder_is_in_the_home(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("HOME", "/home/ada")
    folder, within = FOLDERS[variable]
    assert folder() == Path("/home/ada", within)


@each
def test_without_a_home_it_is_said_what_to_set(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without HOME and a name
    with pytest.raises(HomeFolderError, match=f"no home folder: set HOME, or {variable}"):
        FOLDERS[variable][0]()


def test_a_path_of_an_unknown_user_stays() -> None:
    assert expanded("~nosuchuser/x") == Path("~nosuchuser/x")


NAMELESS = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
"""A user without a name and a home, as in many a container."""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("list",), 1, "flowos list: there is no home folder: set HOME, or XDG_DATA_HOME"),
        (("list", "--store", "~nosuchuser/x.db"), 1, "/~nosuchuser/x.db: mend the path given"),
        (("image", "import", "~nosuchuser/x.tar"), 1, "/~nosuchuser/x.tar; a registry's image is"),
        (("exec", "--env", "~nosuchuser/x.sqfs", "--", "true"), 125, "nothing at "),
        (("exec", "--", "true"), 0, ""),
        (("pools",), 0, "local"),
    ],
)
def test_a_user_without_a_home_gets_one_line(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    unset = {n: v for n, v in os.environ.items() if n != "HOME" and not n.startswith("XDG_")}
    argv = (*NAMELESS, sys.executable, "-m", "flowos", *words)
    done = subprocess.run(argv, capture_output=True, text=True, env=unset, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == (code != 0)
