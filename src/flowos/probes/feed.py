"""Reads of training data by the feed: minibatches of 32 files, with and without a cache.

After figures 4 to 6 and table 2 of Serizawa and Tatebe, IPSJ SIG HPC, 2019: files on shared
storage, files on the node's own, and a cache on it that is filled as they are read. Here all are on
the one storage that is measured, so a cache costs what it writes and gains nothing but fewer files.
"""

from typing import NamedTuple

from flowos.model import (
    Case,
    Chart,
    Facts,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, read_answer

STORAGES = ("source", "empty cache", "full cache")
BATCH_BYTES = 32 * 42_926
MIN_FREE_BYTES = 3 << 30
"""A feed leaves a part of its cache's file system free."""


CURVE_READS = "2"
"""Figure 5 has so many processes that read: the curve over minibatches is kept of them alone."""


class Sweep(NamedTuple):
    """How many minibatches are read, and by how many reads at once."""

    batches: int
    reads: tuple[int, ...]


SWEEPS = {
    "quick": Sweep(100, (2, 64)),
    "normal": Sweep(250, (1, 2, 4, 8, 16, 64)),
    "full": Sweep(1000, (1, 2, 4, 8, 12, 16, 32, 64, 256)),
}
STARTUP_SECONDS, BYTES_PER_SECOND, FILES_PER_SECOND = 1.0, 200e6, 5000.0
"""Assumed of a start, of reading, and of making files."""


def _chart(title: str, metric: str, about: str) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x="reads",
        metrics=(metric,),
        series=("storage",),
        x_label="reads of the source at once",
        y_label="second",
        log_x=True,
        log_y=True,
        ceilings=False,
        about=about,
    )


class FeedReads(Probe):
    """Metrics first_minibatch, thousand_minibatches and elapsed (second); only if it is named."""

    info = ProbeInfo(
        name="feed",
        title="Reads of training data (flowos feed)",
        charts=(
            _chart(
                "1,000 minibatches of 32 files",
                "thousand_minibatches",
                "From nothing, the listing of the folder included; fewer were read and the time"
                " scaled, but with --full.",
            ),
            _chart("The first minibatch", "first_minibatch", "From nothing, the listing included."),
            Chart(
                title="Time over minibatches loaded so far",
                kind="curve",
                x="loaded",
                metrics=("elapsed",),
                series=("storage",),
                facets=("reads",),
                x_label="minibatches loaded so far",
                y_label="second",
                log_x=True,
                log_y=True,
                ceilings=False,
                about="From nothing, the listing included; 1,000 are loaded with --full.",
            ),
        ),
        rounds=2,
        headlines=(
            Headline(
                "1,000 minibatches, full cache",
                "thousand_minibatches",
                (("storage", "full cache"),),
            ),
        ),
        on_storage=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        if self.name not in request.probes:
            return ()
        sweep = SWEEPS[request.effort]
        needed = MIN_FREE_BYTES + 3 * sweep.batches * BATCH_BYTES
        free = facts.storage.free_bytes
        if free is not None and free < needed:
            return Unmeasured(
                reason=f"{request.scratch} has {free >> 20} MiB free; {needed >> 20} are needed",
                remedy="free some space, or choose another folder with --scratch",
            )
        details: Pairs = (("batches", str(sweep.batches)),)
        first, *others = (
            Case(self.name, (("storage", storage), ("reads", str(reads))), details)
            for storage in STORAGES
            for reads in sweep.reads
        )
        return (Case(self.name, first.levels, (*details, ("makes_files", "yes"))), *others)

    def seconds(self, case: Case) -> float:
        """The first case includes making the files."""
        batches = int(case.detail("batches"))
        files = 32 * batches / FILES_PER_SECOND if case.detail("makes_files") else 0.0
        return STARTUP_SECONDS + batches * BATCH_BYTES / BYTES_PER_SECOND + files

    def program(self, case: Case) -> Program:
        batches = int(case.detail("batches"))
        return Program(
            argv=(
                *("{python}", "-m", "flowos.feeder.minibatches", "{scratch}"),
                *(case.level("storage"), case.level("reads"), str(batches)),
            ),
            limit_seconds=120.0 + batches,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        found = read_answer(outcome)
        if isinstance(found, Unmeasured) or case.level("reads") == CURVE_READS:
            return found
        return tuple(reading for reading in found if reading.metric != "elapsed")
