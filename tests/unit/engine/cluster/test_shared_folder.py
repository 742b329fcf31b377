"""The folder of a pool: others of its user remove it as it is empty; it is not there."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from flowos.engine import check_shared_folder
from flowos.engine.cluster._shared_folder import base_of, made, remove_if_empty, shown
from flowos.engine.launch._run_folders import RunFolders
from flowos.model import LaunchFailed, Pool, SliceRefused


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


BEFORE = "0123abcd"
"""A boot of this machine that was before the one that is now."""


@pytest.fixture
def network(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its devices: one, and the loopback, which is none."""
    folder = tmp_path_factory.mktemp("net")
    for name, address in (("lo", "00:00:00:00:00:00"), ("eth0", "52:54:00:00:00:01")):
        (folder / name).mkdir()
        (folder / name / "address").write_text(f"{address}\n")
    (folder / "eth0/device").mkdir()
    monkeypatch.setattr("flowos.engine.cluster._shared_folder._NETWORK", folder)
    return folder


@pytest.fixture
def has_id(
    network: Path,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This machine does; containers may have none."""
    file = tmp_path_factory.mktemp("etc") / "machine-id"
    file.write_text(f"{'0a' * 16}\n")
    monkeypatch.setattr("flowos.engine.cluster._shared_folder._MACHINE_ID", file)


def pool_in(folder: Path) -> Pool:
    return Pool(name="p", kind="slurm", shared=str(folder))


def left_in(base: Path, sessions: int = 1, at: float = 1.0) -> Path:
    """What programs that were killed so long ago left in this folder."""
    for number in range(sessions):
        (base / f"session{number}/0").mkdir(parents=True)
        (base / f"session{number}/0/started.0").write_text("1 2 1 1 0")
    for each in (*base.rglob("*"), base):
        os.utime(each, (at, at))
    return base


@pytest.mark.usefixtures("has_id")
def test_what_an_earlier_boot_of_this_machine_left_is_removed_and_nothing_else(
    tmp_path: Path,
) -> None:
    with shown(base_of(pool_in(tmp_path))) as (proof, _):
        base = proof.parents[2]
        named = base.name.rpartition("-")[0]
        host = os.uname().nodename
        gone = left_in(base.with_name(f"{named}-{BEFORE}"))
        others = [
            left_in(base.with_name(f"other{named}-{BEFORE}")),
            left_in(base.with_name(f"{named}-x-{BEFORE}")),
            left_in(base.with_name(f"{host}-00000000-{BEFORE}")),
            left_in(base.with_name(f"{host}-{BEFORE}")),
            left_in(base.with_name(f"{named}-of mine")),
            left_in(base.with_name(f"{named}-{BEFORE[::-1]}"), at=time.time()),
        ]
        linked, link = left_in(tmp_path / "linked"), base.with_name(f"{named}-abcdabcd")
        link.symlink_to(linked)
        base_of(pool_in(tmp_path))
        assert not gone.exists()
        assert sorted(base.parent.iterdir()) == sorted((base, link, *others))
        for each in (linked, *others):
            assert (each / "session0/0/started.0").exists()
        assert proof.exists()


@pytest.mark.usefixtures("has_id")
def test_one_in_which_a_machine_of_the_same_id_began_a_launch_meanwhile_is_left(
    tmp_path: Path,
) -> None:
    base = base_of(pool_in(tmp_path))
    other = left_in(base.with_name(f"{base.name.rpartition('-')[0]}-{BEFORE}"), sessions=2)
    os.utime(other / "session1")
    base_of(pool_in(tmp_path))
    assert [each.name for each in sorted(other.iterdir())] == ["session0", "session1"]


@pytest.mark.usefixtures("has_id")
def test_a_launch_of_a_copy_of_this_virtual_machine_that_began_before_our_boot_is_left(
    tmp_path: Path, network: Path
) -> None:
    address = network / "eth0/address"
    ours = address.read_text()
    address.write_text("52:54:00:00:00:02\n")
    copys = base_of(pool_in(tmp_path))
    left = left_in(copys.with_name(f"{copys.name.rpartition('-')[0]}-{BEFORE}"))
    address.write_text(ours)
    assert base_of(pool_in(tmp_path)) != copys
    assert (left / "session0/0/started.0").exists()
    address.write_text("52:54:00:00:00:02\n")
    assert base_of(pool_in(tmp_path)) == copys
    assert not left.exists()


@pytest.mark.usefixtures("has_id")
def test_what_infiniband_puts_before_its_address_at_each_boot_makes_no_other_machine(
    tmp_path: Path, network: Path
) -> None:
    address, port = network / "eth0/address", "fe:80:00:00:00:00:00:00:f4:52:14:03:00:11:22:33"
    address.write_text(f"80:00:02:08:{port}\n")
    before = base_of(pool_in(tmp_path))
    address.write_text(f"a0:00:02:20:{port}\n")
    assert base_of(pool_in(tmp_path)) == before


@pytest.mark.usefixtures("has_id")
def test_a_machine_without_network_devices_removes_nothing(tmp_path: Path, network: Path) -> None:
    (network / "eth0/device").rmdir()
    base = base_of(pool_in(tmp_path))
    left = left_in(base.with_name(f"{os.uname().nodename}-{BEFORE}"))
    assert base_of(pool_in(tmp_path)) == base
    assert left.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
@pytest.mark.parametrize("above", [False, True])
def test_a_link_of_another_user_to_a_folder_of_ours_is_refused_and_nothing_removed(
    tmp_path: Path, *, above: bool
) -> None:
    base = base_of(pool_in(tmp_path))
    base.rmdir()
    theirs, home = (base.parent if above else base), tmp_path / "home"
    (home / base.name / "text").mkdir(parents=True)
    if above:
        theirs.rmdir()
    theirs.symlink_to(home)
    os.chown(theirs, 65534, -1, follow_symlinks=False)
    for look in (base_of, check_shared_folder):
        with pytest.raises(SliceRefused, match="another user made it"):
            look(pool_in(tmp_path))
    with pytest.raises(LaunchFailed, match="another user made it"):
        RunFolders(partial(made, base)).make()
    assert (home / base.name / "text").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_one_below_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    base = base_of(pool_in(tmp_path))
    os.chown(base.parent, 65534, -1)
    with pytest.raises(SliceRefused, match="another user made it"):
        base_of(pool_in(tmp_path))


@pytest.mark.usefixtures("has_id")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_one_of_another_user_is_left(tmp_path: Path) -> None:
    base = base_of(pool_in(tmp_path))
    other = left_in(base.with_name(f"{base.name.rpartition('-')[0]}-{BEFORE}"))
    os.chown(other, 65534, -1)
    base_of(pool_in(tmp_path))
    assert (other / "session0/0/started.0").exists()


@pytest.mark.usefixtures("has_id")
def test_those_that_start_at_once_remove_it_together(tmp_path: Path) -> None:
    base = base_of(pool_in(tmp_path))
    left = left_in(base.with_name(f"{base.name.rpartition('-')[0]}-{BEFORE}"), sessions=40)
    start = threading.Barrier(4)

    def starts(_: int) -> Path:
        start.wait()
        return base_of(pool_in(tmp_path))

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(starts, range(4))] == [base] * 4
    assert not left.exists()


@pytest.mark.parametrize("id", ["", "uninitialized\n", None])
def test_a_machine_without_an_id_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id: str | None
) -> None:
    if id is not None:
        (tmp_path / "id").write_text(id)
    monkeypatch.setattr("flowos.engine.cluster._shared_folder._MACHINE_ID", tmp_path / "id")
    base = base_of(pool_in(tmp_path))
    left = left_in(base.with_name(f"{os.uname().nodename}-{BEFORE}"))
    assert base_of(pool_in(tmp_path)) == base
    assert left.exists()
