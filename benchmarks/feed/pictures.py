"""Data sets of JPEGs that are like photographs to a decoder and a disk, from a fixed seed.

Each picture is 1/f noise (the spectrum of natural scenes) in a few colours, with shapes in front.
It depends only on the seed and its own number.
"""

import io
import json
import os
import shutil
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from places import NotHere, say

SEED = 20190508
FOLDERS = 100
TEXTURES, TEXTURE_SIDE = 12, 1024


@dataclass(frozen=True)
class Kind:
    """Ranges of the sides in pixels, and of JPEG's quality."""

    widths: tuple[int, int]
    heights: tuple[int, int]
    qualities: tuple[int, int]


KINDS = {
    "41": Kind(widths=(320, 420), heights=(256, 340), qualities=(81, 89)),
    "110": Kind(widths=(470, 520), heights=(330, 400), qualities=(91, 98)),
}
"""By their mean size in KiB."""


@dataclass(frozen=True)
class DataSet:
    """`checksum`: the sum of the files' CRC-32, so that their order does not matter."""

    folder: str
    count: int
    bytes: int
    checksum: int

    @property
    def files(self) -> Path:
        return Path(self.folder) / "files"

    @property
    def listed(self) -> Path:
        """A line per file: its name below `files`, its size, its CRC-32, separated by tabs."""
        return Path(self.folder) / "list.txt"


def data_set(kind: str, count: int, folder: Path) -> DataSet:
    """The data set, created if needed (takes minutes). Raises NotHere without Pillow."""
    at = folder / f"jpeg-{kind}k-{count}"
    description = at / "data.json"
    if not description.exists():
        say(f"making {count:,} JPEGs of {kind} KiB in {at} ...")
        trial = at.with_name(f"{at.name}.{os.getpid()}")
        try:
            _make(KINDS[kind], count, trial)
            shutil.rmtree(at, ignore_errors=True)
            trial.rename(at)
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    found = json.loads(description.read_text())
    return DataSet(folder=str(at), **found)


def _make(kind: Kind, count: int, folder: Path) -> None:
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise NotHere("no Pillow to make pictures with: pip install pillow") from error
    for number in range(min(count, FOLDERS)):
        (folder / "files" / f"c{number:03d}").mkdir(parents=True)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        make_one = partial(_write, kind, folder / "files")
        found = list(pool.map(make_one, range(count), chunksize=100))
    lines = "".join(f"{name}\t{size}\t{crc:08x}\n" for name, size, crc in found)
    (folder / "list.txt").write_text(lines)
    whole = DataSet(
        folder="",
        count=count,
        bytes=sum(size for _, size, _ in found),
        checksum=sum(crc for _, _, crc in found),
    )
    fields = {name: value for name, value in asdict(whole).items() if name != "folder"}
    (folder / "data.json").write_text(json.dumps(fields))


def _write(kind: Kind, folder: Path, number: int) -> tuple[str, int, int]:
    """Write one picture; returns its name, size and CRC-32."""
    name = f"c{number % FOLDERS:03d}/{number:06d}.jpg"
    data = _jpeg(kind, number)
    (folder / name).write_bytes(data)
    return name, len(data), zlib.crc32(data)


def _jpeg(kind: Kind, number: int) -> bytes:
    random = np.random.default_rng([SEED, number])
    width, height = int(random.integers(*kind.widths)), int(random.integers(*kind.heights))
    file = io.BytesIO()
    quality = int(random.integers(*kind.qualities))
    _picture(random, width, height).save(file, "JPEG", quality=quality)
    return file.getvalue()


def _picture(random: np.random.Generator, width: int, height: int) -> Any:
    from PIL import Image, ImageDraw

    light, tint = (_piece(random, width, height) for _ in range(2))
    base, colour = random.integers(60, 190, 3), random.normal(0, 18, 3)
    contrast = float(random.integers(15, 55))
    pixels = base + contrast * light[..., None] + tint[..., None] * colour
    picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    for _ in range(random.integers(1, 6)):
        left, top = int(random.integers(width)), int(random.integers(height))
        side = int(random.integers(10, width // 2))
        shape = draw.ellipse if random.random() < 0.5 else draw.rectangle
        fill = tuple(int(level) for level in random.integers(0, 255, 3))
        shape([left, top, left + side, top + side // 2 + 5], fill=fill)
    if random.random() < 0.5:  # half of them have texture on their shapes too
        pixels = np.asarray(picture) + 6 * light[..., None]
        picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return picture


def _piece(random: np.random.Generator, width: int, height: int) -> Any:
    texture = _textures()[int(random.integers(TEXTURES))]
    top = int(random.integers(TEXTURE_SIDE - height))
    left = int(random.integers(TEXTURE_SIDE - width))
    return texture[top : top + height, left : left + width]


@cache
def _textures() -> Sequence[Any]:
    random = np.random.default_rng(SEED)
    frequency = np.fft.fftfreq(TEXTURE_SIDE)
    radius = np.hypot(frequency[:, None], frequency[None, :])
    radius[0, 0] = 1 / TEXTURE_SIDE
    return [_texture(random, radius) for _ in range(TEXTURES)]


def _texture(random: np.random.Generator, radius: Any) -> Any:
    noise = np.fft.fft2(random.standard_normal(radius.shape))
    found = np.fft.ifft2(noise / radius ** (0.88 + 0.35 * random.random())).real
    return ((found - found.mean()) / found.std()).astype(np.float32)
