"""The folder of a pool: others of its user remove it as it is empty; it is not there."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from flowos.engine import check_shared_folder
from flowos.engine.cluster._shared_folder import base_of, made, remove_if_empty, shown
from flowos.engine.launch._run_folders import RunFolders
from flowos.model import Pool, SliceRefused


@contextmanager
def others_who_remove(base: Path) -> Iterator[None]:
    over = threading.Event()

    def remove() -> None:
        while not over.is_set():
            remove_if_empty(base)

    removers = [threading.Thread(target=remove) for _ in range(2)]
    for each in removers:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in removers:
            each.join()
    remove_if_empty(base)
    assert not [*base.parents[1].iterdir()]


def test_it_is_there_for_who_writes_although_others_remove_it(tmp_path: Path) -> None:
    pool = Pool(name="p", kind="slurm", shared=str(tmp_path))
    with others_who_remove(base_of(pool)):
        for _ in range(150):
            with shown(base_of(pool)) as (proof, word):
                assert proof.read_text() == word


def test_it_is_there_for_run_folders_although_others_remove_it(tmp_path: Path) -> None:
    base = base_of(Pool(name="p", kind="slurm", shared=str(tmp_path)))
    with others_who_remove(base):
        for _ in range(100):
            folders = RunFolders(partial(made, base))
            assert folders.make().is_dir()
            folders.remove()


@pytest.mark.parametrize(
    ("folder", "why"), [("no/such", "No such file or directory"), ("file", "Not a directory")]
)
def test_one_that_is_not_there_is_not_made_and_is_said_with_how_to_mend_it(
    tmp_path: Path, folder: str, why: str
) -> None:
    (tmp_path / "file").touch()
    shared = tmp_path / folder
    pool = Pool(name="p", kind="slurm", shared=str(shared))
    says = (
        f"shared folder {shared}: {why}; make it, or in flowos.toml, give [pools.p] shared = a "
        "folder that this machine and all its nodes see"
    )
    with pytest.raises(SliceRefused) as told:
        base_of(pool)
    assert str(told.value) == says
    with pytest.raises(SliceRefused) as told:
        check_shared_folder(pool)
    assert str(told.value) == f"pool p: {says}"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_check_leaves_nothing_in_it(tmp_path: Path) -> None:
    check_shared_folder(Pool(name="p", kind="slurm", shared=str(tmp_path)))
    assert not [*tmp_path.iterdir()]


SHOWS = """
import sys
from flowos.engine.cluster._shared_folder import base_of, shown
from flowos.model import Pool
with shown(base_of(Pool(name="p", kind="slurm", shared=sys.argv[1]))) as (proof, word):
    print(proof, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_program_left_in_it_is_removed_by_the_next_one_and_no_other(
    tmp_path: Path,
) -> None:
    def showing() -> "subprocess.Popen[str]":
        words, pipe = (sys.executable, "-c", SHOWS, str(tmp_path)), subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)

    with showing() as killed, showing() as lives:
        left, kept = (Path(each.stdout.readline().strip()) for each in (killed, lives))  # type: ignore[union-attr]
        killed.kill()
        killed.wait()
        assert left.exists()
        check_shared_folder(Pool(name="p", kind="slurm", shared=str(tmp_path)))
        assert (left.exists(), kept.exists()) == (False, True)
        assert [*left.parents[2].iterdir()] == [kept.parents[1]]


def test_the_current_folder_that_was_removed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SliceRefused, match=r"^pool p: shared folder .the current one.: No such"):
        check_shared_folder(Pool(name="p", kind="slurm"))
