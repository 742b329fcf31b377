"""Names of images: a name is a link in the library, so that a lookup needs no database.

    $XDG_DATA_HOME/flowos/images/HEX.sqfs           an image
                                 NAME -> HEX.sqfs   its name

A link appears by renaming, so that a name always refers to one image. Changes of the library are
made under its lock.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from flowos.engine import here, locked
from flowos.model import (
    EnvironmentRefused,
    Image,
    StoreError,
    UnknownImage,
    UsageError,
    did_you_mean,
)
from flowos.store import default_file, open_store

SUFFIX = ".sqfs"
_FILE = r"([0-9a-f]{64})\.sqfs"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_TAKEN = ("bare", "auto", "last")
_DIGEST = r"(?:sha256:)?([0-9a-f]{6,64})"


def library() -> Path:
    return default_file().parent / "images"


def path_of(digest: str) -> Path:
    return library() / f"{digest.removeprefix('sha256:')}{SUFFIX}"


def digest_in_name(path: PurePath) -> str:
    """The digest in the name of a file in the library; "" for other files."""
    return f"sha256:{path.stem}" if path.parent == library() else ""


def damage(path: Path, have: str, expected: str) -> str:
    """The error message for a file with this digest; "" if it is the expected one."""
    if not expected or have == expected:
        return ""
    return f"{path} is damaged: it has {have}, not {expected}; make or import it again"


def stored() -> dict[str, Path]:
    """Digest -> its file in the library, with or without a name."""
    found = sorted((m[1], path) for path in _listed() if (m := re.fullmatch(_FILE, path.name)))
    return {f"sha256:{digest}": path for digest, path in found}


def links(name: str = "") -> dict[str, str]:
    """Name -> digest of the library's links, the newest first. name: of this one alone."""
    found = []
    for path in [library() / name] if name else _listed():
        with suppress(OSError, ValueError):  # no link, removed by another process, or no path
            target = re.fullmatch(_FILE, str(path.readlink()))
            if target and _is_name(name or path.name):
                found.append((-path.lstat().st_mtime_ns, path.name, f"sha256:{target[1]}"))
    return {name: digest for _, name, digest in sorted(found)}


def names() -> dict[str, str]:
    """`links`, after the names that an older FlowOS kept in its store were taken over.

    Not to be called within `changing`. Raises StoreError if that store cannot be read.
    """
    if not (found := links()) and stored():
        _take_over_old_names()
        found = links()
    return found


def checked_name(name: str) -> str:
    """Raises UsageError if it could be a path, a file of the library, a runtime or a digest."""
    if not _is_name(name):
        raise UsageError(
            f"image name {name!r:.120}: letters, digits, '.', '_' and '-', at most 100, beginning "
            f"with a letter or digit; not {', '.join(_TAKEN)}, not like a digest, and not ending "
            f"in {SUFFIX}"
        )
    return name


def name_from(source: str) -> str:
    """The default name for a source: docker://host/tools/fio:3 -> fio-3, a/b/c.tar.gz -> c."""
    words = source.removeprefix("docker://").partition("@")[0].rstrip("/").rpartition("/")[2]
    stem = re.sub(r"(\.(tar|tgz|gz|xz|bz2|zst|sif|sqfs|squashfs|oci|img|def))+$", "", words)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:100]
    return name if _is_name(name) else f"image-{name or 'x'}"


def resolve_digest(word: str, by_name: dict[str, str]) -> str:
    """The digest of a name or a digest's prefix. Raises EnvironmentRefused if none or several."""
    if word in by_name:
        return by_name[word]
    begun = re.fullmatch(_DIGEST, word)
    digests = {*stored(), *by_name.values()}
    fits = sorted(d for d in digests if begun and d.startswith(f"sha256:{begun[1]}"))
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise UnknownImage(f"{word!r:.120} fits {len(fits)} images: write more of the digest")
    known = did_you_mean(word, by_name) or f"; known are {', '.join(sorted(by_name))}"
    if not by_name:
        known = "; none has a name yet: 'flowos image import' or 'build' makes one"
    raise UnknownImage(f"no image is called {word!r:.120}{known}")


def find(name: str) -> Path:
    """The file of an image, by its name or the prefix of its digest.

    The stem of the file's name is its expected sha256. Raises EnvironmentRefused, with the known
    names, if there is none.
    """
    digest = resolve_digest(name, links(name) or names())
    path = path_of(digest)
    if not path.exists():
        raise EnvironmentRefused(
            f"image {name!r} is not in {library()} any more ({digest[:19]}{_made_of(digest)}): "
            "make it again"
        )
    return path


def found(name: str) -> Image:
    """The image of `find`. Raises EnvironmentRefused also if its digest has changed."""
    path = find(name)
    image = here().image_at(path)
    if complaint := damage(path, image.digest, digest_in_name(path)):
        raise EnvironmentRefused(f"image {name}: {complaint}")
    return image


@contextmanager
def changing() -> Iterator[Path]:
    """The library's folder, locked against other writers. Raises OSError if not writable."""
    folder = library()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder / ".lock", os.O_RDWR | os.O_CREAT):
        yield folder


def give_name(name: str, digest: str) -> str:
    """Within `changing`: set a name. Returns the digest that it had before; "" if none."""
    before = links(name).get(name, "")
    link = library() / f".{name}.link"
    link.unlink(missing_ok=True)
    link.symlink_to(path_of(digest).name)
    link.rename(library() / name)
    return before


def drop_name(name: str) -> None:
    """Remove a name, within `changing`."""
    (library() / name).unlink(missing_ok=True)


def _listed() -> list[Path]:
    return list(library().iterdir()) if library().is_dir() else []


def _is_name(name: str) -> bool:
    is_other = name in _TAKEN or name.endswith(SUFFIX) or re.fullmatch(_DIGEST, name)
    return bool(re.fullmatch(_NAME, name)) and not is_other


def _take_over_old_names() -> None:
    """Take over, once, the names that FlowOS kept in its store until schema 3."""
    if not default_file().exists():
        return
    with open_store() as store:
        if not (old := store.old_image_names()):
            return
        with changing():
            if not links():
                for name, digest in old:
                    if path_of(digest).exists():
                        give_name(name if _is_name(name) else name_from(name), digest)
        store.forget_old_image_names()


def _made_of(digest: str) -> str:
    """A phrase on how the image was made; "" if unknown."""
    kept = None
    if default_file().exists():
        with suppress(StoreError), open_store() as store:
            kept = store.image(digest)
    return f", made of {kept.source}" if kept and kept.source else ""
