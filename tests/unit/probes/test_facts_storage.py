"""Which file system holds the folder to be measured, by mountinfo as the kernel writes it."""

import pytest

from flowos.model import FileSystemFacts
from flowos.probes._facts_storage import storage_of
from flowos.probes.facts import read_facts

MOUNTS = r"""
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:20 / /tmp rw,nosuid shared:2 - tmpfs tmpfs rw,size=64m
23 22 0:31 / /tmp/fast\040disk rw - xfs /dev/vdb rw
24 21 0:32 / /data rw - nfs4 server:/export rw
25 21 0:33 /upper /data rw master:3 - overlay overlay rw
broken
25 21 0:34 / - xfs
25 21 0:35 / /five - btrfs
26 21 0:34 / /short -
"""


@pytest.mark.parametrize(
    ("folder", "file_system"),
    [
        ("/var/tmp", "ext4"),
        ("/tmp", "tmpfs"),
        ("/tmpfile", "ext4"),
        ("/tmp/fast disk/deep", "xfs"),
        ("/data/set", "overlay"),
        ("/short", "ext4"),
        ("/five", "btrfs"),
    ],
)
def test_the_deepest_and_last_mount_above_the_folder_holds_it(
    folder: str, file_system: str
) -> None:
    raw = {"folder": folder, "free_bytes": 5 << 30}
    assert storage_of(raw, MOUNTS) == FileSystemFacts(file_system=file_system, free_bytes=5 << 30)


@pytest.mark.parametrize("raw", [None, [], {"folder": 3, "free_bytes": "many"}, {}])
def test_what_is_not_told_is_unknown(raw: object) -> None:
    assert storage_of(raw, MOUNTS) == FileSystemFacts()


def test_without_mounts_the_room_still_counts() -> None:
    assert storage_of({"folder": "/", "free_bytes": 7}, "") == FileSystemFacts(free_bytes=7)


def test_facts_hold_the_storage_that_the_collector_found() -> None:
    collected = {
        "storage": {"folder": "/tmp", "free_bytes": 9},
        "files": {"/proc/self/mountinfo": MOUNTS},
    }
    assert read_facts(collected).storage == FileSystemFacts(file_system="tmpfs", free_bytes=9)
