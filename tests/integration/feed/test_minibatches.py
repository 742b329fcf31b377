"""The program that times minibatches, on files of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.feeder.minibatches import main
from flowos.probes.feed import STORAGES


@pytest.mark.parametrize("storage", STORAGES)
def test_it_times_the_first_minibatch_and_all_scaled_to_a_thousand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], storage: str
) -> None:
    for _ in range(2):  # the second time files and cache are there
        assert main([str(tmp_path), storage, "4", "3"]) == 0
        first, all_, *curve = json.loads(capsys.readouterr().out)["readings"]
        assert (first["metric"], all_["metric"]) == ("first_minibatch", "thousand_minibatches")
        assert 0 < first["values"][0] < all_["values"][0]
        assert first["notes"]["minibatches"] == "3"
        assert {each["metric"] for each in curve} == {"elapsed"}
        assert [each["levels"] for each in curve] == [{"loaded": n} for n in ("1", "2", "3")]
        one, two, three = (each["values"][0] for each in curve)
        assert first["values"][0] == one <= two <= three
        assert three == pytest.approx(all_["values"][0] * 3 / 1000)
    assert sum(path.is_file() for path in (tmp_path / "flowos-feed").rglob("*")) == 96


def test_files_that_changed_are_an_error_and_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "source", "4", "2"]) == 0
    capsys.readouterr()
    (tmp_path / "flowos-feed/00/000000").write_bytes(b"short")
    assert main([str(tmp_path), "source", "4", "2"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("minibatches: ")
    assert "bytes were read of" in said.err


def test_a_cache_that_is_not_full_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "source", "4", "2"]) == 0
    (tmp_path / "flowos-full-cache").mkdir()
    assert main([str(tmp_path), "full cache", "4", "2"]) == 1
    assert "64 samples were not in the cache" in capsys.readouterr().err


def test_another_number_of_minibatches_makes_the_files_anew(tmp_path: Path) -> None:
    for batches, files in (("2", 64), ("1", 32)):
        words = (sys.executable, "-m", "flowos.feeder.minibatches", str(tmp_path), "source", "2")
        subprocess.run((*words, batches), check=True, capture_output=True)
        made = (tmp_path / "flowos-feed").rglob("*")
        assert sum(path.is_file() for path in made) == files
