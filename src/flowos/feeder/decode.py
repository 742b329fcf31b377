"""How pictures become arrays of one size: what `fo.decode` offers.

    fo.decode.jpeg(224, crop="random", flip=True)          to train with
    fo.decode.jpeg(224, layout="NCHW", dtype="float32")    to evaluate with

The resize is bilinear and antialiased, as Pillow's and torchvision's. What is random is a function
of (seed, epoch, sample), whatever the threads and ranks. Pictures are shown as they are stored: an
orientation in Exif is not followed, as torchvision's loaders do not.

>>> fo.decode.jpeg(224, crop="random", flip=True).layout
'NHWC'
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from flowos._dataclasses import dataclass
from flowos._signatures import with_keywords
from flowos.feeder._source_options import Record
from flowos.model import FeedError, SampleError, brief_repr

if TYPE_CHECKING:
    from flowos._native import Decoder, ImageSettings

__all__ = ["Jpeg", "PictureOptions", "Pictures", "PillowPictures", "image", "jpeg"]

Crop: TypeAlias = Literal["centre", "random", "none"]
Layout: TypeAlias = Literal["NHWC", "NCHW"]
Values: TypeAlias = Literal["uint8", "float32"]
Channels: TypeAlias = tuple[float, float, float]
Limits: TypeAlias = tuple[float, float]

_MAX_SIDE = 65535  # as of JPEG
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Which part of a picture is seen, and what array it becomes.

    crop: "centre" scales the picture so that it just covers size / centre_share and takes the
    middle (torchvision's Resize and CenterCrop), "random" takes a part with an area and an aspect
    (width / height) within limits (torchvision's RandomResizedCrop), "none" takes all of it, so
    that its aspect changes. flip: half of the samples are mirrored.
    float32 is (value / 255 - mean) / std, by channel.
    """

    height: int
    width: int
    crop: Crop = "centre"
    centre_share: float = 0.875
    area: Limits = (0.08, 1.0)
    aspect: Limits = (3 / 4, 4 / 3)
    flip: bool = False
    layout: Layout = "NHWC"
    dtype: Values = "uint8"
    mean: Channels = _IMAGENET_MEAN
    std: Channels = _IMAGENET_STD
    seed: int = 0

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise FeedError(f"fo.decode: {problem}")

    @property
    def record(self) -> Record:
        """What each sample becomes."""
        rows = (self.height, self.width)
        shape = (*rows, 3) if self.layout == "NHWC" else (3, *rows)
        return Record(dtype=np.dtype(self.dtype), shape=shape)

    def _settings(self) -> "ImageSettings":
        from flowos._native import ImageSettings

        return ImageSettings(
            height=self.height,
            width=self.width,
            crop=self.crop,
            centre_share=self.centre_share,
            area=self.area,
            aspect=self.aspect,
            flip=self.flip,
            channels_first=self.layout == "NCHW",
            normalised=self.dtype == "float32",
            mean=self.mean,
            deviation=self.std,
            seed=self.seed,
        )

    def _empty(self) -> NDArray[Any]:
        return np.empty(self.record.shape, self.record.dtype)


@dataclass(frozen=True, kw_only=True)
class Jpeg(Pictures):
    """JPEG, decoded by native threads straight into the batch. What is none by its first bytes,
    whatever it is called, is read as `PillowPictures` reads it, where Pillow is installed.
    """

    @property
    def native(self) -> "Decoder":
        """Raises FeedError if this build has no libjpeg-turbo."""
        from flowos._native import jpeg_decoder

        return jpeg_decoder(self._settings())

    def decode(self, data: bytes | memoryview, epoch: int = 0, sample: int = 0) -> NDArray[Any]:
        """One picture by itself. Raises SampleError with the reason if it cannot be decoded."""
        array = self._empty()
        self.native.decode(data, epoch, sample, _bytes_of(array))
        return array


@dataclass(frozen=True, kw_only=True)
class PillowPictures(Pictures):
    """All that Pillow reads, decoded by Pillow in Python threads."""

    def decode(self, data: bytes | memoryview, epoch: int = 0, sample: int = 0) -> NDArray[Any]:
        """One picture. Raises SampleError with the reason if it cannot be decoded."""
        from flowos._native import fit_pixels

        pixels, array = _pixels(data), self._empty()
        fit_pixels(self._settings(), pixels, epoch, sample, _bytes_of(array))
        return array


class PictureOptions(TypedDict, total=False):
    """Settings of `Pictures` except the size."""

    crop: Crop
    centre_share: float
    area: Sequence[float]
    aspect: Sequence[float]
    flip: bool
    layout: Layout
    dtype: Values
    mean: Sequence[float]
    std: Sequence[float]
    seed: int


@with_keywords(PictureOptions, Pictures)
def jpeg(size: int | tuple[int, int], **how: Unpack[PictureOptions]) -> Jpeg:
    """JPEG to arrays of `size` or (height, width); see `Pictures`. Raises FeedError if invalid.

    Damaged, truncated and hostile files are errors, also where libjpeg only warns. Grey and CMYK
    become RGB. A PNG that is called .JPEG, as ImageNet has one, is read by Pillow if that is here.

    >>> fo.decode.jpeg(224, layout="NCHW", dtype="float32").record.shape
    (3, 224, 224)
    """
    return Jpeg(**_fields("jpeg", size, how))


@with_keywords(PictureOptions, Pictures)
def image(size: int | tuple[int, int], **how: Unpack[PictureOptions]) -> PillowPictures:
    """PNG and all else that Pillow reads, to the arrays that `jpeg` makes.

    >>> import io, PIL.Image
    >>> file = io.BytesIO()
    >>> PIL.Image.new("RGB", (64, 48), "teal").save(file, "PNG")
    >>> fo.decode.image(32).decode(file.getvalue()).shape
    (32, 32, 3)
    """
    _pillow()
    return PillowPictures(**_fields("image", size, how))


def _fields(kind: str, size: object, how: PictureOptions) -> dict[str, Any]:
    """Of `Pictures`. Lists and arrays are as good as tuples."""
    known = PictureOptions.__annotations__
    for name in how:
        if name not in known:
            raise FeedError(
                f"fo.decode.{kind}: {name}: no such keyword; there are {', '.join(known)}"
            )
    try:
        height, width = size if isinstance(size, tuple | list) else (size, size)
        rows, columns = index(height), index(width)
    except (TypeError, ValueError):
        raise FeedError(
            f"fo.decode: size={brief_repr(size)}; expected pixels, or (height, width)"
        ) from None
    fields = {name: _as_tuple(value) for name, value in how.items()}
    return {"height": rows, "width": columns, **fields}


def _as_tuple(given: object) -> object:
    """Numbers of a list or an array; what holds others stays, and is refused by its name."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, list):
        with suppress(OverflowError, TypeError, ValueError):
            return tuple(map(float, given))
    return given


def _problems(p: Pictures) -> Iterator[str]:
    words = {"crop": get_args(Crop), "layout": get_args(Layout), "dtype": get_args(Values)}
    for name, allowed in words.items():
        if getattr(p, name) not in allowed:
            yield f"{name}={brief_repr(getattr(p, name))}; expected one of {', '.join(allowed)}"
    if not all(type(side) is int and 1 <= side <= _MAX_SIDE for side in (p.height, p.width)):
        yield f"size=({p.height}, {p.width}); expected 1 to {_MAX_SIDE} pixels a side"
    if not _numbers((p.centre_share,), 1, high=1.0) or p.centre_share < 0.01:
        yield f"centre_share={brief_repr(p.centre_share)}; expected 0.01 to 1"
    if not _numbers(p.area, 2, high=1.0) or p.area[0] > p.area[1]:
        yield f"area={brief_repr(p.area)}; expected shares of the picture, (least, most), up to 1"
    if not _numbers(p.aspect, 2) or p.aspect[0] > p.aspect[1]:
        yield f"aspect={brief_repr(p.aspect)}; expected width / height, (least, most), above 0"
    if type(p.flip) is not bool:
        yield f"flip={brief_repr(p.flip)}; expected True or False"
    if type(p.seed) is not int or not 0 <= p.seed < 2**64:
        yield f"seed={brief_repr(p.seed)}; expected a whole number from 0, below 2**64"
    yield from _problems_of_values(p)


def _problems_of_values(p: Pictures) -> Iterator[str]:
    if not _numbers(p.mean, 3, low=-1e6):
        yield f"mean={brief_repr(p.mean)}; expected three numbers"
    if not _numbers(p.std, 3, low=1e-6):
        yield f"std={brief_repr(p.std)}; expected three numbers above 0"
    if p.dtype == "uint8" and (p.mean, p.std) != (_IMAGENET_MEAN, _IMAGENET_STD):
        yield "mean and std are for dtype='float32'"


def _numbers(given: object, count: int, low: float = 1e-9, high: float = 1e6) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == count
        and all(isinstance(x, int | float) and low <= x <= high for x in given)
    )


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError:
        raise FeedError("fo.decode.image: Pillow is missing; pip install pillow") from None
    return PIL


def _pixels(data: bytes | memoryview) -> NDArray[np.uint8]:
    """(height, width, 3)"""
    pillow = _pillow()
    try:
        with pillow.Image.open(BytesIO(data)) as picture:
            return _as_rgb(picture)
    except Exception as why:  # its many readers raise what they like
        raise SampleError(str(why).partition("\n")[0] or type(why).__name__) from None


def pixels(data: bytes) -> NDArray[np.uint8] | None:
    """For native code, of what is no JPEG by its first bytes: (height, width, 3); None: no picture.

    Raises SampleError if it cannot be read, or not without Pillow.
    """
    try:
        pillow = _pillow()
    except FeedError:
        raise SampleError(
            "no JPEG by its first bytes; other pictures are read by Pillow: pip install pillow"
        ) from None
    try:
        return _pixels(data)
    except SampleError as why:
        if isinstance(why.__context__, pillow.UnidentifiedImageError):
            return None
        raise


def _as_rgb(picture: Any) -> NDArray[np.uint8]:
    """Pillow would cut values above 255 off, so that all is white."""
    if picture.mode.startswith("I;16"):
        grey = (np.asarray(picture) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    if picture.mode in ("I", "F"):
        raise ValueError(f"values of 32 bits (mode {picture.mode}); decode= a function of yours")
    return np.asarray(picture.convert("RGB"))
