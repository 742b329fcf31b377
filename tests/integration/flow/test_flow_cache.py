"""`cache=True`: results of a task are kept for all slices; `cache=False`: not even in a journal."""

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal

import pytest

import flowos as fo
from tests.integration.flow.kept_tasks import cached, plain

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "process", "inline")


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/flowos/results"


@pytest.mark.parametrize("way", WAYS)
def test_a_cached_task_is_found_by_other_slices_and_flows(
    tmp_path: Path, way: Way, cache: Path
) -> None:
    log = tmp_path / "log"
    x = fo.flow_input("x", fo.int64)
    with fo.slice(plain(cached(x, str(log)), str(log)), workers=way) as s:
        assert (s.run(1), s.run(1)) == ([20], [20])
        assert s.notes == (f"1 result was taken from cache {cache}",)
    with fo.slice(cached(cached(x, str(log)), str(log)), workers=way) as s:
        assert s.run(1) == [3]
    assert lines(log) == ["1", "2", "2", "2"]  # the other task is not cached
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_cached_task_is_in_the_journal_too(tmp_path: Path, cache: Path) -> None:
    log, x = tmp_path / "log", fo.flow_input("x", fo.int64)
    for journal in ("one", None, "one"):
        place = None if journal is None else tmp_path / journal
        with fo.slice(cached(x, str(log)), journal=place) as s:
            assert s.run(1) == [2]
        if journal is None:
            (cache / "journal").unlink()
    assert lines(log) == ["1"]


def test_a_version_is_another_task_and_leaves_out_what_has_no_digest(
    tmp_path: Path, cache: Path
) -> None:
    log, lock = tmp_path / "log", threading.Lock()

    def locked(x: fo.int64) -> fo.int64:
        with lock, log.open("a") as file:
            file.write(f"{x}\n")
        return x

    for version in ("v1", "v1", "v2"):
        with fo.slice(fo.task(locked, cache=version)(1)) as s:
            assert s.run() == [1]
    assert len(lines(log)) == 2
    assert cache.exists()


def test_a_task_that_is_not_to_be_cached_always_runs(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def now(x: fo.int64) -> fo.int64:
        with log.open("a") as file:
            file.write(f"{x}\n")
        return len(lines(log))

    task = fo.task(now, cache=False)
    with fo.slice(task(task(fo.flow_input("x", fo.int64))), journal=tmp_path / "journal") as s:
        assert (s.run(1), s.run(1), s.notes) == ([2], [4], ())
        assert list(s.map([1, 1], ahead=0)) == [[6], [8]]


def test_a_cache_that_cannot_be_used_is_said_and_costs_nothing(tmp_path: Path, cache: Path) -> None:
    log, x = tmp_path / "log", fo.flow_input("x", fo.int64)
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with fo.slice(cached(x, str(log))) as s:
        assert (s.run(1), s.run(1)) == ([2], [2])
        (note,) = s.notes
    assert note.startswith(f"no results are cached: cache: {cache} may be written by others")
    assert len(lines(log)) == 2


def test_a_full_disk_under_a_cache_or_journal_costs_no_result_and_is_said_once(
    tmp_path: Path, cache: Path
) -> None:
    program = f"""
import resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import flowos as fo

@fo.task(cache=True)
def grow(x: fo.int64) -> fo.str_:
    return str(x) * 300

@fo.task
def more(x: fo.int64) -> fo.str_:
    return str(x) * 300

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
x = fo.flow_input("x", fo.int64)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
with fo.slice(grow(x)) as s:
    print(len(list(s.map(range(9), ahead=0))), *s.notes)
with fo.slice(more(x), journal="journal") as s:
    print(len(list(s.map(range(9), ahead=0))), *s.notes)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    for said, place, task in zip(
        done.stdout.splitlines(), ("cache", f"journal {tmp_path}"), ("grow", "more"), strict=True
    ):
        assert re.match(rf"9 [1-9] results? could not be kept in {place}", said)
        assert said.endswith(f"(task '{task}': [Errno 27] File too large)")
    assert done.stderr == ""
    assert cache.exists()


def test_the_oldest_results_leave_a_cache_that_is_too_large(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, x = tmp_path / "log", fo.flow_input("x", fo.int64)
    with fo.slice(cached(x, str(log))) as s:
        list(s.map(range(20), ahead=0))
    size = (cache / "journal").stat().st_size
    monkeypatch.setattr("flowos.engine.results._slice_results.MAX_CACHE_BYTES", size // 2)
    with fo.slice(cached(x, str(log))) as s:
        assert s.run(19) == [20]
        assert s.run(0) == [1]
    assert lines(log)[20:] == ["0"]
    assert size // 4 < (cache / "journal").stat().st_size < size // 2
