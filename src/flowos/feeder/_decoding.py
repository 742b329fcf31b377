"""A user function for every sample, called in background threads ahead of the consumer."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from flowos._dataclasses import dataclass
from flowos.feeder._arrays import stacked
from flowos.feeder._decode_threads import DecodeThreads, Interrupted
from flowos.feeder._extensions import ALL, PICTURES, SampleFilter, sample_filter
from flowos.feeder._one_line import one_line
from flowos.feeder._samples import Int64s, Samples
from flowos.feeder._source_options import Record
from flowos.feeder._stages import DecodeTimes
from flowos.feeder.decode import Pictures, image, jpeg
from flowos.model import FeedError, SampleError, brief_repr

if TYPE_CHECKING:
    from flowos._native import Batch, Decoder

_KNOWN_SAMPLES, _MAX_AT_ONCE = 64, 16
_AT_ONCE_SECONDS = 2e-4
"""As many samples as take so long are decoded by a thread at once, after the first ones."""

Decode: TypeAlias = Callable[[memoryview, int, int], object]
"""Of a sample's bytes, the epoch and the sample's number."""
Decoded: TypeAlias = tuple[NDArray[Any] | list[object], Int64s]
"""One array (n, ...) or a list, and which samples they are."""


@runtime_checkable
class Native(Protocol):
    """A decoder in native code, such as `fo.decode.jpeg(...)`."""

    @property
    def native(self) -> "Decoder": ...
    @property
    def record(self) -> Record:
        """What it makes of every sample."""


@runtime_checkable
class Seeded(Protocol):
    """A decoder in Python, of which what is random depends on epoch and sample only."""

    def decode(self, data: memoryview, epoch: int, sample: int, /) -> object:
        """From several threads at once. Any exception: its text is what is wrong with the bytes."""


@dataclass(frozen=True, slots=True)
class Way:
    """How samples are decoded: by native code, by a function, or not at all."""

    native: "Decoder | None" = None
    record: Record | None = None
    function: Decode | None = None
    files: SampleFilter = ALL
    """Those that are samples, by what was said, or by what it decodes."""


def chosen(decode: object, extensions: object = None) -> Way:
    """Raises FeedError for an invalid decoder or file extensions."""
    files = sample_filter(extensions, PICTURES if isinstance(decode, Pictures) else ())
    if decode is None:
        return Way(files=files)
    if decode in (image, jpeg):
        raise FeedError("Feed: decode=fo.decode.jpeg is to be called, as fo.decode.jpeg(224)")
    if isinstance(decode, Native):
        return Way(native=decode.native, record=decode.record, files=files)
    if isinstance(decode, Seeded) and not isinstance(decode, type):  # bytes has a decode too
        return Way(function=decode.decode, files=files)
    if callable(decode):
        return Way(function=lambda data, _epoch, _sample: decode(data), files=files)
    raise FeedError(
        f"Feed: decode={brief_repr(decode)}; expected fo.decode.jpeg(...), a function of bytes, "
        "or None"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What becomes of a sample that cannot be decoded: as in FeederSettings."""

    on_error: str
    max_skipped: int
    name: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class _Failed:
    """In place of what a sample was decoded to."""

    why: Exception


@dataclass(frozen=True, slots=True)
class _Started:
    """futures: of as many samples each as `at_once` says, but for the last one."""

    indices: Int64s
    at_once: int
    futures: list[Future[list[object]]]

    def results(self) -> Iterator[object]:
        """Of each sample."""
        left = len(self.indices)
        for future in self.futures:
            count = min(self.at_once, left)
            left -= count
            try:
                yield from future.result()
            except Exception as why:  # it was cancelled
                yield from [_Failed(why)] * count


@dataclass(slots=True)
class _Tally:
    """Of one thread: as a `DecodeTimes`."""

    seconds: float = 0.0
    queued_seconds: float = 0.0
    samples: int = 0
    bytes: int = 0


class Wait:
    """Seconds in `with` blocks of one thread, the one that lasts included; any thread may look."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)  # is changed as one

    def __enter__(self) -> None:
        self._state = (self._state[0], time.perf_counter())

    def __exit__(self, *_: object) -> None:
        self._state = (self.seconds(), None)

    def seconds(self) -> float:
        ended, since = self._state
        return ended if since is None else ended + time.perf_counter() - since


class Decoding:
    """The threads, and what they could not decode. One for a feed; batches come in order."""

    def __init__(self, decode: Decode, threads: int, ahead: int, policy: Policy) -> None:
        self._decode, self._policy = decode, policy
        self.ahead = ahead
        self.skipped = self.replaced = 0
        self.leave: Callable[[], None] = _nothing
        """Of the `Ahead` that decodes by it."""
        self._decoders = DecodeThreads(threads)
        self._of_threads: dict[int, _Tally] = {}  # by their numbers; each adds to its own
        self.began_late, self._decoded_late = Wait(), Wait()
        self._put_together = 0.0

    def times(self) -> DecodeTimes:
        """So far; from any thread."""
        tallies = list(self._of_threads.values())
        return DecodeTimes(
            seconds=sum(one.seconds for one in tallies),
            queued_seconds=sum(one.queued_seconds for one in tallies),
            samples=sum(one.samples for one in tallies),
            bytes=sum(one.bytes for one in tallies),
            began_late=self.began_late.seconds(),
            decoded_late=self._decoded_late.seconds(),
            put_together=self._put_together,
        )

    def start(self, batch: "Batch") -> _Started:
        numbers = batch.samples.tolist()
        call, epoch, since = self._decoders.submit, batch.epoch, time.perf_counter()
        samples = list(zip(Samples(batch), numbers, strict=True))
        at_once = self._samples_at_once()
        parts = (samples[at : at + at_once] for at in range(0, len(samples), at_once))
        futures = [call(self._decoded, part, epoch, since) for part in parts]
        return _Started(batch.samples, at_once, futures)

    def _samples_at_once(self) -> int:
        """To hand over a sample takes 10 us: of quick functions a thread gets several at once."""
        tallies = list(self._of_threads.values())
        samples, seconds = sum(t.samples for t in tallies), sum(t.seconds for t in tallies)
        if samples < _KNOWN_SAMPLES:
            return 1
        return max(1, min(_MAX_AT_ONCE, int(_AT_ONCE_SECONDS * samples / max(seconds, 1e-9))))

    def _decoded(
        self, samples: list[tuple[memoryview, int]], epoch: int, since: float
    ) -> list[object]:
        thread = threading.get_ident()
        mine = self._of_threads.get(thread) or self._of_threads.setdefault(thread, _Tally())
        began, made, decoded_bytes = time.perf_counter(), list[object](), 0
        failed = 0
        for data, sample in samples:
            try:
                made.append(_guarded(self._decode, data, epoch, sample))
                decoded_bytes += data.nbytes
            except Exception as why:
                made.append(_Failed(why))
                failed += 1
        took = time.perf_counter() - began
        mine.queued_seconds += len(samples) * (began - since) + (len(samples) - 1) / 2 * took
        mine.seconds += took
        mine.samples += len(samples) - failed
        mine.bytes += decoded_bytes
        return made

    def finish(self, started: _Started) -> Decoded:
        """Raises SampleError with the sample's name if it cannot be decoded."""
        values: dict[int, object] = {}
        failed: dict[int, Exception] = {}
        with self._decoded_late:
            for at, made in enumerate(started.results()):
                if isinstance(made, _Failed):
                    failed[at] = made.why
                else:
                    values[at] = made
        began, indices = time.perf_counter(), started.indices
        if failed:
            indices = self._without(failed, indices, values)
        batch = stacked([values[at] for at in sorted(values)])
        self._put_together += time.perf_counter() - began
        return batch, indices

    def _without(
        self, failed: dict[int, Exception], indices: Int64s, values: dict[int, object]
    ) -> Int64s:
        at, why = next(iter(failed.items()))
        error = SampleError(f"{self._policy.name(int(indices[at]))}: {one_line(why)}")
        counted = self.skipped + self.replaced + len(failed)
        is_error = self._policy.on_error == "error" or counted > self._policy.max_skipped
        if is_error or not values:  # an empty batch would train on nothing: its loss is NaN
            raise error from why
        good = sorted(values)
        if self._policy.on_error == "skip":
            self.skipped += len(failed)
            return indices[good]
        taken = np.arange(len(indices))
        for number, place in enumerate(failed):
            taken[place] = good[number % len(good)]
            values[place] = values[taken[place]]
        self.replaced += len(failed)
        return indices[taken]

    def close(self) -> None:
        """Waits for nothing."""
        self.leave()
        self._decoders.close()


def _nothing() -> None:
    return None


def _guarded(decode: Decode, data: memoryview, epoch: int, sample: int) -> object:
    """What would end a program, such as SystemExit, is the sample's error like any other."""
    try:
        return decode(data, epoch, sample)
    except (Exception, Interrupted):
        raise
    except BaseException as why:
        raise SampleError(one_line(why)) from why


class Ahead:
    """The batches of one epoch, decoded by the time they are asked for. To be stopped."""

    def __init__(self, decoding: Decoding, next_batch: "Callable[[], Batch | None]") -> None:
        self._decoding, self._next = decoding, next_batch
        self._room = threading.Semaphore(decoding.ahead)
        self._queue: SimpleQueue[_Started | BaseException | None] = SimpleQueue()
        self._stopped = False
        decoding.leave = self.leave
        self._thread = threading.Thread(target=self._run, name="flowos-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while self._room.acquire() and not self._stopped:
                batch = self._next()
                if batch is None:
                    break
                self._queue.put(self._decoding.start(batch))
            self._queue.put(None)
        except BaseException as why:
            self._queue.put(why)

    def take(self) -> Decoded | None:
        """None: the epoch is at its end."""
        with self._decoding.began_late:
            got = self._queue.get()
        if not isinstance(got, _Started):
            self._queue.put(got)  # the next time it ends so too
            if got is not None:
                raise got
            return None
        self._room.release()
        return self._decoding.finish(got)

    def leave(self) -> None:
        """Its thread begins nothing more."""
        self._stopped = True
        self._room.release()

    def stop(self, why: str) -> None:
        """Ends the requests for batches; joins the read under way.

        why: the error for a thread that waits for a batch meanwhile.
        """
        self.leave()
        self._thread.join()
        self._decoding.leave = _nothing  # else they keep each other, and the files of the feeder
        while not self._queue.empty():
            if isinstance(got := self._queue.get(), _Started):
                for future in got.futures:
                    future.cancel()
        self._queue.put(FeedError(why))
