"""What a person sets of a feed, checked: one clear line for what cannot be."""

import operator
import os

from flowos._dataclasses import dataclass
from flowos.feeder._interfaces import PrefetchBudget
from flowos.model import FeedError, brief_repr

_FIRST_IN_FLIGHT = 32
_MAX = 1 << 62
LAST = ("keep", "drop", "pad")
ON_ERROR = ("error", "skip", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSettings:
    """The keywords of `Feed`. Raises FeedError for an invalid value.

    epochs_ahead: how many are read ahead after the one that is asked for.
    """

    batch_size: int
    shuffle: bool
    seed: int
    last: str
    on_error: str
    max_skipped: int
    memory_bytes: int
    max_in_flight: int
    threads: int | None
    epochs_ahead: int = 1

    def __post_init__(self) -> None:
        whole("batch_size", self.batch_size, 1, (1 << 31) - 1)
        _one_of("shuffle", self.shuffle, (True, False))
        whole("seed", self.seed, 0, (1 << 64) - 1)
        _one_of("last", self.last, LAST)
        _one_of("on_error", self.on_error, ON_ERROR)
        whole("max_skipped", self.max_skipped, 0)
        whole("memory_bytes", self.memory_bytes, 1)
        whole("max_in_flight", self.max_in_flight, 1, 65536)
        if self.threads is not None:
            whole("threads", self.threads, 1, 65536)

    @property
    def prefetch_budget(self) -> PrefetchBudget:
        """While a source is listed it is not known yet what helps: as reading begins with."""
        return PrefetchBudget(
            in_flight=min(_FIRST_IN_FLIGHT, self.max_in_flight), max_bytes=self.memory_bytes // 2
        )

    @property
    def decode_threads(self) -> int:
        """For a person's function: as many as processors that we may use."""
        return self.threads or len(os.sched_getaffinity(0))

    @property
    def batches_ahead(self) -> int:
        """Those that a person's function decodes before they are asked for."""
        return 2 + self.decode_threads // self.batch_size


def whole(name: str, value: object, min_: int, max_: int = _MAX) -> None:
    """Raises FeedError if the value is no whole number between these."""
    if type(value) is not int or not min_ <= value <= max_:
        allowed = f"at least {min_}" if max_ == _MAX else f"{min_} to {max_}"
        advice = f"; give int({name})" if _is_another_integer(value) else ""
        raise FeedError(
            f"Feed: {name}={brief_repr(value)}; expected a whole number, {allowed}{advice}"
        )


def _is_another_integer(value: object) -> bool:
    """Such as NumPy's, which a checkpoint would hold as such."""
    return not isinstance(value, int) and hasattr(value, "__index__")


def sample_number(value: object, samples: int) -> int:
    """Also of NumPy. Raises FeedError if it is none of so many samples."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number < samples:
        raise FeedError(f"Feed: sample {brief_repr(value)}; expected 0 to {samples - 1}")
    return number


def _one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    if not any(type(value) is type(one) and value == one for one in known):
        words = ", ".join(repr(one) for one in known)
        raise FeedError(f"Feed: {name}={brief_repr(value)}; one of {words}")
