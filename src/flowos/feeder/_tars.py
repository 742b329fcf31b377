"""Tar shards that are not files here: their members are found by reading headers in ranges.

WebDataset's layout: members of the same name up to its first dot are one sample, and stand
together. The index of a shard costs one small request per large member; small ones (a class, a
caption) come along with the header before them.
"""

import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.feeder._entries import add
from flowos.feeder._interfaces import Entry, Storage
from flowos.feeder._ranged_file import RangedFile
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Catalog, Counter

_BLOCK = 512
# Zeros at the end fill a record: GNU tar and Python write no more blocks of them, unless asked to.
_END = 21 * _BLOCK
_MAX_ZEROS = 1 << 20
# Holds a header, a member of a few numbers, and the next header or such an end; small next to a
# round trip.
_WINDOW = 12 << 10
_NEVER_THE_SAMPLE = frozenset({"cls", "json", "txt"})
_DUNDER = re.compile(r"__.*__")
_MAX_CLASS_BYTES = 1024
_WHOLE = re.compile(r"-?[0-9]+")
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sample: where its bytes are in the shard. word: what its .cls says; "": nothing that can be
    read; None: it has none."""

    name: str
    offset: int
    size_bytes: int
    word: str | None


def tar_catalog(
    storage: Storage,
    shards: Sequence[Entry],
    member: str,
    threads: int,
    found: "Counter | None" = None,
) -> "Catalog":
    """The samples of all shards, in the order of the shards; reads so many shards at once.

    member: which member is the sample, such as "jpg"; empty: the first that is no cls, json, txt.
    Raises FeedError if a shard is no tar, is truncated, or holds no sample.
    """
    from flowos._native import Catalog

    names: list[str] = []
    groups: list[int] = []
    offsets: list[int] = []
    sizes: list[int] = []
    words: list[str | None] = []
    for number, pieces in enumerate(_indexed(storage, shards, member, threads, found)):
        groups += [number] * len(pieces)
        names += [piece.name for piece in pieces]
        offsets += [piece.offset for piece in pieces]
        sizes += [piece.size_bytes for piece in pieces]
        words += [piece.word for piece in pieces]
    if not names:
        expected = f"with a member .{member}" if member else "of WebDataset's layout"
        raise FeedError(f"{storage.name}: no sample {expected} in {len(shards)} tar shards")
    labels, classes = _labels(words)
    return Catalog([shard.key for shard in shards], names, groups, sizes, labels, offsets, classes)


def _labels(words: Sequence[str | None]) -> tuple[list[int] | None, list[str]]:
    """Numbers, where all words are; else the places of the words in byte order, and these."""
    from flowos._native import Catalog

    if all(word is None for word in words):
        return None, []
    said = {word for word in words if word}
    classes = [] if all(map(_is_whole, said)) else sorted(said, key=os.fsencode)
    number = {word: at for at, word in enumerate(classes)} or {word: int(word) for word in said}
    return [number[word] if word else Catalog.NO_LABEL for word in words], classes


def _is_whole(word: str) -> bool:
    return bool(_WHOLE.fullmatch(word)) and -_LIMIT < int(word) < _LIMIT


def _indexed(
    storage: Storage, shards: Sequence[Entry], member: str, threads: int, found: "Counter | None"
) -> list[list[_Piece]]:
    def index(shard: Entry) -> list[_Piece]:
        where = f"{storage.name}/{shard.key}"
        grouping = _Grouping(where, member)
        try:
            for info, tar in _members(storage, shard):
                grouping.take(info, tar)  # which reads classes
        except tarfile.TarError as why:
            raise FeedError(f"{where}: not a whole tar file: {why}") from None
        grouping.finish()
        add(found, len(grouping.pieces))
        return grouping.pieces

    return storage.patience.map(index, shards, max(1, min(threads, len(shards))))


class _Grouping:
    """Puts the members of one shard together to samples, as the native listing of files does."""

    def __init__(self, where: str, member: str) -> None:
        self.pieces: list[_Piece] = []
        self._where, self._wanted = where, member.removeprefix(".")
        self._key = ""
        self._word: str | None = None
        self._chosen: tuple[tarfile.TarInfo, str] | None = None

    def take(self, info: tarfile.TarInfo, tar: tarfile.TarFile) -> None:
        folder, slash, base = info.name.rpartition("/")
        stem, dot, ending = base.partition(".")
        top = info.name.partition("/")[0]
        if not stem or not dot or _DUNDER.fullmatch(top):
            return
        key, ending = f"{folder}{slash}{stem}", ending.lower()
        if key != self._key:
            self.finish()
            self._key = key
        if ending == "cls":
            self._word = _word_in(tar, info)
        if ending == self._wanted if self._wanted else ending not in _NEVER_THE_SAMPLE:
            self._choose(info, ending)

    def _choose(self, info: tarfile.TarInfo, ending: str) -> None:
        if self._chosen is None:
            self._chosen = info, ending
        elif self._chosen[1] == ending:
            raise FeedError(
                f"{self._where} holds {info.name} twice for one sample; write it again with one"
            )

    def finish(self) -> None:
        if self._chosen:
            info = self._chosen[0]
            self.pieces.append(_Piece(self._key, info.offset_data, info.size, self._word))
        self._key, self._word, self._chosen = "", None, None


def _members(storage: Storage, shard: Entry) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    """The files of a tar. Raises tarfile.TarError or FeedError if it is none, or is not whole."""
    file = RangedFile(storage, shard, _WINDOW)
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for info in tar:
            if info.isreg() and not info.issparse():
                yield info, tar
        end = tar.offset
    _check_end(f"{storage.name}/{shard.key}", file, end)


def _check_end(name: str, file: RangedFile, end: int) -> None:
    """tarfile takes what it cannot read for the end, and looks at nothing behind it.

    Raises FeedError if that is no end, or a member follows.
    """
    file.seek(end)
    rest = file.read(_END + _BLOCK) or b""
    if any(rest[:_BLOCK]):
        raise FeedError(f"{name}: damaged: no header of a member at byte {end}")
    if not rest.strip(b"\0"):
        rest += file.read(_MAX_ZEROS) or b""
    zeros = len(rest) - len(rest.lstrip(b"\0"))
    at = zeros - zeros % _BLOCK
    if _is_header(rest[at : at + _BLOCK]):
        raise FeedError(
            f"{name}: another archive is behind its end, from byte {end + at} on, as of "
            "cat a.tar b.tar: give both by themselves, or write them as one"
        )


def _is_header(block: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _word_in(tar: tarfile.TarFile, info: tarfile.TarInfo) -> str:
    """Empty: it is too long, or no text."""
    inside = tar.extractfile(info) if info.size <= _MAX_CLASS_BYTES else None
    word = os.fsdecode(inside.read()).strip(" \t\r\n") if inside else ""
    return word if all(letter >= " " for letter in word) else ""
