"""What each stage of a feed does, and for which one all else waits."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from flowos._dataclasses import dataclass, replace

if TYPE_CHECKING:
    from flowos._native import FeederStats, StageStats

STAGES = ("list", "fetch", "decode", "cache_write", "hand_over")
CONSUMER = "consumer"
_OF_FEEDER = STAGES[1:]
_RARELY = 0.05
"""A consumer that waits for a smaller part of the time is what binds."""

Seconds: TypeAlias = Mapping[str, float]
"""By stage, and of the consumer: for so long it bound. All together, the time that has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStage:
    """What one stage has done since the feed was made.

    seconds: that it was busy, summed over the samples in it; divided by the time that passed, how
    many of these there are on average. queued_seconds: that samples waited before it, likewise;
    divided by the time that passed, the mean length of its queue. samples, bytes: that are through
    it, bytes as they came to it. binding_seconds: for so long all else waited for it. None goes
    back.

    list: finding out what the data set has; bytes: of samples that were read meanwhile.
    fetch: from the request to the source, the cache or another node until the bytes are here; its
    queue: samples that a place among the reads was not free for. decode: to arrays; its queue:
    samples that Python has read, until a thread takes them. cache_write: into this node's cache.
    hand_over: putting batches together; its queue: samples of batches that wait to be taken.
    """

    name: str
    seconds: float = 0.0
    queued_seconds: float = 0.0
    samples: int = 0
    bytes: int = 0
    binding_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Binding:
    """What all else waited for, and for what part of the time.

    consumer: the part in which it worked. Where that is the larger one, more is gained there.
    """

    name: str
    share: float
    consumer: float = 0.0

    def __str__(self) -> str:
        also = f"; {CONSUMER} {self.consumer:.0%}" if self.share < self.consumer < 1 else ""
        return f"{self.name.replace('_', ' ')} binds, {self.share:.0%}{also}"


def binding(now: Seconds, before: Seconds | None = None) -> Binding | None:
    """Between two looks. None: no time has passed.

    A consumer that waited for less than a twentieth of the time binds; else the stage that it
    waited for longest.
    """
    spent = {name: seconds - (before or {}).get(name, 0.0) for name, seconds in now.items()}
    whole = sum(spent.values())
    if whole <= 0:
        return None
    stages = [(seconds, name) for name, seconds in spent.items() if name != CONSUMER]
    waited = sum(seconds for seconds, _ in stages)
    longest, name = max(stages)
    if waited < _RARELY * whole:
        longest, name = whole - waited, CONSUMER
    return Binding(name, longest / whole, (whole - waited) / whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeTimes:
    """Of a decode function: seconds in it and before it, as a `FeedStage`'s, over all threads.

    began_late, decoded_late: that the consumer waited for a batch of which nothing was decoded yet,
    and for samples of one. put_together: that it made one array of them.
    """

    seconds: float = 0.0
    queued_seconds: float = 0.0
    samples: int = 0
    bytes: int = 0
    began_late: float = 0.0
    decoded_late: float = 0.0
    put_together: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedTimes:
    """What is known at one moment: seconds since the first request.

    consumer: it did not wait. reads: it waited, and a thread had nothing to do. threads: it waited,
    and all were at work. working: by stage, over all threads. python: where a function decodes; the
    consumer of the others is then the thread that hands it batches.
    """

    consumer: float = 0.0
    reads: float = 0.0
    threads: float = 0.0
    working: tuple[float, ...] = (0.0,) * len(_OF_FEEDER)
    python: DecodeTimes | None = None


def bound(before: FeedTimes, now: FeedTimes) -> dict[str, float]:
    """For so long each stage bound between two looks, with at least some work between them."""
    working = [late - early for early, late in zip(before.working, now.working, strict=True)]
    each = (now.threads - before.threads) / (sum(working) or 1.0)
    found = {name: each * spent for name, spent in zip(_OF_FEEDER, working, strict=True)}
    found["fetch"] += now.reads - before.reads
    found[CONSUMER] = now.consumer - before.consumer
    if now.python is None:
        return found
    return _with_python(found, before.python or DecodeTimes(), now.python)


def _with_python(
    found: dict[str, float], early: DecodeTimes, late: DecodeTimes
) -> dict[str, float]:
    """The feeder's own parts share the time that the consumer waited for a batch to begin."""
    whole = sum(found.values())
    own = whole - found[CONSUMER]
    began_late = late.began_late - early.began_late
    if own > 0:
        found = {name: spent * began_late / own for name, spent in found.items()}
    else:
        found["fetch"] = began_late
    found["decode"] += late.decoded_late - early.decoded_late
    found["hand_over"] += late.put_together - early.put_together
    found[CONSUMER] = 0.0
    found[CONSUMER] = max(0.0, whole - sum(found.values()))
    return found


class StageMeter:
    """Adds up for how long each stage bound, from one look to the next; safe from all threads."""

    def __init__(self, listing: FeedStage) -> None:
        self._listing = listing
        self._lock = threading.Lock()  # guards what follows
        self._before = FeedTimes()
        self._bound = dict.fromkeys((*STAGES, CONSUMER), 0.0)
        self._bound["list"] = listing.binding_seconds

    def look(
        self,
        stats: "Callable[[], FeederStats]",
        times: Callable[[], DecodeTimes] | None = None,
    ) -> "tuple[FeederStats, tuple[FeedStage, ...], Seconds]":
        """What the feeder says now, its stages, and for how long each of these bound."""
        with self._lock:
            native, python = stats(), times() if times else None
            now = _look_of(native, python)
            if now.working == self._before.working:  # whom to blame shows when some work is done
                now = replace(now, threads=self._before.threads)
            for name, more in bound(self._before, now).items():
                self._bound[name] += max(0.0, more)
            self._before = now
            seconds = dict(self._bound)
        return native, (self._listing, *_stages_of(native, python, seconds)), seconds


def _look_of(native: "FeederStats", python: DecodeTimes | None) -> FeedTimes:
    return FeedTimes(
        consumer=native.consumer_seconds,
        reads=native.waited_for_reads_seconds,
        threads=native.waited_seconds - native.waited_for_reads_seconds,
        working=tuple(getattr(native, name).working_seconds for name in _OF_FEEDER),
        python=python,
    )


def _stages_of(
    native: "FeederStats", python: DecodeTimes | None, seconds: Seconds
) -> Iterator[FeedStage]:
    for name in _OF_FEEDER:
        counted: StageStats | DecodeTimes = getattr(native, name)
        more = 0.0
        if python and name == "decode":
            counted = python
        elif python and name == "hand_over":
            more = python.put_together
        yield FeedStage(
            name=name,
            seconds=counted.seconds + more,
            queued_seconds=counted.queued_seconds,
            samples=counted.samples,
            bytes=counted.bytes,
            binding_seconds=seconds[name],
        )
