"""`flowos list` and `rm`: the runs in the store, whatever they measured."""

from flowos._dataclasses import dataclass
from flowos.model import ListedRun
from flowos.store import Store, file_stamp, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRun:
    """What is known of a run without reading it. samples: how many it had."""

    id: str
    host: str
    samples: int


def runs(url: str | None, limit: int | None = None) -> tuple[ListedRun, ...]:
    """The stored runs, newest first; none before the first one makes your own store."""
    if not url and file_stamp() == (None, None):
        return ()
    with open_store(url, make=False) as store:
        return listed_runs(store, limit)


def listed_runs(store: Store, limit: int | None = None, skip: int = 0) -> tuple[ListedRun, ...]:
    """The stored runs, newest first, without the first `skip` of them."""
    found = store.runs(limit, skip)
    counts = store.counts() if limit is None else store.counts([run.id for run in found])
    return tuple(ListedRun(run=run, samples=counts.get(run.id, 0)) for run in found)


def removed(
    refs: tuple[str, ...], url: str | None, *, dry_run: bool = False
) -> tuple[RemovedRun, ...]:
    """Delete these runs with their samples, and return them.

    refs: ids, prefixes of ids, or 'last'; runs that cannot be read are deleted, too. Raises
    StoreError if one does not exist; then none is deleted.
    """
    with open_store(url, make=False) as store:
        found = dict(map(store.head, refs))
        counts = store.counts()
        if not dry_run:
            store.remove(tuple(found))
    return tuple(
        RemovedRun(id=id_, host=host, samples=counts.get(id_, 0)) for id_, host in found.items()
    )
