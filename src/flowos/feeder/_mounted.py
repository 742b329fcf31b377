"""Sources that are files here: a folder, tar shards, token arrays. Native code lists and reads."""

import glob
import io
import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

import numpy as np

from flowos._dataclasses import dataclass
from flowos.feeder._endings import ARRAYS, BIN, PACKED_SHARDS, SHARD_COMPANIONS, SHARDS, TAR
from flowos.feeder._entries import digest
from flowos.feeder._interfaces import Listing, PrefetchBudget
from flowos.feeder._one_line import listed, one_line
from flowos.feeder._paths import absolute, check_path
from flowos.feeder._source_options import Record, SourceOptions, refuse_others
from flowos.feeder._url import expand
from flowos.model import FeedError, brief_repr

if TYPE_CHECKING:
    from flowos._native import Catalog, Counter, FolderPrefetcher

_THREADS = 32
_MAX_BYTES = (1 << 63) - 1
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """kind: of what is below the root. files: the shards or arrays, relative to it."""

    name: str
    root: Path
    kind: Literal["folder", "tars", "arrays"]
    files: tuple[str, ...] = ()
    member: str = ""
    record: Record | None = None
    header_bytes: int = 0

    def key(self) -> str:
        """Two sources with the same one have the same samples, unless files were changed."""
        record = f"{self.record.dtype.str}{self.record.shape}" if self.record else ""
        return digest(self.kind, str(self.root), *self.files, self.member, record)

    def catalog(
        self, found: "Counter | None" = None, early: "FolderPrefetcher | None" = None
    ) -> "Catalog":
        """early: reads a folder meanwhile. Raises FeedError if nothing is found."""
        from flowos._native import Catalog

        root, files = str(self.root), list(self.files)
        if self.kind == "folder":
            return Catalog.list_folder(root, _THREADS, found, early)
        if self.kind == "tars":
            return Catalog.list_tars(root, files, self.member, _THREADS, found)
        assert self.record
        return Catalog.list_arrays(root, files, self.header_bytes, self.record.size_bytes)

    def listing(self, budget: PrefetchBudget) -> Listing:
        """The catalog; files are read while it is listed. Raises FeedError if there is none."""
        from flowos._native import FolderPrefetcher

        if self.kind != "folder":
            return Listing(self.catalog)
        early = FolderPrefetcher(str(self.root), budget.in_flight, budget.max_bytes)
        return Listing(partial(self.catalog, early=early), early)

    def still_holds(self, catalog: "Catalog") -> bool:
        """No sample came or went since it was listed, and no shard or array was written."""
        return catalog.still_holds(str(self.root), _THREADS)


def mounted(places: Sequence[str], asked: SourceOptions) -> Mounted:
    """places: a folder, or files and patterns of one kind. Raises FeedError if nothing is found."""
    for place in places:
        check_path(place)
    words = [str(absolute(place)) for place in places]
    if len(words) == 1 and os.path.isdir(words[0]):  # noqa: PTH112 - never fails
        return _of_folder(words[0], asked)
    files = [found for word in words for found in _matching(word)]
    return _of_files(listed(words), files, asked)


def _matching(place: str) -> list[Path]:
    """As a shell does: braces first, then patterns, which have to match something."""
    if os.path.exists(place):  # noqa: PTH110 - never fails, whatever a pattern is as a path
        return [Path(place)]
    found: list[Path] = []
    for word in expand(place):
        some = sorted(glob.glob(word)) if _PATTERN & set(word) else [word]  # noqa: PTH207 - a word
        if not some or not _is_there(some[0]):
            raise FeedError(f"Feed: there is no {word}: is it mounted here, and spelled so?")
        found += map(Path, some)
    return found


def _is_there(place: str) -> bool:
    """Raises FeedError if that cannot be said."""
    try:
        Path(place).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as why:
        raise FeedError(f"Feed: {place} cannot be looked at: {why.strerror}") from None
    return True


def _of_folder(name: str, asked: SourceOptions) -> Mounted:
    """Of files that are samples, of nothing but shards, or, where it is said so, of arrays."""
    root = Path(name).resolve()
    try:
        if asked.dtype is not None or asked.length is not None:
            arrays = [path for path in _shown_in(root) if path.suffix in ARRAYS]
            if not arrays:
                raise FeedError(
                    f"Feed: {name} has no .npy and no .bin in it, of which dtype= and length= say"
                )
            return _of_files(name, arrays, asked)
        if shards_in(root) == TAR:
            shards = [path for path in _shown_in(root) if path.suffix == TAR]
            return _of_files(name, shards, asked)
    except OSError as why:
        raise FeedError(f"Feed: {name} cannot be listed: {why.strerror}") from why
    refuse_others(name, asked)
    return Mounted(name=name, root=root, kind="folder")


def _shown_in(folder: Path) -> list[Path]:
    """Sorted. What is hidden may be in the making."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def shards_in(folder: Path) -> str:
    """The ending of what is in a folder of nothing but shards; empty: it is no such folder.

    Looks no further than the first other file: there may be a million. OSError.
    """
    found = set()
    try:
        listed = os.scandir(folder)
    except ValueError:  # it can be no path
        return ""
    with listed as entries:
        for entry in entries:
            ending = Path(entry.name).suffix
            if entry.name.startswith("."):
                continue
            if ending in SHARDS:
                found.add(ending)
            elif ending not in SHARD_COMPANIONS:
                return ""
    return found.pop() if len(found) == 1 else ""


def _of_files(name: str, files: Sequence[Path], asked: SourceOptions) -> Mounted:
    paths = [file.absolute() for file in files]
    root = Path(os.path.commonpath([path.parent for path in paths]))
    below = tuple(str(path.relative_to(root)) for path in paths)
    root, endings = root.resolve(), {path.suffix for path in paths}
    if endings == {TAR}:
        refuse_others(name, asked, "member")
        return Mounted(name=name, root=root, kind="tars", files=below, member=asked.member)
    if len(endings) == 1 and endings <= set(ARRAYS):
        refuse_others(name, asked, "dtype", "length")
        header_bytes, record = _layout(paths, asked)
        return Mounted(
            name=name,
            root=root,
            kind="arrays",
            files=below,
            header_bytes=header_bytes,
            record=record,
        )
    raise FeedError(
        f"Feed: {name}: expected a folder, .tar shards, or .npy or .bin arrays, all of one kind"
        f"; {_instead(paths)}"
    )


def _instead(paths: Sequence[Path]) -> str:
    """What to give in place of files that are no source, or of several folders."""
    if any(path.name.endswith(PACKED_SHARDS) for path in paths):
        return "shards are read as they lie, uncompressed: unpack them to .tar"
    if all(map(os.path.isdir, paths)):
        return "of folders give one, or the one that they lie in"
    return "where each file is a sample, give the folder that they lie in"


def _layout(paths: Sequence[Path], asked: SourceOptions) -> tuple[int, Record]:
    """Bytes before the first record, and what each is; of all arrays the same."""
    if paths[0].suffix == BIN:
        if asked.dtype is None or not asked.length:
            raise FeedError(f"Feed: {paths[0]}: say what is in it, as dtype='uint16', length=1024")
        return 0, _record(paths[0], asked.dtype, (asked.length,))
    layouts = {_npy_layout(path, asked): path for path in reversed(paths)}
    if len(layouts) > 1:
        one, other = list(layouts.values())[-2:]
        raise FeedError(f"Feed: {other} and {one} differ in dtype, in shape or in their headers")
    return next(iter(layouts))


def _npy_layout(path: Path, asked: SourceOptions) -> tuple[int, Record]:
    shape, is_fortran, dtype, header_bytes = _npy_header(path)
    if asked.dtype is not None and asked.dtype != dtype:
        raise FeedError(f"Feed: dtype={asked.dtype}, but {path} holds {dtype}")
    if is_fortran and len(shape) > 1:
        raise FeedError(
            f"Feed: {path} is in Fortran order, in which no sample lies by itself: "
            "write it again, as np.save(path, np.ascontiguousarray(array))"
        )
    if asked.length:
        return header_bytes, _record(path, dtype, (asked.length,))
    if len(shape) < 2:
        raise FeedError(
            f"Feed: {path} has the shape {shape}: say how long a sample is, as length=1024"
        )
    return header_bytes, _record(path, dtype, shape[1:])


def _npy_header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran order, type, and bytes of the header. Raises FeedError if it is no
    array, holds objects, or the file is not as long as the header says.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            shape, is_fortran, dtype = _READERS.get(version, _READERS[2, 0])(file)
            header_bytes, file_bytes = file.tell(), os.fstat(file.fileno()).st_size
    except OSError as why:
        raise FeedError(f"Feed: {path} cannot be read: {why.strerror}") from why
    except Exception as why:  # the header is Python, in which anything can be wrong
        raise FeedError(f"Feed: {path}: no .npy array: {one_line(why)}") from why
    if dtype.hasobject:
        raise FeedError(f"Feed: {path} holds Python objects, which are never loaded")
    if any(length < 0 for length in shape):
        raise FeedError(f"Feed: {path}: no .npy array: its shape is {shape}")
    there, wanted = file_bytes - header_bytes, math.prod(shape) * dtype.itemsize
    if there != wanted:
        what = "is cut off" if there < wanted else "has bytes behind its array"
        raise FeedError(
            f"Feed: {path} {what}: {wanted} bytes are {shape} of {dtype}, and {there} follow its "
            "header; write it again"
        )
    return shape, is_fortran, dtype, header_bytes


def _record(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Record:
    record = Record(dtype=dtype, shape=shape)
    if record.size_bytes > _MAX_BYTES:
        raise FeedError(
            f"Feed: {path}: a sample of shape {brief_repr(shape)} has 2**63 bytes or more: "
            "give a smaller length"
        )
    return record


_Header: TypeAlias = tuple[tuple[int, ...], bool, np.dtype[Any]]


def _header_3_0(file: BinaryIO) -> _Header:
    """Names of fields are in UTF-8: as escapes they pass through the reader of Latin-1."""
    length = int.from_bytes(file.read(4), "little")
    header = file.read(length)
    escaped = header.decode().encode("ascii", "backslashreplace")
    length += len(escaped) - len(header)  # a header that is cut off stays so
    as_2_0 = io.BytesIO(length.to_bytes(4, "little") + escaped)
    return np.lib.format.read_array_header_2_0(as_2_0, max_header_size=_MAX_HEADER)


_MAX_HEADER = 60_000  # ten thousand letters, as NumPy has it, of which each may be six
_READERS: dict[tuple[int, int], Callable[[BinaryIO], _Header]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): _header_3_0,
}
