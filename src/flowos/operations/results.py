"""`flowos results`: what a journal or the user's cache of results holds."""

import time
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.engine import Journal, KeptResult, results_folder, utc_of
from flowos.model import StoreError

_DAY_SECONDS = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResults:
    """Results of tasks of one name. oldest, newest: when they were kept, ISO 8601 in UTC."""

    task: str
    results: int
    size_bytes: int
    oldest: str
    newest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFolder:
    """What is kept in a folder, the most bytes first. notes: damage. removed: results that were."""

    path: Path
    tasks: tuple[TaskResults, ...]
    removed: int = 0
    notes: tuple[str, ...] = ()


def kept_results(folder: Path | None = None, older_than_days: float | None = None) -> ResultsFolder:
    """What is kept in a journal (its folder, or the file in it), or in the user's cache.

    older_than_days: results older than that are removed first. Raises StoreError if nothing is kept
    there, SliceRefused for a folder that cannot be used.
    """
    path = results_folder() if folder is None else folder.absolute()
    if path.name == "journal" and path.is_file():
        path = path.parent
    if not (path / "journal").is_file():
        raise StoreError(f"no results are kept in {path}: fo.slice(..., journal=FOLDER) keeps some")
    journal = Journal(path, "results")
    try:
        removed = 0
        if older_than_days is not None:
            since = time.time() - older_than_days * _DAY_SECONDS
            removed = journal.keep_only(lambda all_: [each for each in all_ if each.when >= since])
        tasks = _by_task(journal.records())
    except OSError as error:
        raise StoreError(f"results in {path}: {error}") from error
    finally:
        journal.close()
    return ResultsFolder(path=path, tasks=tasks, removed=removed, notes=tuple(journal.notes))


def _by_task(found: list[KeptResult]) -> tuple[TaskResults, ...]:
    names: dict[str, list[KeptResult]] = {}
    for each in found:
        names.setdefault(each.label, []).append(each)
    tasks = [
        TaskResults(
            task=name,
            results=len(some),
            size_bytes=sum(each.total_bytes for each in some),
            oldest=utc_of(min(each.when for each in some)),
            newest=utc_of(max(each.when for each in some)),
        )
        for name, some in names.items()
    ]
    return tuple(sorted(tasks, key=lambda each: each.size_bytes, reverse=True))
