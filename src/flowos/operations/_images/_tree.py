"""Trees of files read from folders and tars, and written as one canonical tar.

The tar is the same for the same tree, wherever it came from: entries by name, root as owner, no
times. Device nodes, sockets and pipes are left out: runtimes mount a /dev of their own.
"""

import io
import math
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from flowos.drivers.images.tree import (
    PYC_HEAD_BYTES,
    Content,
    File,
    Folder,
    Item,
    Symlink,
    TreeEntry,
    TreeNode,
    walk,
    with_timeless_source,
)
from flowos.model import EnvironmentRefused

Written = Callable[[int], None]
"""Callback for progress: the number of bytes written since the last call."""

_CHUNK_BYTES = 1 << 20
_BLOCK = tarfile.BLOCKSIZE
_MAX_DIGITS = 20
_KINDS = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "symlink", tarfile.LNKTYPE: "hardlink"}


def read_folder(top: Path, *, ours: bool = False) -> Folder:
    """The tree of a folder, within its file system.

    ours: it was unpacked by us, so files that their owner may not read are opened all the same;
    their recorded mode stays. Raises EnvironmentRefused for a file that cannot be read.
    """
    root = Folder()
    inodes: dict[int, File] = {}
    device = top.stat().st_dev
    todo = [(top, root)]
    while todo:
        at, folder = todo.pop()
        for entry in _listed(at):
            seen = entry.stat(follow_symlinks=False)
            node = _node(Path(entry.path), seen, inodes, ours)
            if node is None:
                continue
            folder.entries[entry.name] = node
            if isinstance(node, Folder) and seen.st_dev == device:
                todo.append((Path(entry.path), node))
    return root


def read_tar(file: Path, offset: int, size: int, spare: Path) -> list[TreeEntry]:
    """The members of an uncompressed tar within a file.

    spare: an empty folder, for sparse files. Raises ValueError if the tar is damaged.
    """
    entries, end = [], 0
    with file.open("rb") as raw:
        window = Window(raw, offset, size)
        try:
            with tarfile.open(fileobj=window, mode="r:") as archive:
                for member in archive:
                    end = archive.offset  # a header that tarfile cannot read is an end to it, too
                    entry = _entry(archive, member, str(file), offset, spare)
                    if entry:
                        entries.append(entry)
                _check_end(window, end, size)
        except (tarfile.TarError, OverflowError, RecursionError) as error:
            raise ValueError(f"it is damaged or truncated ({error})") from error
    return entries


def write_tar(root: Folder, out: BinaryIO, written: Written) -> None:
    """Raises EnvironmentRefused if a file cannot be read, or changes meanwhile."""
    with _Sources() as sources:
        for item in walk(root):
            info = _header(item)
            out.write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
            if isinstance(item.node, File) and not item.first:
                for data in _bytes(item, item.node.content, sources):
                    out.write(data)
                    written(len(data))
                out.write(bytes(-info.size % _BLOCK))
        out.write(bytes(2 * _BLOCK))


class Window(io.RawIOBase):
    """A byte range of a file, as a file."""

    def __init__(self, raw: BinaryIO, offset: int, size: int) -> None:
        super().__init__()
        self._raw, self._offset, self._size, self._at = raw, offset, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, to: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + to)
        return self._at

    def read(self, count: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        count = left if count < 0 else min(count, left)
        data = os.pread(self._raw.fileno(), count, self._offset + self._at)
        self._at += len(data)
        return data


class _Sources:
    """Source files kept open: layers, or the last file of a folder."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def __enter__(self) -> "_Sources":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def read(self, file: str, count: int, offset: int) -> bytes:
        if file not in self._open:
            if len(self._open) >= 16:
                self._close()
            self._open[file] = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return os.pread(self._open[file], count, offset)

    def _close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()


def _listed(at: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(at) as entries:
            return list(entries)
    except OSError as error:
        raise EnvironmentRefused(f"{at} cannot be read: {error.strerror}") from error


def _node(path: Path, seen: os.stat_result, inodes: dict[int, File], ours: bool) -> TreeNode | None:
    mode = stat.S_IMODE(seen.st_mode)
    if stat.S_ISLNK(seen.st_mode):
        return Symlink(str(path.readlink()))
    if stat.S_ISDIR(seen.st_mode):
        _open_up(path, mode, 0o500, ours)
        return Folder(mode)
    if not stat.S_ISREG(seen.st_mode):
        return None
    if seen.st_nlink > 1 and seen.st_ino in inodes:
        return inodes[seen.st_ino]
    _open_up(path, mode, 0o400, ours)
    content = Content(str(path), 0, seen.st_size)
    return inodes.setdefault(seen.st_ino, File(content, mode, int(seen.st_mtime)))


def _open_up(path: Path, mode: int, needed: int, ours: bool) -> None:
    if ours and mode & needed != needed:
        path.chmod(mode | needed)
    elif not ours and not os.access(path, os.R_OK):
        raise EnvironmentRefused(
            f"{path} may not be read by you: leave it out, or have its owner make an archive"
        )


def _entry(
    archive: tarfile.TarFile, member: tarfile.TarInfo, file: str, offset: int, spare: Path
) -> TreeEntry | None:
    _check_records(member)
    mode, mtime = member.mode & 0o7777, int(member.mtime)
    if kind := _KINDS.get(member.type):
        return TreeEntry(path=member.name, kind=kind, mode=mode, target=member.linkname)  # type: ignore[arg-type]
    if member.issparse():
        content = _spread(archive, member, spare)
    elif member.isreg():
        content = Content(file, offset + member.offset_data, member.size)
    else:
        return None
    return TreeEntry(path=member.name, kind="file", mode=mode, mtime=mtime, content=content)


def _check_records(member: tarfile.TarInfo) -> None:
    """Raises ValueError for a broken record, in whose place tarfile puts 0."""
    size = member.pax_headers.get("size", "0")
    if member.size < 0 or not size.isdecimal() or len(size) > _MAX_DIGITS:
        raise ValueError(f"entry {member.name!r:.120} has no size: {size!r:.40}; archive it anew")
    if not math.isfinite(member.mtime):
        raise ValueError(f"entry {member.name!r:.120} has no time: {member.mtime}; archive it anew")


def _spread(archive: tarfile.TarFile, member: tarfile.TarInfo, spare: Path) -> Content:
    to = spare / f"sparse-{len(list(spare.iterdir()))}"
    inside = archive.extractfile(member)
    assert inside is not None
    with to.open("wb") as out:
        while data := inside.read(_CHUNK_BYTES):
            out.write(data)
    return Content(str(to), 0, member.size)


def _check_end(window: Window, at: int, size: int) -> None:
    """Raises ValueError if it lacks the zeros at the end: the tar was cut between two members."""
    window.seek(at)
    if at + _BLOCK > size or any(window.read(_BLOCK)):
        raise ValueError("it is truncated: its end mark is missing")


def _header(item: Item) -> tarfile.TarInfo:
    info = tarfile.TarInfo(item.path)
    node = item.node
    if isinstance(node, Folder):
        info.type, info.mode = tarfile.DIRTYPE, node.mode
    elif isinstance(node, Symlink):
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, node.target
    elif item.first:
        info.type, info.mode, info.linkname = tarfile.LNKTYPE, node.mode, item.first
    else:
        info.mode, info.size = node.mode, node.content.size_bytes
    return info


def _bytes(item: Item, content: Content, sources: _Sources) -> Iterator[bytes]:
    done = 0
    while done < content.size_bytes:
        data = _some(content, done, sources)
        if not data:
            raise EnvironmentRefused(f"{content.file} became shorter while it was read")
        if done == 0 and item.source_mtime is not None and len(data) >= PYC_HEAD_BYTES:
            head = with_timeless_source(data[:PYC_HEAD_BYTES], item.source_mtime)
            data = head + data[PYC_HEAD_BYTES:]
        done += len(data)
        yield data


def _some(content: Content, done: int, sources: _Sources) -> bytes:
    count = min(_CHUNK_BYTES, content.size_bytes - done)
    if not content.file:
        return content.text[done : done + count]
    try:
        return sources.read(content.file, count, content.offset + done)
    except OSError as error:
        raise EnvironmentRefused(f"{content.file} cannot be read: {error.strerror}") from error
