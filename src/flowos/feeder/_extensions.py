"""Which files of a folder or a bucket are samples, by the endings of their names."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.feeder._endings import PACKED_SHARDS, PARQUET, SHARDS, TAR
from flowos.feeder._entries import number_of
from flowos.model import FeedError, brief_repr

if TYPE_CHECKING:
    from flowos._native import Catalog

# fmt: off
PICTURES = (
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm", "pgm", "pbm",
    "pnm", "avif", "heic", "heif", "jp2",
)
# fmt: on
_SHARDS = tuple(ending.removeprefix(".") for ending in (*SHARDS, *PACKED_SHARDS))
_WAY_OF_SHARDS = "member= says which member of a tar is the sample, column= which of a Parquet file"
_ALL, _PICTURES = "all", "pictures"
_KEY_OF_CACHE = re.compile(r"(?:.*/)?[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter:
    """endings: of the files that are samples, lower case, without the dot; empty: all are.

    said: by a person, so that no file is refused for what it looks like.
    """

    endings: tuple[str, ...] = ()
    said: bool = False


ALL = SampleFilter()


def sample_filter(extensions: object, usual: tuple[str, ...] = ()) -> SampleFilter:
    """extensions: "all", "pictures", endings of names, or None: the usual ones. FeedError."""
    if extensions is None:
        return SampleFilter(endings=usual)
    if isinstance(extensions, str) and extensions in (_ALL, _PICTURES):
        return SampleFilter(endings=PICTURES if extensions == _PICTURES else (), said=True)
    if isinstance(extensions, Iterable) and not isinstance(extensions, str | bytes):
        endings = tuple(extensions)
        if endings and all(isinstance(word, str) and word.strip(".") for word in endings):
            return SampleFilter(
                endings=tuple(word.lstrip(".").lower() for word in endings), said=True
            )
    raise FeedError(
        f"Feed: extensions={brief_repr(extensions)}; expected endings, as "
        "extensions=['jpg', 'png'], or extensions='all', or extensions='pictures'"
    )


def has_files(catalog: "Catalog") -> bool:
    """Whether its samples are files or objects, each one whole: no pieces of shards, no rows."""
    if catalog.kind == "named":
        return not all(group.endswith(PARQUET) for group in catalog.groups())
    return catalog.kind == "folder"


def select_samples(catalog: "Catalog", name: str, files: SampleFilter) -> "tuple[Catalog, str]":
    """The samples among the files, and a warning if others were left out by default.

    Raises FeedError if no file is left, shards or a cache are among them, or endings are given of
    what are no files.
    """
    if not has_files(catalog):
        if files.said:
            way = "there are none" if catalog.kind == "arrays" else _WAY_OF_SHARDS
            raise FeedError(
                f"Feed: {name}: extensions= goes with files of which each is a sample; here {way}"
            )
        return catalog, ""
    _refuse_caches(catalog, name)
    if not files.said:
        _refuse_shards(catalog, name)
    if not files.endings:
        return catalog, ""
    fits = catalog.ends_in(files.endings)
    left = len(fits) - int(fits.sum())
    if left == 0:
        return catalog, ""
    such_as = catalog.name(int(fits.argmin()))
    if left == len(fits):
        raise FeedError(
            f"Feed: {name}: none of {left} files is a sample by the ending of its name, such as "
            f"{such_as}: say which are, as extensions=['x', 'y'], or extensions='all'"
        )
    advice = (
        f"Feed: {name}: {left} of {len(fits)} files are no samples by their endings, such as "
        f"{such_as}, and left out: say which are, as extensions=['x', 'y'], or extensions='all'"
    )
    return catalog.only(fits), "" if files.said else advice


def _refuse_shards(catalog: "Catalog", name: str) -> None:
    are_shards = catalog.ends_in(_SHARDS)
    if not are_shards.any():
        return
    one = catalog.name(int(are_shards.argmax()))
    if one.endswith(PARQUET):
        way = "Parquet files have to be alone in their folder, or column= says what is read of them"
    elif one.endswith(TAR):
        way = f"shards have to be alone in their folder, or are given as {name}/*.tar"
    else:
        way = "shards are read as they lie, uncompressed: unpack them to .tar"
    raise FeedError(
        f"Feed: {name} has {one} in it, which would be one sample: {way}; if files are the samples,"
        " say which, as extensions=['jpg'], or extensions='all'"
    )


def _refuse_caches(catalog: "Catalog", name: str) -> None:
    """What was listed has a cache in it, there by a link or from before."""
    for group in catalog.groups():
        if _KEY_OF_CACHE.fullmatch(group) and number_of(catalog, f"{group}/source") is not None:
            raise FeedError(
                f"Feed: {name}: {group} in it is a cache of samples, and would be taken for data: "
                "remove it with flowos feed clear, or the link to it"
            )
