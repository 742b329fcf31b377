"""A cache that knows what there is but holds nothing of it yet, as after `flowos feed clear`.

Listing is a thing of its own: it is done once per data set, and its time is told apart.
"""

import shutil
import tempfile
from pathlib import Path

from job import Job
from turns import taken


class KnownIndex:
    """Kept per source; FlowOS keeps its listing at CACHE/KEY/catalog, and samples beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, Path] = {}

    def fill(self, cache: str, python: Path, job: Job, variables: dict[str, str]) -> None:
        """The listing alone is put into that empty folder; made first, where it is not known."""
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
