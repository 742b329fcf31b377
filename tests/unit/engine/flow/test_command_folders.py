"""The folders that commands of one slice run in."""

import threading
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.engine.flow._folders import Folders
from flowos.model import Cancelled


def test_threads_that_ask_at_once_get_folders_of_their_own_and_none_is_left() -> None:
    for _ in range(50):
        folders, barrier = Folders(here()), threading.Barrier(8)
        made: list[Path] = []

        def ask(folders: Folders, barrier: threading.Barrier, made: list[Path]) -> None:
            barrier.wait()
            made.append(folders.fresh("task"))

        threads = [threading.Thread(target=ask, args=(folders, barrier, made)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(made)) == 8
        assert len({path.parent for path in made}) == 1
        folders.clear()
        assert not any(path.exists() for path in made)


def test_a_freed_slice_makes_no_folder_any_more(tmp_path: Path) -> None:
    own, kept = Folders(here()), Folders(here(), tmp_path / "kept")
    gone, stays = own.fresh("task"), kept.fresh("task")
    for folders in (own, kept):
        folders.clear()
        with pytest.raises(Cancelled):
            folders.fresh("task")
    assert not gone.parent.exists()
    assert stays.exists()
