"""`flowos image`: images made, kept, found, checked and removed.

An image is made whole or not at all: it is built under a hidden name and renamed, and what an
interrupt or a full disk leaves is removed. Identity is the digest; a name is what people call it.
"""

from dataclasses import dataclass
from pathlib import Path

from flowos.acts import _image_library as library
from flowos.acts._image_making import (
    Asked,
    Made,
    config_in_squashfs,
    file_digest,
    made,
    own_architecture,
    told_plainly,
)
from flowos.acts._image_scratch import scratch, why
from flowos.acts._image_sources import kind_of, open_source
from flowos.acts.measure import Emit, Progress
from flowos.model import EnvironmentRefused, ImageConfig
from flowos.store import KeptImage, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A name, or an image without one (then the name is empty). path: None if it is not here."""

    image: KeptImage
    path: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What is known of an image. kept: under its names; none of a file outside of the library."""

    path: Path
    digest: str
    config: ImageConfig
    kept: tuple[KeptImage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    path: Path
    expected: str
    have: str

    @property
    def ok(self) -> bool:
        return self.have == self.expected


def silent(_progress: Progress) -> None:
    """Nobody looks."""


def find(name: str, url: str | None = None) -> Path:
    """The file of an image, by its name or the beginning of its digest.

    EnvironmentRefused, with the names that are known: there is none. The stem of the file's name is
    the sha256 that it must have.
    """
    with open_store(url) as store:
        named = store.images()
    digest = library.digest_meant(name, named)
    if digest not in library.stored():
        kept = next(image for image in named if image.digest == digest)
        raise EnvironmentRefused(
            f"image {name!r} is not in {library.library()} any more ({digest[:19]}, made of "
            f"{kept.source}): make it again"
        )
    return library.path_of(digest)


def import_image(
    source: str,
    *,
    name: str = "",
    architecture: str = "",
    url: str | None = None,
    emit: Emit = silent,
) -> Made:
    """Make an image of a folder, a tar, a Docker or OCI archive, a squashfs or a SIF.

    name: by default one made of the source's. architecture: as OCI names it, by default this
    machine's. EnvironmentRefused says in one line why not.
    """
    path = Path(source).expanduser().absolute()
    asked = Asked(
        name=library.checked_name(name or library.name_from(source)),
        source=str(path),
        architecture=architecture or own_architecture(),
    )
    kind = kind_of(path)
    with open_store(url) as store, scratch() as work, told_plainly(source, work):
        emit(Progress(doing=f"reading {source}"))
        opened = open_source(path, kind, work, asked.architecture)
        return made(opened, asked, store, emit)


def images(url: str | None = None) -> tuple[Listed, ...]:
    """Every name, newest first, then what lies in the library without one."""
    here = library.stored()
    with open_store(url) as store:
        named = store.images()
    nameless = [
        KeptImage(name="", digest=digest, at="", size_bytes=stored.size_bytes)
        for digest, stored in sorted(here.items())
        if digest not in {image.digest for image in named}
    ]
    return tuple(
        Listed(image=image, path=here[image.digest].path if image.digest in here else None)
        for image in (*named, *nameless)
    )


def verify(name: str, url: str | None = None) -> Verified:
    """Read the whole image and compare its digest with the one it must have."""
    path = find(name, url)
    return Verified(path=path, expected=f"sha256:{path.stem}", have=file_digest(path))


def inspect(name: str, url: str | None = None) -> Inspected:
    """What an image (by name, digest or path) says of itself, and how it came to be."""
    is_path = "/" in name or Path(name).is_file()
    path = Path(name).absolute() if is_path else find(name, url)
    digest = file_digest(path)
    with open_store(url) as store:
        kept = tuple(image for image in store.images() if image.digest == digest)
    return Inspected(path=path, digest=digest, config=config_in_squashfs(path), kept=kept)


def remove(name: str, url: str | None = None) -> tuple[str, ...]:
    """Forget a name, and remove the image with its last name; by digest, all its names at once.

    Answers with what was done, a line each.
    """
    with open_store(url) as store:
        named = store.images()
        digest = library.digest_meant(name, named)
        names = [image.name for image in named if image.digest == digest]
        going = [name] if name in names else names
        for each in going:
            store.forget_image(each)
    done = tuple(f"forgotten: {each}" for each in going)
    if left := [each for each in names if each not in going]:
        return (*done, f"kept: {digest[:19]}, which is still called {', '.join(left)}")
    path = library.path_of(digest)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentRefused(f"cannot remove {path}: {why(error, path)}") from error
    return (*done, f"removed: {path}")
