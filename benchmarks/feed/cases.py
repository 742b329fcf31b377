"""The table of claims: what is read from where, what limits it, and what is claimed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Store = Literal["far", "s3", "local"]
Limit = Literal["link once", "link measured", "ring", "pread", "decode"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """`most`: the claim, a multiple of the limit. `limit`: `link once`: all samples once over the
    link, at its rate; `link measured`: the same at the rate of one large object; `ring`, `pread`,
    `decode`: the time of limit.cpp. `workers`: the counts that peers are swept over.
    `settings_of`: the case whose sweep is reused, as its round trip is the same.
    `only`: the peers that take part; empty: all. `scaled_from`: peers without a cache, whose rate
    is constant, deliver so many batches, and their time is scaled. `stages`: ours has a cache.
    `keeps_pages`: remote storage whose pages stay in memory, as those of NFS and Lustre do while
    the data fit; else they are dropped at once, as if the data were larger than the memory.
    """

    name: str
    title: str
    store: Store
    limit: Limit
    most: float
    round_trip_ms: float = 0.0
    mbit: float = 0.0
    batches: int = 1000
    decoded: bool = False
    cold: bool = False
    stages: bool = False
    keeps_pages: bool = False
    workers: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    settings_of: str = ""
    only: tuple[str, ...] = ()
    scaled_from: int = 0
    rounds: int = 3


FIRST_BATCH_SECONDS = 0.1
PYTHON_SECONDS_PER_BATCH = 5e-6
STAGING = ("torch", "spdl", "webdataset", "mosaicml", "litdata")

CASES: Sequence[Case] = (
    Case(
        name="far-1ms",
        title="1 Gbit, 1 ms, empty cache, data larger than memory",
        store="far",
        limit="link once",
        most=1.03,
        round_trip_ms=1,
        mbit=1000,
        stages=True,
        scaled_from=300,
    ),
    Case(
        name="far-1ms-fits",
        title="1 Gbit, 1 ms, empty cache, data fit in memory",
        store="far",
        limit="link once",
        most=1.03,
        round_trip_ms=1,
        mbit=1000,
        stages=True,
        keeps_pages=True,
        settings_of="far-1ms",
        only=STAGING,
    ),
    Case(
        name="far-5ms",
        title="1 Gbit, 5 ms, empty cache",
        store="far",
        limit="link once",
        most=1.07,
        round_trip_ms=5,
        mbit=1000,
        stages=True,
        workers=(16, 32, 64),
        only=STAGING,
        scaled_from=300,
    ),
    Case(
        name="far-200mbit",
        title="200 Mbit, 1 ms, empty cache",
        store="far",
        limit="link once",
        most=1.03,
        round_trip_ms=1,
        mbit=200,
        stages=True,
        settings_of="far-1ms",
        only=STAGING,
        scaled_from=100,
        rounds=2,
    ),
    Case(
        name="far-once",
        title="1 Gbit, 1 ms, no sample twice, no cache",
        store="far",
        limit="link once",
        most=1.03,
        round_trip_ms=1,
        mbit=1000,
        batches=600,
        settings_of="far-1ms",
        only=("torch", "spdl"),
    ),
    Case(
        name="s3",
        title="S3, 1 Gbit, 1 ms, empty cache",
        store="s3",
        limit="link measured",
        most=1.05,
        round_trip_ms=1,
        mbit=1000,
        stages=True,
        workers=(4, 16, 64),
        scaled_from=300,
    ),
    Case(
        name="local-warm",
        title="local, page cache warm, raw",
        store="local",
        limit="ring",
        most=1.25,
        workers=(0, 1, 2, 4, 8),
        rounds=5,
    ),
    Case(
        name="local-cold",
        title="local, page cache cold, raw",
        store="local",
        limit="pread",
        most=1.1,
        cold=True,
        workers=(2, 8, 32),
        only=STAGING,
    ),
    Case(
        name="decoded",
        title="local, decoded, 224 x 224 antialiased",
        store="local",
        limit="decode",
        most=9 / 6.6,  # 9 s where decoding alone takes 6.6 s
        decoded=True,
        workers=(2, 4),
        scaled_from=150,
    ),
)


def named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


WHERE_OTHERS_ARE_AS_GOOD = (
    "far-once: where no sample comes twice nothing can be saved by keeping it, and with 1 ms and "
    "1 Gbit about 8 requests in flight fill the link, which a DataLoader with enough workers has. "
    "It then stands at the limit as ours does; what ours saves it is the sweep, and the processes."
)
