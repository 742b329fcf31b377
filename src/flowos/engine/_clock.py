"""The clocks of the engine: the one place that chooses which clock is read."""

import time


def now() -> float:
    """Seconds since some start; never goes back. For durations."""
    return time.monotonic()


def worked() -> float:
    """Seconds for which a processor worked for this thread."""
    return time.thread_time()


def utc() -> str:
    """The date and time, ISO 8601 in UTC, to the second. For records."""
    return utc_of(time.time())


def utc_of(seconds: float) -> str:
    """The same of a file's time, in seconds since 1970."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
