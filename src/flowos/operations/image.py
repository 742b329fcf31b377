"""`flowos image`: imports, builds, lists, verifies, exports and removes images.

An image is complete or does not exist: it is built under a hidden name and renamed, and what an
interrupt or a full disk leaves is removed. The digest identifies an image; names refer to it.
Names are kept in the library itself, provenance in the store.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass, replace
from flowos._user_folders import expanded
from flowos.drivers.images import skopeo, squashfs
from flowos.engine import here, remove_tree, utc_of
from flowos.model import Argv, EnvironmentRefused, ImageConfig, OnProgress, Progress
from flowos.operations._images import _names
from flowos.operations._images._build import (
    Definition,
    Dockerfile,
    Recipe,
    Suite,
    bases_of,
    built,
    chosen_builder,
    described,
    name_of,
    recipe_at,
    recipe_digest,
)
from flowos.operations._images._export import FORMS, WRITERS, form_of, write_oci_archive
from flowos.operations._images._make import (
    ImageRequest,
    MadeImage,
    checked_architecture,
    file_digest,
    is_complete,
    made,
    one_line_errors,
    own_architecture,
    taken,
)
from flowos.operations._images._names import find, found
from flowos.operations._images._plan import build_plan
from flowos.operations._images._scratch import scratch, why
from flowos.operations._images._sources import (
    kind_of,
    open_registry,
    open_source,
    resolve_reference,
)
from flowos.operations._images._tools import processors
from flowos.store import ImageRecord, open_store

__all__ = [
    "FORMS",
    "Definition",
    "Dockerfile",
    "Inspected",
    "ListedImage",
    "MadeImage",
    "Recipe",
    "Suite",
    "VerifiedImage",
    "build_image",
    "chosen_builder",
    "export_image",
    "find",
    "found",
    "images",
    "import_image",
    "inspect",
    "name_of",
    "planned_build",
    "planned_import",
    "planned_removal",
    "recipe_at",
    "recipe_digest",
    "remove_image",
    "verify",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedImage:
    """A name, or an image without one (then the name is empty).

    at: time of its file, ISO 8601 in UTC. path: None if the file is missing; then no size or time.
    """

    name: str
    digest: str
    path: Path | None = None
    size_bytes: int = 0
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What is known of an image. names: in the library; none for a file outside of it.

    expected: the digest that it was made with; "" if unknown. kept: its provenance.
    """

    path: Path
    digest: str
    expected: str
    config: ImageConfig
    names: tuple[str, ...] = ()
    kept: ImageRecord | None = None

    @property
    def complaint(self) -> str:
        return _names.damage(self.path, self.digest, self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedImage:
    """Result of a verification. expected: the digest that it must have; "" if unknown."""

    path: Path
    expected: str
    have: str

    @property
    def ok(self) -> bool:
        return not self.complaint

    @property
    def complaint(self) -> str:
        return _names.damage(self.path, self.have, self.expected)


def silent(_progress: Progress) -> None:
    """Default callback: does nothing."""


def import_image(
    source: str,
    *,
    name: str | None = None,
    architecture: str = "",
    url: str | None = None,
    on_progress: OnProgress = silent,
) -> MadeImage:
    """Make an image of a folder, a tar, a Docker or OCI archive, a squashfs, a SIF or docker://.

    name: by default derived from the source's. architecture: as OCI names it, by default this
    machine's. Raises EnvironmentRefused, with the reason in one line, if it cannot be made.
    """
    called = _names.name_from(source) if name is None else name
    asked = _asked(called, _recorded(source), architecture)
    kind = _kind(source)
    with open_store(url) as store, scratch() as work, one_line_errors(source, work):
        on_progress(Progress(doing=f"reading {source}"))
        if kind == "registry":
            opened = open_registry(source, work, asked.architecture, on_progress)
        else:
            path = Path(asked.source)
            opened = open_source(path, kind, work, asked.architecture)
            if kind == "squashfs" and is_complete(path):
                return taken(path, asked, store)
        return made(opened, asked, store, on_progress)


def build_image(
    recipe: Recipe,
    *,
    name: str,
    architecture: str = "",
    url: str | None = None,
    on_progress: OnProgress = silent,
) -> MadeImage:
    """Make an image by a recipe. Raises EnvironmentRefused if it fails or no builder works."""
    source = described(recipe)
    recipe, notes = _with_bases(recipe)
    asked = replace(_asked(name, source, architecture), recipe_digest=recipe_digest(recipe))
    with open_store(url) as store, scratch() as work, one_line_errors(source, work):
        opened = built(recipe, work, asked.architecture, on_progress)
        done = made(opened, asked, store, on_progress)
    return replace(done, notes=(*notes, *done.notes))


def export_image(name: str, to: Path, *, form: str = "", url: str | None = None) -> Path:
    """Write an image to a new file or folder; a damaged image is refused.

    form: squashfs, folder, tar or oci-archive; by default that of the name's suffix. A tar whose
    name ends in .gz or .tgz is compressed.
    """
    form = form_of(to, form)
    to = to.absolute()
    if to.exists() or to.is_symlink():
        raise EnvironmentRefused(f"{to} is there already: remove it, or name another place")
    if not to.parent.is_dir():
        raise EnvironmentRefused(f"{to}: there is no folder {to.parent}")
    path = find(name)
    with scratch() as work, one_line_errors(str(to), to.parent), _hidden_folder(to) as hidden:
        seen = _verified(path)
        if not seen.ok:
            raise EnvironmentRefused(f"image {name}: {seen.complaint}")
        if form == "oci-archive":
            architecture = _architecture_of(seen.expected, url)
            write_oci_archive(path, hidden / to.name, name, architecture, work)
        else:
            WRITERS[form](path, hidden / to.name, work)
        (hidden / to.name).rename(to)
    return to


def planned_import(source: str, architecture: str = "") -> tuple[Argv, ...]:
    """The programs that an import would run, in their order."""
    kind, work = _kind(source), PurePath("WORK")
    machine = checked_architecture(architecture)
    squashing = squashfs.squash(work / "image", processors=processors())
    if kind == "registry":
        reference = resolve_reference(source)
        return (skopeo.fetch(reference, work / "fetched", architecture=machine), squashing)
    if kind in ("squashfs", "sif"):
        inner = Path(source).absolute() if kind == "squashfs" else work / "squashfs"
        unsquashing = squashfs.unsquash(inner, work / "unpacked", processors=processors())
        return (unsquashing, squashing)
    return (squashing,)


def planned_build(recipe: Recipe, architecture: str = "") -> tuple[Argv, ...]:
    """The programs that a build would run, in their order."""
    recipe, _ = _with_bases(recipe)
    machine = checked_architecture(architecture)
    squashing = squashfs.squash(PurePath("WORK/image"), processors=processors())
    return (*build_plan(recipe, Path("WORK"), machine), squashing)


def images() -> tuple[ListedImage, ...]:
    """Every name, newest first, then the images without one."""
    stored, named = _names.stored(), _names.names()
    nameless = [("", digest) for digest in stored if digest not in named.values()]
    return tuple(_listed(name, digest, stored) for name, digest in (*named.items(), *nameless))


def verify(name: str) -> VerifiedImage:
    """Read a whole image (by name, digest or path); compare its digest with the expected one.

    A file outside of the library has an expected digest only if the library has the same image.
    """
    path = _resolved_path(name)
    if path.is_file():
        seen = _verified(path)
    else:
        seen = VerifiedImage(path=path, expected="", have=here().image_at(path).digest)
    is_known = not seen.expected and seen.have in _names.stored()
    return replace(seen, expected=seen.have) if is_known else seen


def inspect(name: str, url: str | None = None) -> Inspected:
    """The configuration and provenance of an image (by name, digest or path)."""
    path = _resolved_path(name)
    seen = here().image_at(path)
    expected = _names.digest_in_name(path)
    digest = expected or seen.digest
    with open_store(url, make=False) as store:
        kept = store.image(digest)
    return Inspected(
        path=path,
        digest=seen.digest,
        expected=expected,
        config=seen.config,
        names=tuple(each for each, target in _names.names().items() if target == digest),
        kept=kept,
    )


def remove_image(name: str) -> tuple[str, ...]:
    """Remove a name, and the image with its last name; by digest, all its names at once.

    Returns what was done, a line each. The image's provenance stays in the store.
    """
    _names.resolve_digest(name, _names.names())  # raises before anything is created or locked
    try:
        with _names.changing():
            digest, going, left = _leaving(name, _names.links())
            path = _names.path_of(digest)
            for each in going:
                _names.drop_name(each)
            if not left:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentRefused(f"cannot remove {name}: {why(error, _names.library())}") from error
    done = tuple(f"forgotten: {each}" for each in going)
    if left:
        return (*done, f"kept: {digest[:19]}, which is still called {', '.join(left)}")
    return tuple(filter(None, (*done, f"removed: {path}", here().remove_unpacked(digest))))


def planned_removal(name: str) -> tuple[str, ...]:
    """Return what `remove_image` would do, a line each."""
    digest, going, left = _leaving(name, _names.names())
    done = tuple(f"would forget: {each}" for each in going)
    if left:
        return (*done, f"would keep: {digest[:19]}, which is still called {', '.join(left)}")
    return (*done, f"would remove: {_names.path_of(digest)}")


def _leaving(name: str, called: dict[str, str]) -> tuple[str, list[str], list[str]]:
    """The digest; which of its names are removed, and which stay."""
    digest = _names.resolve_digest(name, called)
    names = [each for each, target in called.items() if target == digest]
    going = [name] if name in names else names
    return digest, going, [each for each in names if each not in going]


def _listed(name: str, digest: str, stored: dict[str, Path]) -> ListedImage:
    path = stored.get(digest)
    with suppress(OSError):  # removed by another process
        if path is not None:
            seen = path.stat()
            size, at = seen.st_size, utc_of(seen.st_mtime)
            return ListedImage(name=name, digest=digest, path=path, size_bytes=size, at=at)
    return ListedImage(name=name, digest=digest)


def _with_bases(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe with bases from the library for the names in FROM that it has; a note for each."""
    named = bases_of(recipe)
    if not named or not isinstance(recipe, Dockerfile):
        return recipe, ()
    ours = _names.names()
    names = [name for name in named if name in ours and name not in dict(recipe.bases)]
    bases = tuple((name, Path(found(name).source)) for name in names)
    notes = tuple(f"FROM {name}: the image of that name in your library" for name in names)
    return replace(recipe, bases=(*recipe.bases, *bases)), notes


@contextmanager
def _hidden_folder(to: Path) -> Iterator[Path]:
    """A hidden folder next to the target. Raises EnvironmentRefused if that is not writable."""
    try:
        hidden = Path(tempfile.mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    except OSError as error:
        raise EnvironmentRefused(f"{to}: cannot write there: {error.strerror}") from error
    try:
        yield hidden
    finally:
        remove_tree(hidden)


def _resolved_path(name: str) -> Path:
    is_path = "/" in name or Path(name).is_file()
    return Path(name).absolute() if is_path else find(name)


def _verified(path: Path) -> VerifiedImage:
    return VerifiedImage(path=path, expected=_names.digest_in_name(path), have=file_digest(path))


def _asked(name: str, source: str, architecture: str) -> ImageRequest:
    return ImageRequest(
        name=_names.checked_name(name),
        source=source,
        architecture=checked_architecture(architecture),
    )


def _kind(source: str) -> str:
    if source.startswith(skopeo.SCHEME):
        return "registry"
    return kind_of(Path(_recorded(source)))


def _recorded(source: str) -> str:
    """The source as it is recorded: a file by its absolute path."""
    is_reference = source.startswith(skopeo.SCHEME)
    return source if is_reference else str(expanded(source).absolute())


def _architecture_of(digest: str, url: str | None) -> str:
    with open_store(url, make=False) as store:
        kept = store.image(digest)
    return (kept.architecture if kept else "") or own_architecture()
