"""What a person writes for data that is elsewhere: a URL, whose end may stand for many files."""

import fnmatch
import re
from collections.abc import Iterator
from itertools import product

from flowos._dataclasses import dataclass
from flowos.feeder._endings import SHARDS
from flowos.model import FeedError

# User information ends at the last @ of the authority; a key of S3 may have slashes, though.
_USER_INFO = re.compile(r"://(?:[^/\s]*@|[^/\s:\[]*:(?!\d+(?:/|\s|$))\S*@)")
_QUERY = re.compile(r"\?[^\s\"')]+")

_MANY = re.compile(r"[{*]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NUMBERS = re.compile(r"(\d+)\.\.(\d+)")
_MAX_NAMES = 1_000_000


@dataclass(frozen=True, slots=True)
class Url:
    """named: files, below the root. pattern: those to be listed, such as `*.tar`; empty: all.

    root: what is opened; it may hold secrets, so `shown` is what is displayed.
    """

    scheme: str
    root: str
    shown: str
    named: tuple[str, ...] = ()
    pattern: str = ""

    def matches(self, key: str) -> bool:
        return not self.pattern or fnmatch.fnmatchcase(key, self.pattern)


def read_url(text: str) -> Url:
    """Raises FeedError if it is no URL, or expands to too many."""
    scheme, colon, rest = text.partition("://")
    scheme = scheme.lower()
    text = scheme + colon + rest
    if not colon or not scheme or not rest:
        raise FeedError(f"{text!r} is no URL such as s3://bucket/folder")
    if scheme in ("http", "https") and "?" in rest:
        shown = without_secrets(text)
        raise FeedError(f"{shown}: what follows ? is not passed on: read it without, or by s3://")
    if "::" in text:  # fsspec's chain of file systems is its own language
        return Url(scheme, text, without_secrets(text))
    body = text.rstrip("/")
    many = _MANY.search(body)
    if not many and not body.endswith(SHARDS):
        return Url(scheme, body, without_secrets(body))
    cut = body.rfind("/", 0, many.start() if many else len(body))
    if cut < len(scheme) + len("://"):
        raise FeedError(f"{without_secrets(text)}: braces and * stand for names below a bucket")
    root, last = body[:cut], body[cut + 1 :]
    if "*" in last:
        return Url(scheme, root, without_secrets(root), pattern=last)
    return Url(scheme, root, without_secrets(root), named=tuple(expand(last)))


def expand(pattern: str) -> list[str]:
    """`a-{000..002}.tar` and `{x,y}.tar` as a shell expands them. Raises FeedError for too many."""
    pieces = _BRACES.split(pattern)
    choices = [[word] if at % 2 == 0 else list(_choices(word)) for at, word in enumerate(pieces)]
    return ["".join(words) for words in product(*choices)]


def _choices(inside: str) -> Iterator[str]:
    numbers = _NUMBERS.fullmatch(inside)
    if not numbers:
        yield from inside.split(",")
        return
    first, last = numbers[1], numbers[2]
    if abs(int(last) - int(first)) >= _MAX_NAMES:
        raise FeedError(f"{{{inside}}} stands for more than {_MAX_NAMES} names")
    step = 1 if int(first) <= int(last) else -1
    padded = any(len(word) > 1 and word.startswith("0") for word in (first, last))
    width = max(len(first), len(last)) if padded else 0
    for number in range(int(first), int(last) + step, step):
        yield f"{number:0{width}d}"


def without_secrets(url: str) -> str:
    """Without user and password, and without what signs it."""
    return _USER_INFO.sub("://", url).partition("?")[0]


def user_info(url: str) -> str:
    """`user:password`, as it is written; empty if there is none."""
    found = _USER_INFO.search(url)
    return found[0].removeprefix("://").removesuffix("@") if found else ""


def line_without_secrets(line: str) -> str:
    """Of what another program says: the same for each address in it."""
    return _QUERY.sub("", _USER_INFO.sub("://", line))
