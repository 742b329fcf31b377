"""Disk traffic and pressure: from recorded files of the kernel, and here with a disturber."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from flowos.engine import Look, io_pressure_between, state_between
from flowos.engine._look import Traffic
from flowos.engine.local._state import look
from flowos.engine.local._state_disk import traffic

MIB = 1 << 20
ANONYMOUS = Path("/proc")
"""Lies on no device; in these trees it is mounted from /dev/null, whose numbers are 1:3."""

DISKSTATS = "   8  0 sda 5 0 800 1 7 0 1200 2 0 0 3\n   1  3 null 1 0 100 1 1 0 200 1 0 0 1\n"
MOUNTS = "20 1 0:5 / / rw - ext4 /dev/zero rw\n21 20 0:22 / /proc rw - proc /dev/null rw\n"


def tree(root: Path, **files: str) -> Path:
    """A root folder with these files; `__` in a name stands for a slash."""
    for name, text in {"proc__self__io": "rchar: 0\n", **files}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def seen(at: float, moved: int = 0, ours: int = 0, **more: Any) -> Look:
    disk = Traffic(all_bytes=moved, our_bytes=ours)
    unknown: dict[str, Any] = dict.fromkeys(("busy", "idle", "steal", "throttled", "load"))
    return Look(at=at, ours=0.0, disk=disk, **unknown, **more)


def test_what_we_moved_ourselves_is_not_of_others() -> None:
    state = state_between(seen(0), seen(2, moved=800 * MIB, ours=800 * MIB))
    assert state.others_disk == (0, 0)


def test_what_others_moved_is_a_rate_and_a_share() -> None:
    state = state_between(seen(0), seen(2, moved=800 * MIB, ours=200 * MIB))
    assert state.others_disk == (300 * MIB, 0.75)


def test_more_than_all_cannot_be_ours() -> None:
    assert state_between(seen(0), seen(2, moved=8 * MIB, ours=9 * MIB)).others_disk == (0, 0)


@pytest.mark.parametrize(("moved", "share"), [(512 << 10, 1.0), ((512 << 10) - 1, 0.0)])
def test_a_disk_that_hardly_moves_is_quiet(moved: int, share: float) -> None:
    others = state_between(seen(0), seen(2, moved=moved)).others_disk
    assert others is not None
    assert others[1] == share


def test_sectors_of_the_disk_below_the_folder_are_counted(tmp_path: Path) -> None:
    root = tree(tmp_path, proc__diskstats=DISKSTATS, proc__self__mountinfo=MOUNTS)
    found = traffic(ANONYMOUS, root)
    assert found is not None
    assert found.all_bytes == 300 * 512


def test_of_a_partition_the_whole_disk_is_counted(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        proc__diskstats=DISKSTATS,
        proc__self__mountinfo=MOUNTS,
        sys__devices__sda__sda1__partition="1\n",
    )
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/dev/block/1:3").symlink_to(root / "sys/devices/sda/sda1")
    found = traffic(ANONYMOUS, root)
    assert found is not None
    assert found.all_bytes == 2000 * 512


@pytest.mark.parametrize("absent", ["proc/self/io", "proc/diskstats", "proc/self/mountinfo"])
def test_what_the_kernel_does_not_count_is_unknown(tmp_path: Path, absent: str) -> None:
    root = tree(tmp_path, proc__diskstats=DISKSTATS, proc__self__mountinfo=MOUNTS)
    (root / absent).unlink()
    assert traffic(ANONYMOUS, root) is None
    assert state_between(look(root, ANONYMOUS), look(root, ANONYMOUS)).others_disk is None


def test_a_folder_that_is_gone_lies_on_no_disk(tmp_path: Path) -> None:
    assert traffic(tmp_path / "gone", tree(tmp_path, proc__diskstats=DISKSTATS)) is None


PRESSURE = "some avg10=0.30 avg60=1.36 avg300=4.10 total={}\nfull avg10=0 total=99\n"


def test_pressure_is_the_share_of_time_in_which_some_process_waited(tmp_path: Path) -> None:
    before = look(tree(tmp_path, proc__pressure__io=PRESSURE.format(1_500_000)))
    assert before.io_stalled == 1.5
    assert before.memory_stalled is None
    pressed = seen(0, io_stalled=1.0, memory_stalled=1.0)
    later = seen(2, io_stalled=1.5, memory_stalled=1.25)
    assert io_pressure_between(pressed, later) == 0.25
    assert state_between(pressed, later).memory_pressure == 0.125


def test_where_the_kernel_has_no_pressure_nothing_is_said(tmp_path: Path) -> None:
    nothing = look(tmp_path)
    assert io_pressure_between(nothing, nothing) is None
    assert state_between(nothing, nothing).memory_pressure is None


def test_where_cgroups_alone_have_it_the_largest_that_is_seen_counts(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        proc__self__cgroup="0::/slice/job\n",
        proc__self__mountinfo="30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        **{
            "sys__fs__cgroup__slice__memory.pressure": PRESSURE.format(2_000_000),
            "sys__fs__cgroup__slice__job__memory.pressure": PRESSURE.format(1_000_000),
        },
    )
    assert look(root).memory_stalled == 2.0


# --- here ------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """32 MiB that lie on a disk."""
    if traffic(tmp_path) is None:
        pytest.skip("the folder for temporary files is on no disk that the kernel counts")
    path = tmp_path / "data"
    with path.open("wb") as data:
        data.write(os.urandom(32 * MIB))
        os.fsync(data.fileno())
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("if={file}", "of=/dev/null", "iflag=direct"),
        ("if=/dev/zero", "of={file}", "count=32", "oflag=direct", "conv=notrunc"),
        ("if=/dev/zero", "of={file}", "count=32", "conv=fsync"),
    ],
)
def test_what_a_child_reads_and_writes_is_ours(file: Path, words: tuple[str, ...]) -> None:
    argv = ["dd", "bs=1M", *(word.replace("{file}", str(file)) for word in words)]
    before = traffic(file.parent)
    subprocess.run(argv, check=True, capture_output=True)
    after = traffic(file.parent)
    assert before is not None
    assert after is not None
    assert 32 * MIB <= after.our_bytes - before.our_bytes <= 34 * MIB
    assert after.all_bytes - before.all_bytes >= 32 * MIB


def test_a_reader_of_the_same_disk_is_seen(file: Path) -> None:
    again = f"while :; do dd if={file} of=/dev/null bs=1M iflag=direct 2>/dev/null; done"
    until = time.monotonic() + 60
    with subprocess.Popen(["sh", "-c", again], start_new_session=True) as reader:
        try:
            share = 0.0
            while share < 0.5 and time.monotonic() < until:
                before = look(storage=file.parent)
                time.sleep(0.2)
                others = state_between(before, look(storage=file.parent)).others_disk
                share = others[1] if others else 0.0
        finally:
            os.killpg(reader.pid, 9)
    assert share >= 0.5
