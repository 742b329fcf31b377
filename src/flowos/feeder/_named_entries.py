"""Which data sets of a cache folder a person means, and the source that one of them is of."""

from collections.abc import Sequence
from pathlib import Path

from flowos._dataclasses import dataclass, replace
from flowos.feeder._cache_entry import CacheEntry
from flowos.feeder._extensions import ALL
from flowos.feeder._one_line import listed
from flowos.feeder._paths import absolute
from flowos.feeder._resolve_source import Where, places_of, source_at
from flowos.feeder._source_options import SourceOptions
from flowos.feeder._url import without_secrets
from flowos.model import FeedError


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The entries of a cache folder, each by its key; those with a name, by it."""

    by_key: dict[str, CacheEntry]
    by_name: dict[str, list[CacheEntry]]

    def called(self, word: str) -> list[CacheEntry]:
        """A name may be of several: it says nothing of options, nor of all of many shards."""
        return self.by_name.get(word) or self.by_name.get(_name(word), [])


def named_entries(
    where: Where, asked: SourceOptions, entries: Sequence[CacheEntry], folder: Path
) -> tuple[CacheEntry, ...]:
    """The one of the data set that all words are together, as a feed takes them; where that is not
    cached, the one of each word by itself. Never both.

    A word is a source, which need not be there any more if it is as it was written, or a key.
    Raises FeedError if a word has nothing here, or may be one of several.
    """
    words, lookup = places_of(where), _lookup(entries)
    if len(words) > 1:
        together = lookup.by_key.get(_key_of(words, asked)[0])
        if together is not None:
            return (together,)
    found = {word: _entry_of(word, asked, lookup, folder) for word in words}
    named = tuple(dict.fromkeys(entry for entry in found.values() if entry is not None))
    missing = [word for word, entry in found.items() if entry is None]
    if missing:
        what = listed(list(map(_shown, missing)))
        why = (
            f", nor of these {len(words)} as one data set"
            if len(words) > 1
            else _why_missing(words[0], asked, lookup)
        )
        raise FeedError(f"cache folder {folder}: there is nothing of {what} in it{why}")
    return named


def _lookup(entries: Sequence[CacheEntry]) -> _Lookup:
    by_name: dict[str, list[CacheEntry]] = {}
    for entry in entries:
        if name := entry.source():
            by_name.setdefault(name, []).append(entry)
    return _Lookup({entry.folder.name: entry for entry in entries}, by_name)


def _entry_of(word: str, asked: SourceOptions, lookup: _Lookup, folder: Path) -> CacheEntry | None:
    """Raises FeedError if it may be one of several."""
    if word in lookup.by_key:
        return lookup.by_key[word]
    called = [] if _has_options(asked) else lookup.called(word)
    if "://" in word and len(called) == 1:
        return called[0]  # to open a URL may be to wait for its server
    of_source = lookup.by_key.get(_key_of(word, asked)[0])
    if of_source is not None and (of_source in called or not called):
        return of_source
    found = called if of_source is None else [*called, of_source]
    if len(found) > 1:
        keys = ", ".join(entry.folder.name for entry in found)
        raise FeedError(
            f"cache folder {folder}: {_shown(word)} may be one of several; give its key: {keys}"
        )
    return found[0] if found else None


def _has_options(asked: SourceOptions) -> bool:
    """Those that a key is of."""
    return replace(asked, files=ALL) != SourceOptions()


def _why_missing(word: str, asked: SourceOptions, lookup: _Lookup) -> str:
    if called := lookup.called(word):
        keys = ", ".join(entry.folder.name for entry in called)
        return f" with these options; what is called so has the key {keys}"
    why = _key_of(word, asked)[1]
    return f": {why}" if why else ""


def source_of(entry: CacheEntry, where: Where, asked: SourceOptions) -> Where:
    """What of `where` the entry is of. Raises FeedError if that is not to be found any more."""
    name, why = entry.source(), ""
    for source in (where, *places_of(where), name):
        key, why = _key_of(source, asked)
        if key == entry.folder.name:
            return source
    raise FeedError(
        f"cache folder {entry.folder}: its source cannot be compared: "
        + (why or f"{name} with these options is another data set; give them as it was filled")
    )


def _key_of(where: Where, asked: SourceOptions) -> tuple[str, str]:
    """The key, or why there is none."""
    try:
        return source_at(where, asked)[1], ""
    except FeedError as why:
        return "", str(why).removeprefix("Feed: ")


def _name(word: str) -> str:
    """What a source is called that was given so."""
    try:
        return without_secrets(word) if "://" in word else str(absolute(word))
    except FeedError:  # the current folder was removed
        return word


def _shown(word: str) -> str:
    return without_secrets(word) if "://" in word else word
