"""Two nodes in one process share nothing but the process."""

import gc
import os
import shutil
from pathlib import Path

import pytest

from flowos.engine import Here, here
from flowos.model import BARE, Launch

from .launched import is_removed


def test_each_has_its_folder_and_its_ledger() -> None:
    one, other = Here("one"), Here("other")
    folders = {one.folder(), other.folder(), here().folder()}
    assert len(folders) == 3
    assert one.ledger is not other.ledger
    assert {node.start(Launch(argv=("true",))).folder.parent for node in (one, other)} < folders


def test_the_folder_of_a_node_that_nobody_holds_goes_and_that_of_another_stays() -> None:
    one, other = Here("one"), Here("other")
    gone, stays = one.folder(), other.folder()
    assert one.run(Launch(argv=("true",))).ok
    del one
    assert is_removed(gone)
    assert stays.is_dir()
    assert other.run(Launch(argv=("true",))).ok


def test_a_launch_outlives_whoever_held_its_node() -> None:
    node = Here("one")
    own = node.variables(BARE)
    running = node.start(Launch(argv=("sh", "-c", "sleep 0.2; echo done"), variables=own))
    session = running.folder.parent
    del node
    gc.collect()
    assert session.is_dir()
    assert running.wait().stdout == b"done\n"
    del running
    assert is_removed(session)


def test_a_forked_child_has_folders_of_its_own_on_each_node() -> None:
    nodes = (Here("one"), Here("other"))
    ours = {node.folder() for node in nodes}
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        theirs = {node.folder() for node in nodes}
        os.write(writer, str(theirs.isdisjoint(ours) and len(theirs) == 2).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 16) == b"True"
    os.close(reader)
    os.close(writer)
    assert all(folder.is_dir() for folder in ours)
    assert all(node.run(Launch(argv=("true",))).ok for node in nodes)


def test_a_cache_that_is_emptied_meanwhile_is_filled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    node = Here("one")
    assert node.run(Launch(argv=("true",))).ok
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    assert node.run(Launch(argv=("true",))).ok
