"""A made data set that a small network learns: stripes, boards and rings, in shifts and colours.

    python made_images.py FOLDER [--classes 4] [--train 512] [--validation 128] [--side 64]

writes FOLDER/train/CLASS/*.jpg and FOLDER/val/CLASS/*.jpg, always the same. Needs Pillow.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20151210
PATTERNS = ("rows", "columns", "board", "rings")


def made_image(label: int, number: int, side: int) -> NDArray[np.uint8]:
    """(side, side, 3). A class has one of four patterns, with a period of its own."""
    random = np.random.default_rng([SEED, label, number])
    kind, octave = label % len(PATTERNS), label // len(PATTERNS)
    period = side / (4 + 3 * octave) * random.uniform(0.9, 1.1)
    y, x = np.mgrid[:side, :side].astype(np.float32) * np.float32(2 * np.pi / period)
    phase, other = random.uniform(0, 2 * np.pi, 2)
    rows, columns = np.sin(y + phase), np.sin(x + other)
    centre = random.uniform(0.3, 0.7, 2) * 2 * np.pi * side / period
    rings = np.sin(np.hypot(y - centre[0], x - centre[1]) + phase)
    pattern = (rows, columns, rows * columns * 1.5, rings)[kind]
    base, colour = random.uniform(90, 160, 3), random.uniform(30, 70, 3)
    noise = random.normal(0, 12, (side, side, 1))
    levels: NDArray[np.float64] = base + pattern[..., None] * colour + noise
    return levels.clip(0, 255).astype(np.uint8)


def write_images(folder: Path, *, classes: int, train: int, validation: int, side: int) -> None:
    """train, validation: how many of all classes. Raises ImportError if there is no Pillow."""
    from PIL import Image

    for part, first, count in (("train", 0, train), ("val", train, validation)):
        for number in range(first, first + count):
            label = number % classes
            at = folder / part / f"c{label:03d}"
            at.mkdir(parents=True, exist_ok=True)
            pixels = made_image(label, number, side)
            Image.fromarray(pixels).save(at / f"{number:06d}.jpg", quality=90)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    for name, count in (("classes", 4), ("train", 512), ("validation", 128), ("side", 64)):
        parser.add_argument(f"--{name}", type=int, default=count, help=f"default: {count}")
    options = vars(parser.parse_args())
    try:
        write_images(options.pop("folder"), **options)
    except ImportError:
        print("made_images.py: Pillow is missing: pip install pillow", file=sys.stderr)
        return 2
    except (OSError, ValueError) as why:
        print(f"made_images.py: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
