"""A cache with the listing of a data set but no samples, as after `flowos feed clear`.

The data set is listed once, and the time of that is reported separately.
"""

import shutil
import tempfile
from pathlib import Path

from job import Job
from turns import taken


class KnownIndex:
    """Listings by source; FlowOS keeps a listing at CACHE/KEY/catalog, next to the samples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, Path] = {}

    def fill(self, cache: str, python: Path, job: Job, variables: dict[str, str]) -> None:
        """Copy the listing into this empty folder; list the source first if needed."""
        if job.root not in self.kept:
            made = Path(tempfile.mkdtemp(prefix="index-", dir=self.folder))
            self.kept[job.root] = made
            taken(python, Job(**{**vars(job), "cache": str(made), "batches": 1}), variables)
            for samples in made.glob("*/samples"):
                shutil.rmtree(samples)
        shutil.copytree(self.kept[job.root], cache, dirs_exist_ok=True)

    def forget(self) -> None:
        for made in self.kept.values():
            shutil.rmtree(made, ignore_errors=True)
        self.kept.clear()
