"""Merges the layers of an image into one tree of files.

Nothing is unpacked: the tree is in memory and refers to each file's bytes, so an archive cannot
write anywhere. Rules of layers: OCI image specification, layer.md ("Applying Changesets").
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import Literal

from flowos._dataclasses import dataclass, field
from flowos.drivers.images import CONFIG

_HIDDEN = ".wh."
_HIDES_ALL = ".wh..wh..opq"
_MAX_HOPS = 40
_MAX_NAME_BYTES, _MAX_PATH_BYTES = 255, 4095  # of Linux, NAME_MAX and PATH_MAX


@dataclass(frozen=True, slots=True)
class Content:
    """Location of a file's bytes: in a file on this node, or in `text` itself."""

    file: str
    offset: int
    size_bytes: int
    text: bytes = b""


@dataclass(eq=False, slots=True)
class File:
    """One inode, hard-linked if it has several names. mtime: whole seconds, as in POSIX."""

    content: Content
    mode: int
    mtime: int = 0


@dataclass(frozen=True, slots=True)
class Symlink:
    target: str


@dataclass(eq=False, slots=True)
class Folder:
    mode: int = 0o755
    entries: "dict[str, TreeNode]" = field(default_factory=dict)


TreeNode = File | Symlink | Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """One member of a layer, in archive order. target: of a symlink or hard link."""

    path: str
    kind: Literal["file", "folder", "symlink", "hardlink"]
    mode: int = 0o644
    mtime: int = 0
    content: Content = Content("", 0, 0)
    target: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A node visited by `walk`.

    first: the earlier name of a hard-linked file. source_mtime: of the .py from which a .pyc was
    compiled.
    """

    path: str
    node: TreeNode
    first: str = ""
    source_mtime: int | None = None


def merged(layers: Iterable[Iterable[TreeEntry]]) -> Folder:
    """Tree of these layers, the lowest first. Raises ValueError for an invalid entry."""
    root = Folder()
    for layer in layers:
        entries = list(layer)
        for entry in entries:
            _hide(root, entry)
        for entry in entries:
            parts = _parts(entry.path)
            if not parts:
                root.mode = entry.mode
            elif not parts[-1].startswith(_HIDDEN):
                _apply(root, entry, parts)
    return root


def one_layer(entries: Iterable[TreeEntry]) -> Folder:
    """Tree of an archive that is no layer: names with `.wh.` have no special meaning."""
    root = Folder()
    for entry in entries:
        if parts := _parts(entry.path):
            _apply(root, entry, parts)
        else:
            root.mode = entry.mode
    return root


def found(root: Folder, path: str) -> TreeNode | None:
    """Node at `path` inside, following symbolic links as after chroot; None if there is none."""
    for _ in range(_MAX_HOPS):
        *parents, name = _split(path) or [""]
        try:
            at = _folder(root, parents, path, make=False)
        except ValueError:
            return None
        node = at.entries.get(name) if at and name else at
        if not isinstance(node, Symlink):
            return node
        absolute = node.target.startswith("/")
        path = node.target if absolute else "/".join((*parents, node.target))
    return None


def put(root: Folder, path: str, node: TreeNode) -> None:
    """Put a node there, replacing any other; missing parents are created."""
    *parents, name = _split(path)
    at = _folder(root, parents, path, make=True)
    assert at is not None
    at.entries[name] = node


def walk(root: Folder) -> Iterator[Item]:
    """Every node below the root in a reproducible order: by name, folders before their entries.

    No recursion: a hostile archive may be deeper than Python's stack.
    """
    first: dict[int, str] = {}
    todo = _children("", root)
    while todo:
        path, node = todo.pop()
        if isinstance(node, Folder):
            yield Item(path, node)
            todo += _children(path, node)
        elif isinstance(node, File):
            before = first.setdefault(id(node), path)
            if before != path:
                yield Item(path, node, first=before)
            else:
                yield Item(path, node, source_mtime=_source_mtime(path, root))
        else:
            yield Item(path, node)


def total_bytes(root: Folder) -> int:
    """Total size of the files; a hard-linked one counts once."""
    return sum(
        item.node.content.size_bytes
        for item in walk(root)
        if isinstance(item.node, File) and not item.first
    )


def with_timeless_source(head: bytes, source_mtime: int) -> bytes:
    """Head of a .pyc with its source's time set to 0, like every time in an image.

    A .pyc stores the time of its source (PEP 552). If they differ, Python recompiles at every
    start, as it cannot write into an image. A .pyc that is already stale is left unchanged.
    """
    by_time, named = head[4:8] == bytes(4), int.from_bytes(head[8:12], "little")
    if len(head) < 16 or not by_time or named != source_mtime & 0xFFFFFFFF:
        return head
    return head[:8] + bytes(4) + head[12:]


PYC_HEAD_BYTES = 16


def _source_mtime(path: str, root: Folder) -> int | None:
    """mtime of the x.py next to the `__pycache__` of x.VERSION.pyc (PEP 3147).

    The source may be a link, as it is in some Debian packages.
    """
    cache, _, name = path.rpartition("/")
    if not name.endswith(".pyc") or cache.rpartition("/")[2] != "__pycache__":
        return None
    source = found(root, f"{cache}/../{name.partition('.')[0]}.py")
    return source.mtime if isinstance(source, File) else None


def _children(path: str, node: Folder) -> list[tuple[str, TreeNode]]:
    prefix = f"{path}/" if path else ""
    return [(prefix + name, node.entries[name]) for name in sorted(node.entries, reverse=True)]


def _hide(root: Folder, entry: TreeEntry) -> None:
    """Apply a whiteout: it hides entries of lower layers, wherever it stands in its own layer."""
    *parents, name = _parts(entry.path) or [""]
    if not name.startswith(_HIDDEN):
        return
    at = _folder(root, parents, entry.path, make=False)
    if at is None:
        return
    if name == _HIDES_ALL:
        at.entries.clear()
    else:
        at.entries.pop(name.removeprefix(_HIDDEN), None)


def _apply(root: Folder, entry: TreeEntry, parts: list[str]) -> None:
    *parents, name = parts
    at = _folder(root, parents, entry.path, make=True)
    assert at is not None
    there = at.entries.get(name)
    if entry.kind == "folder" and isinstance(there, Folder):
        there.mode = entry.mode
    else:
        at.entries[name] = _node(root, entry)


def _node(root: Folder, entry: TreeEntry) -> TreeNode:
    if entry.kind == "folder":
        return Folder(entry.mode)
    if entry.kind == "symlink":
        return Symlink(entry.target)
    if entry.kind == "file":
        return File(entry.content, entry.mode, entry.mtime)
    linked = _linked(root, entry)
    if linked is None or isinstance(linked, Folder):
        raise ValueError(f"{entry.path!r} is a hard link to {entry.target!r}, which is no file")
    return linked


def _linked(root: Folder, entry: TreeEntry) -> TreeNode | None:
    *parents, name = _parts(entry.target) or [""]
    at = _folder(root, parents, entry.path, make=False)
    return at.entries.get(name) if at else None


def _parts(path: str) -> list[str]:
    parts = _split(path)
    if ".." in parts:
        raise ValueError(f"entry {path!r} leads out of the image")
    return parts


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _folder(root: Folder, parts: list[str], path: str, *, make: bool) -> Folder | None:
    """Folder at `parts`, following links as after chroot; None if missing and not `make`."""
    trail, todo, hops = [root], parts[::-1], 0
    while todo:
        name = todo.pop()
        if name == "..":
            trail = trail[:-1] or [root]
            continue
        node = trail[-1].entries.get(name)
        if isinstance(node, Symlink):
            hops += 1
            if hops > _MAX_HOPS:
                raise ValueError(f"entry {path!r} lies behind a loop of symbolic links")
            trail = [root] if node.target.startswith("/") else trail
            todo += _split(node.target)[::-1]
        elif isinstance(node, Folder):
            trail.append(node)
        elif not make:
            return None
        elif node is not None:
            raise ValueError(f"entry {path!r} lies in {name!r}, which is no folder")
        else:
            trail[-1].entries[name] = made = Folder()
            trail.append(made)
    return trail[-1]


_BOUND = ("proc", "sys", "dev", "tmp")
_FOLDERS = (
    *("var/tmp", "home", "mnt", "mnt/flowos", "opt", "root", "run", "scratch", "work", "data"),
)
_FILES = ("etc/passwd", "etc/group", "etc/hosts", "etc/resolv.conf")


def complete(root: Folder, config: bytes, cwd: PurePath | None = None) -> None:
    """Add what every image of ours has: its configuration, and mount points for the runtimes.

    Existing mount points stay as they are, except links, onto which a runtime cannot bind. cwd: the
    folder that a container engine would create at the start. Raises ValueError for an entry that
    no mounted image can show.
    """
    folder, _, name = CONFIG.partition("/")
    above = root.entries.get(folder)
    if not isinstance(above, Folder):
        root.entries[folder] = above = Folder()
    above.mode = 0o755
    above.entries[name] = File(Content("", 0, len(config), config), 0o644)
    for name in _BOUND:
        if not isinstance(root.entries.get(name), Folder):
            root.entries[name] = Folder(0o1777 if name == "tmp" else 0o755)
    for path in _FOLDERS:
        if not isinstance(found(root, path), Folder):
            put(root, path, Folder(0o1777 if path == "var/tmp" else 0o755))
    for path in _FILES:
        there = found(root, path)
        put(root, path, there if isinstance(there, File) else File(Content("", 0, 0), 0o644))
    if cwd is not None and cwd.is_absolute():
        with suppress(ValueError):  # a file is in its way: the start says so
            _folder(root, _split(str(cwd)), str(cwd), make=True)
    for item in walk(root):
        _check(item)


def _check(item: Item) -> None:
    """Raises ValueError for what mksquashfs writes, but Linux does not read, or only in part."""
    path = item.path.encode(errors="surrogateescape")
    name = path.rpartition(b"/")[2]
    target = b"."
    if isinstance(item.node, Symlink):
        target = item.node.target.encode(errors="surrogateescape")
    if len(path) > _MAX_PATH_BYTES or len(name) > _MAX_NAME_BYTES:
        raise ValueError(
            f"entry {item.path!r:.120} has a path of {len(path)} bytes and a name of {len(name)}: "
            f"at most {_MAX_PATH_BYTES} and {_MAX_NAME_BYTES} can be read"
        )
    if not 0 < len(target) <= _MAX_PATH_BYTES:
        raise ValueError(
            f"entry {item.path!r:.120} is a symbolic link to a path of {len(target)} bytes: "
            f"1 to {_MAX_PATH_BYTES} can be read"
        )
    if b"\0" in path + target:
        raise ValueError(f"entry {item.path!r:.120} has a zero byte in its path or target")
