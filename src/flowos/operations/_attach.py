"""`fo.attach`: use nodes that another program held, and left to their lease."""

from typing import TYPE_CHECKING, Unpack

from flowos._signatures import with_keywords
from flowos.engine import HeldSlice, Workers, ignore, provider_of
from flowos.model import SliceRefused
from flowos.operations._process_record import is_running, process_id
from flowos.operations._slice import slice_options, without_kernel
from flowos.operations._slice_options import DEFAULTS, SliceKeywords
from flowos.operations._slice_record import AttachedProvider
from flowos.operations.environment import Word
from flowos.operations.settings import pool_named
from flowos.operations.slices import slice_named

if TYPE_CHECKING:
    from flowos.engine import OnHoldEvent


@with_keywords(SliceKeywords, DEFAULTS)
def attach(
    id: str,
    env: Word = None,
    workers: Workers | None = None,
    *,
    requeue: bool = True,
    on_event: "OnHoldEvent | None" = None,
    **how: Unpack[SliceKeywords],
) -> HeldSlice:
    """The slice of this id, whose program is gone or has left it; its lease is renewed from now on.

    id: of a slice with a lease, or its beginning: see `flowos slice ls`. The other keywords are
    those of `fo.slice`. Raises SliceRefused if it is not held any more, or its program still uses
    it; StoreError if there is none.

    >>> try:
    ...     fo.attach("1b2c3d4e")
    ... except fo.FlowosError as error:
    ...     print(error)
    no slice '1b2c3d4e'...
    """
    record = slice_named(id)
    if record.process != process_id() and is_running(record.process):
        raise SliceRefused(f"slice {record.id} is used by {record.process}, which still runs")
    if record.ask.lease_seconds is None or record.is_over:
        why = f"is over: {record.why or record.state}" if record.is_over else "has no lease"
        raise SliceRefused(f"slice {record.id} {why}")
    pool = pool_named(record.pool)
    if workers == "ray":
        raise SliceRefused("attach: workers='ray': a Ray ends with its program: make another slice")
    options = slice_options(pool, env, workers, how)
    if options.env.kernel not in ("", record.ask.kernel):
        booted = f"kernel {record.ask.kernel!r}" if record.ask.kernel else "no kernel asked for"
        raise SliceRefused(
            f"slice {record.id} has nodes with {booted}, not {options.env.kernel!r:.80}"
        )
    options = without_kernel(options)
    provider = AttachedProvider(provider_of(pool), record, str(options.log or ""))
    held = HeldSlice(provider, record.ask, options, on_event or ignore, requeue=requeue)
    provider.belongs_to(held)
    return held
