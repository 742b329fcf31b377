"""From what a person calls the data to the source of it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from flowos.feeder._endings import PARQUET
from flowos.feeder._entries import digest
from flowos.feeder._mounted import Mounted, mounted, shards_in
from flowos.feeder._paths import absolute, check_path
from flowos.feeder._source_options import SourceOptions, refuse_others
from flowos.feeder._url import read_url, without_secrets
from flowos.model import FeedError, brief_repr

if TYPE_CHECKING:
    from flowos.feeder._interfaces import Source

Location: TypeAlias = str | PathLike[str]
Where: TypeAlias = Location | Sequence[Location]

_ENDPOINTS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_ENDPOINT")
"""Two stores may have a bucket of the same name."""


def source_at(where: Where, asked: SourceOptions) -> "tuple[Mounted | Source, str]":
    """The source and its cache key. Raises FeedError if it is no source.

    where: a folder; tar shards or token arrays, by path, pattern or several of them; Parquet files;
    a URL.
    """
    places = places_of(where)
    if any("://" in place for place in places):
        return _at_url(places, asked)
    check_path(places[0])
    if _is_table(places[0], asked):
        return _of_table(places, asked)
    found = mounted(places, asked)
    return found, found.key()


def refuse_inside(where: Where, asked: SourceOptions, cache: Path) -> None:
    """Raises FeedError if the cache lies inside the data, where it would be listed too.

    By what the file system says they are: symbolic links and mounts lead to the same folder.
    """
    root, *others = places_of(where)
    said_by_ending = (asked.dtype, asked.length, asked.column or None, asked.label_column or None)
    if others or "://" in root or any(word is not None for word in said_by_ending):
        return
    real = Path(os.path.realpath(cache))
    for above in (real, *real.parents):
        with suppress(OSError):
            below = real.relative_to(above).parts
            if above.samefile(root) and not any(part.startswith(".") for part in below):
                is_in = "lies in" if below else "is"
                raise FeedError(
                    f"Feed: the cache folder {cache} {is_in} the source, {root}, and would become "
                    "data of it: give one outside of it"
                )


def places_of(where: Where) -> list[str]:
    """Raises FeedError if one of them is none."""
    places: list[object] = [where] if isinstance(where, (str, bytes, PathLike)) else []
    with suppress(TypeError):
        places = places or [*where]  # type: ignore[misc]  # a path is there already
    words = [_word(place) for place in places]
    if words and all(words):
        return [os.path.expanduser(word) for word in words]  # noqa: PTH111 - may be URLs
    said = brief_repr(where)
    if len(words) > 1:
        said = f"{brief_repr(places[words.index('')])} among them"
    elif not words and hasattr(where, "__iter__"):
        said = f"{said}, which has no path in it"
    raise FeedError(f"Feed: source={said}; expected a path, a URL, or several paths")


def _word(place: object) -> str:
    """Empty: it is no path."""
    word = fspath(place) if isinstance(place, (str, PathLike)) else ""
    return word if isinstance(word, str) else ""


def _at_url(places: list[str], asked: SourceOptions) -> "tuple[Source, str]":
    if len(places) > 1:
        raise FeedError(
            "Feed: several URLs, or paths besides; give one URL, whose end may stand for many: "
            "{000..099}"
        )
    text = places[0]
    if text.startswith("file://"):
        raise FeedError(f"Feed: {text}: give the path alone: {text.removeprefix('file://')}")
    if _is_table(text, asked):
        return _of_table(places, asked)
    from flowos.feeder._remote import open_url

    url = read_url(text)
    refuse_others(url.shown, asked, "member")
    key = digest(url.shown, *url.named, url.pattern, asked.member, *_endpoints())
    return open_url(text, member=asked.member), key


def _is_table(place: str, asked: SourceOptions) -> bool:
    if place.endswith(PARQUET) or asked.column or asked.label_column:
        return True
    with suppress(OSError):
        return "://" not in place and shards_in(Path(place)) == PARQUET
    return False


def _of_table(places: list[str], asked: SourceOptions) -> "tuple[Source, str]":
    if len(places) > 1:
        raise FeedError("Feed: several Parquet files; give the folder that they lie in")
    from flowos.feeder._parquet import ParquetSource

    place = places[0] if "://" in places[0] else str(absolute(places[0]).resolve())
    refuse_others(without_secrets(places[0]), asked)
    source = ParquetSource(place, column=asked.column, label_column=asked.label_column)
    return source, digest(source.name, asked.column, asked.label_column, *_endpoints())


def _endpoints() -> list[str]:
    return [os.environ.get(name, "") for name in _ENDPOINTS]
