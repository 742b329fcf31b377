"""`flowos results`: what is kept, and removing what is old."""

import json
import os
import time
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import flowos as fo
from flowos.engine import Journal, KeptResult
from tests.integration.conftest import called_here

DAY_SECONDS = 86400.0


def results(folder: Path, *words: str) -> "CompletedProcess[str]":
    variables = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return called_here(["results", *words], folder, variables)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Three results of two tasks, 40, 20 and 0 days old."""
    journal = Journal(tmp_path / "kept")
    for number, (task, days) in enumerate((("old", 40), ("both", 20), ("both", 0))):
        when = time.time() - days * DAY_SECONDS - 60
        key, body = b"%032d" % number, bytes(number + 1) * 100_000
        journal.put(KeptResult(key=key, label=task, when=when, body=body))
    journal.close()
    return tmp_path


def test_results_are_listed_by_task(kept: Path) -> None:
    done = results(kept, "kept")
    assert (done.returncode, done.stderr) == (0, "")
    both, old = done.stdout.splitlines()
    assert both.split()[:3] == ["2", "0.500", "MB"]
    assert (both.split()[-1], old.split()[-1]) == ("both", "old")
    found = json.loads(results(kept, "kept", "--json").stdout)
    assert [(each["task"], each["results"]) for each in found["tasks"]] == [("both", 2), ("old", 1)]
    assert found["tasks"][0]["oldest"] < found["tasks"][0]["newest"]


def test_the_file_in_its_folder_names_a_journal_too(kept: Path) -> None:
    assert results(kept, "kept/journal").stdout == results(kept, "kept").stdout


def test_old_results_are_removed_with_their_values(kept: Path) -> None:
    assert len(list((kept / "kept/values").iterdir())) == 3
    done = results(kept, "kept", "--prune", "30")
    assert done.stdout.splitlines()[0] == f"1 result was removed from {kept}/kept"
    assert len(list((kept / "kept/values").iterdir())) == 2
    done = results(kept, "kept", "--prune", "0")
    assert done.stdout.splitlines() == [
        f"2 results were removed from {kept}/kept",
        f"no results are kept in {kept}/kept",
    ]
    assert list((kept / "kept/values").iterdir()) == []


def test_without_a_folder_it_is_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = results(tmp_path)
    assert done.returncode != 0
    assert f"no results are kept in {tmp_path}/cache/flowos/results" in done.stderr
    assert not (tmp_path / "cache").exists()

    @fo.task(cache=True)
    def double(x: fo.int64) -> fo.int64:
        return 2 * x

    with fo.slice(double(1)) as s:
        assert s.run() == [2]
    assert results(tmp_path).stdout.split()[0] == "1"


def test_damage_is_said_and_a_wrong_age_is_refused(kept: Path) -> None:
    os.truncate(kept / "kept/journal", (kept / "kept/journal").stat().st_size - 1)
    done = results(kept, "kept")
    assert "damaged bytes at its end were cut off" in done.stderr
    assert len(done.stdout.splitlines()) == 2
    for word in ("-1", "nan", "soon"):
        done = results(kept, "kept", f"--prune={word}")
        assert done.returncode == 2
        assert f"{word}: expected a number of days, 0 or more" in done.stderr
