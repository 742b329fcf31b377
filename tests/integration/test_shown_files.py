"""`flowos show FILE` of what is no log of a slice: one line says what it is and what reads it."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from flowos.engine import Journal
from tests.integration.conftest import called_here


def said(folder: Path, *words: str) -> str:
    """The only line, in words after the name of the command."""
    variables = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    done = called_here(["show", *words], folder, variables)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("flowos show: ")


@pytest.mark.parametrize(("name", "of"), [("kept", "kept"), ("kept", "kept/journal")])
def test_a_journal_is_named_with_the_command_that_lists_it(
    tmp_path: Path, name: str, of: str
) -> None:
    Journal(tmp_path / name).close()
    see = "which keeps results of tasks; see them with: flowos results"
    assert said(tmp_path, of) == f"{of} is a journal, {see} {name}"
    (tmp_path / "a b").mkdir()
    (tmp_path / name).rename(tmp_path / "a b" / name)
    assert said(tmp_path, f"a b/{of}").endswith(f"{see} 'a b/{name}'")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("report.json", '{\n "format": "flowos-report",', "flowos report report.json"),
        ("base.json", '{\n "format": "flowos-baseline",', "flowos measure --check base.json"),
        ("flow.py", "import flowos as fo", "flowos run flow.py"),
    ],
)
def test_other_files_of_flowos_are_named_with_what_reads_them(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    line = said(tmp_path, name)
    assert line.startswith(f"{name} is ")
    assert line.endswith(f": {words}")


def test_a_store_is_named_with_the_option_that_takes_it(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("create table a (b)")
    database.close()
    assert said(tmp_path, "runs.db").endswith(": flowos list --store runs.db")


@pytest.mark.parametrize("text", ["some words\n", "\udcff\n", json.dumps({"format": "other"})])
def test_a_file_of_others_is_no_log_in_words_of_flowos(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_bytes(text.encode(errors="surrogateescape"))
    line = said(tmp_path, "file")
    assert line.startswith("file:1 is no line of a slice's log: ")
    assert "char" not in line
    assert "codec" not in line


@pytest.mark.parametrize("name", ["tasks.log", "./tasks", "no/folder/tasks"])
def test_a_file_that_is_missing_is_no_unknown_run(tmp_path: Path, name: str) -> None:
    for more in ((), ("--html", "page.html"), ("--json",)):
        line = said(tmp_path, name, *more)
        assert line.startswith(f"there is no file {name}: give a run (flowos list), ")
        assert line.endswith("or the log of a slice, which fo.slice(..., log=FILE) writes")
    assert not (tmp_path / "data").exists()


def test_what_is_no_file_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert said(tmp_path, "./folder").startswith("./folder is a folder: the log of a slice")
    assert said(tmp_path, "/dev/null").startswith("/dev/null is no regular file: ")


@pytest.mark.parametrize("word", ["x" * 300, "folder"])
def test_a_word_that_may_be_an_id_is_looked_up(tmp_path: Path, word: str) -> None:
    (tmp_path / "folder").mkdir()
    variables = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    done = called_here(["show", word], tmp_path, variables)
    assert done.stderr.startswith(f"flowos show: no run '{word}' in ")
