"""Pictures to decode: what a photograph is like, and what a resize finds hard."""

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]


def photograph(height: int, width: int, seed: int = 0) -> Pixels:
    """1/f noise, as natural scenes have it (Field, J. Opt. Soc. Am. A 4, 1987)."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :])
    frequency[0, 0] = 1
    planes = [
        np.fft.ifft2(np.fft.fft2(rng.standard_normal((height, width))) / frequency).real
        for _ in range(3)
    ]
    values = np.stack(planes, axis=2)
    spread = values.std() or 1.0
    pixels: Pixels = np.clip(128 + 50 * (values - values.mean()) / spread, 0, 255).astype(np.uint8)
    return pixels


def zone_plate(height: int, width: int, seed: int = 0) -> Pixels:
    """Every frequency up to the highest, in every direction."""
    y, x = np.mgrid[:height, :width] - np.array([height, width])[:, None, None] / 2
    phase = np.pi * (x**2 / width + y**2 / height)
    waves = [np.cos(phase + shift + seed) for shift in (0.0, 1.0, 2.0)]
    return (127.5 + 127.5 * np.stack(waves, axis=2)).astype(np.uint8)


def checkerboard(height: int, width: int, seed: int = 0) -> Pixels:
    y, x = np.mgrid[:height, :width]
    board = ((x + y + seed) % 2 * 255).astype(np.uint8)
    return np.stack([board, 255 - board, board], axis=2)


KINDS = {"photograph": photograph, "zone plate": zone_plate, "checkerboard": checkerboard}


def as_file(pixels: NDArray[Any] | Image.Image, form: str = "PNG", **how: Any) -> bytes:
    picture = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    buffer = BytesIO()
    picture.save(buffer, form, **how)
    return buffer.getvalue()


def by_pillow(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data)).convert("RGB")


def resized(picture: Image.Image, width: int, height: int) -> Image.Image:
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def difference(a: NDArray[Any], b: NDArray[Any] | Image.Image) -> tuple[int, float]:
    """The largest and the mean, in levels."""
    levels = np.abs(np.asarray(a).astype(int) - np.asarray(b).astype(int))
    return int(levels.max()), float(levels.mean())
