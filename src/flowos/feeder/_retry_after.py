"""How long a busy server asks to be left alone: HTTP's `Retry-After`, seconds or a date."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_SECONDS = 120.0
"""More is not waited at once: a server may be wrong, and may be well again earlier."""


def asked_pause(why: Exception) -> float:
    """Seconds, 0 if the answer that is the error asks for none, or has no header to read.

    Errors of `requests`, `httpx` and `huggingface_hub` have a response, those of `aiohttp` headers.
    """
    for answer in (getattr(why, "response", None), why):
        headers = getattr(answer, "headers", None)
        if isinstance(headers, Mapping):
            said = next((v for k, v in headers.items() if str(k).lower() == "retry-after"), "")
            return min(max(0.0, _seconds(str(said).strip())), LONGEST_SECONDS)
    return 0.0


def _seconds(said: str) -> float:
    if said.isascii() and said.isdecimal():
        return float(said[:9])
    try:
        return parsedate_to_datetime(said).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
