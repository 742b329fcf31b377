"""From an opened source to an image in the library, with its name and provenance."""

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.drivers.images import CONFIG, squashfs
from flowos.drivers.images.own_config import read_own_config
from flowos.drivers.images.tree import File, Folder, complete, found
from flowos.engine import utc
from flowos.model import (
    EnvironmentRefused,
    ImageConfig,
    OnProgress,
    Pairs,
    UsageError,
    did_you_mean,
    to_plain,
)
from flowos.operations._images import _library as library
from flowos.operations._images._layers import Part, digest_of, whole
from flowos.operations._images._scratch import why
from flowos.operations._images._sources import NO_CONFIG, Opened, elf_machine
from flowos.operations._images._tools import call, is_here, version
from flowos.store import ImageRecord, lies_on_network

if TYPE_CHECKING:
    from flowos.store import Store

_ARCHITECTURES = {
    "x86_64": ("amd64", 62),
    "aarch64": ("arm64", 183),
    "ppc64le": ("ppc64le", 21),
    "s390x": ("s390x", 22),
    "riscv64": ("riscv64", 243),
    "armv7l": ("arm", 40),
    "i686": ("386", 3),
    "mips64": ("mips64le", 8),
    "loongarch64": ("loong64", 258),
}
"""The kernel's name -> that of OCI, and ELF's e_machine."""

_RUNS_ON = {"386": "amd64", "arm": "arm64"}
"""Whose shell an image for the other may have."""

_NO_ROOT = "it has no /bin, /usr or /sbin: is it a root file system?"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeImage:
    """An image in the library. was_there: the same bytes were in the library before."""

    name: str
    image: ImageRecord
    path: Path
    was_there: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """What is to be made. source: as it is recorded; architecture: as OCI names it."""

    name: str
    source: str
    architecture: str
    recipe_digest: str = ""


def own_architecture() -> str:
    return _ARCHITECTURES.get(platform.machine(), (platform.machine(), 0))[0]


def checked_architecture(name: str) -> str:
    """The same, or that of this machine for "". Raises UsageError for an unknown one."""
    own = own_architecture()
    known = sorted({own, *(each for each, _ in _ARCHITECTURES.values())})
    if name and name not in known:
        same = _ARCHITECTURES.get(name, ("", 0))[0]
        hint = f"; did you mean {same!r}?" if same else did_you_mean(name, known)
        hint = hint or f"; known are {', '.join(known)}"
        raise UsageError(f"no architecture is called {name!r:.80}{hint}")
    return name or own


@contextmanager
def one_line_errors(source: str, work: Path) -> Iterator[None]:
    """Raises EnvironmentRefused, of one line, for a full disk or a damaged source in the block."""
    try:
        yield
    except OSError as error:
        raise EnvironmentRefused(f"{source}: {why(error, work)}") from error
    except ValueError as error:
        raise EnvironmentRefused(f"{source}: {error}") from error


def made(
    opened: Opened, request: ImageRequest, store: "Store", on_progress: OnProgress
) -> MadeImage:
    """Complete the tree, squash it, and store it under its name."""
    _check_architecture(opened, request)
    config = opened.config if opened.config != NO_CONFIG else config_in_tree(opened.tree)
    text = json.dumps(to_plain(config), sort_keys=True).encode()
    complete(opened.tree, text, config.cwd)
    stored = library.squash(opened.tree, request.name, on_progress)
    squasher = version(squashfs.version(), squashfs.read_version)
    notes = () if _looks_whole(opened.tree) else (_NO_ROOT,)
    return _recorded(stored, opened.digest, (*opened.made_with, squasher), request, store, notes)


def is_complete(path: Path) -> bool:
    """Whether a squashfs is one of ours: then it is stored byte for byte, with the same digest."""
    return is_here("unsquashfs") and bool(call(squashfs.cat(path, CONFIG)).stdout)


def taken(path: Path, request: ImageRequest, store: "Store") -> MadeImage:
    """Store a squashfs of ours as it is, under its name."""
    return _recorded(
        library.taken_over(path, request.name), digest_of(whole(path)), (), request, store, ()
    )


def config_in_tree(tree: Folder) -> ImageConfig:
    """The configuration in the tree of an exported image of ours."""
    node = found(tree, CONFIG)
    if not isinstance(node, File) or not node.content.file:
        return ImageConfig()
    content = node.content
    return read_own_config(Part(Path(content.file), content.offset, content.size_bytes).read())


def file_digest(path: Path) -> str:
    try:
        return digest_of(whole(path))
    except OSError as error:
        raise EnvironmentRefused(f"{path} cannot be read: {error.strerror}") from error


def _check_architecture(opened: Opened, request: ImageRequest) -> None:
    """Compare the request with the ELF header of its shell, else with what the image says.

    What an image says that was built here is only what the builder was asked for.
    """
    machine = elf_machine(opened.tree)
    by_elf = next((name for name, number in _ARCHITECTURES.values() if number == machine), "")
    says = opened.architecture
    has = says if not by_elf or _RUNS_ON.get(by_elf, by_elf) == says else by_elf
    if has and has != request.architecture:
        raise EnvironmentRefused(
            f"{request.source} is for {has}, not for {request.architecture}; for nodes of that "
            f"kind take it with --arch {has}"
        )


def _looks_whole(tree: Folder) -> bool:
    return any(found(tree, path) for path in ("bin", "usr", "sbin"))


def _recorded(
    stored: library.Stored,
    source_digest: str,
    made_with: Pairs,
    request: ImageRequest,
    store: "Store",
    notes: tuple[str, ...],
) -> MadeImage:
    """Record how it was made; the first record of an image stays."""
    if stored.before not in ("", stored.digest):
        notes = (*notes, f"{request.name} was {stored.before[:19]} before")
    if store.is_new:
        notes = (*notes, f"made a new store: {store.place}")
    if lies_on_network(stored.path):
        notes = (*notes, f"{stored.path.parent} is on a network file system: starts are slower")
    image = ImageRecord(
        digest=stored.digest,
        at=utc(),
        size_bytes=stored.size_bytes,
        architecture=request.architecture,
        source=request.source,
        source_digest=source_digest,
        recipe_digest=request.recipe_digest,
        made_with=made_with,
    )
    recorded = store.keep_image(image)
    if recorded.architecture not in ("", request.architecture):
        notes = (
            *notes,
            f"this image was there already, recorded as for {recorded.architecture}; it stays so",
        )
    return MadeImage(
        name=request.name,
        image=recorded,
        path=stored.path,
        was_there=stored.was_there,
        notes=notes,
    )
