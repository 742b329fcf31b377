"""Storage of a pool in lines: as promised, as seen, as measured."""

from dataclasses import replace
from pathlib import PurePath

from flowos.model import PoolStorage, StorageSpeed, StorageTier
from flowos.report import storage_lines

PATH = PurePath("/gpfs")
MEASURE = "flowos measure --only fio --scratch /gpfs"
BARE = PoolStorage(
    key="shared", path=PATH, total_bytes=95 * 10**12, free_bytes=12 * 10**12, measure=MEASURE
)
PROMISED = StorageTier(capacity_bytes=10**14, read_bytes_per_second=5e9, write_bytes_per_second=3e9)
SPEED = StorageSpeed(run="2026-11-20-abc", host="n1", folder=PATH, read_bytes_per_second=2.1e9)


def test_what_was_never_measured_says_so_and_the_command_that_does() -> None:
    assert storage_lines(BARE) == [
        "shared /gpfs: 12.0 TB of 95.0 TB are free",
        f"  not measured: {MEASURE}",
    ]
    broken = replace(BARE, not_measured="the store cannot be read")
    assert storage_lines(broken)[1] == f"  not measured (the store cannot be read): {MEASURE}"


def test_what_is_promised_stands_next_to_what_is_seen_and_measured() -> None:
    both = replace(
        BARE, promised=PROMISED, node="n2", speed=replace(SPEED, write_bytes_per_second=3e9)
    )
    assert storage_lines(both) == [
        "shared /gpfs: 12.0 TB of 95.0 TB are free on n2 (95% of what is promised)",
        "  promised: 100 TB, read 5.00 GB/s, write 3.00 GB/s",
        "  measured: read 2.10 GB/s (42% of what is promised), write 3.00 GB/s (100% of what is "
        "promised), by run 2026-11-20-abc on n1",
    ]


def test_what_is_not_promised_is_compared_with_nothing() -> None:
    below = replace(SPEED, folder=PATH / "me")
    some = replace(BARE, promised=StorageTier(write_bytes_per_second=1e9), speed=below)
    assert storage_lines(some) == [
        "shared /gpfs: 12.0 TB of 95.0 TB are free",
        "  promised: write 1.00 GB/s",
        "  measured: read 2.10 GB/s, by run 2026-11-20-abc on n1 in /gpfs/me",
    ]
    assert storage_lines(replace(BARE, promised=StorageTier(), speed=below))[1:] == [
        "  measured: read 2.10 GB/s, by run 2026-11-20-abc on n1 in /gpfs/me",
    ]


def test_what_is_not_seen_says_why() -> None:
    unseen = PoolStorage(key="scratch", path=PATH, complaint="no node is free", measure=MEASURE)
    assert storage_lines(unseen)[0] == "scratch /gpfs: no node is free"
    assert storage_lines(replace(unseen, node="n1"))[0] == "scratch /gpfs: no node is free on n1"
    for known in ({"total_bytes": 10**12}, {"free_bytes": 10**12}):
        half = replace(unseen, **known)  # type: ignore[arg-type]
        assert storage_lines(half)[0] == "scratch /gpfs: no node is free"
