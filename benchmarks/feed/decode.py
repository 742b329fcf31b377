"""Pictures a second that one core decodes and resizes to 224 x 224, compared with the bound.

    python benchmarks/feed/decode.py [--files 400] [--rounds 12] [--folder CACHE]

In every round each decoder reads the same files from memory: libjpeg-turbo's decoding alone (the
bound), ours, and Pillow's decode and resize. Times are CPU time, ratios of the same round. Prints
JSON.
"""

import argparse
import io
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from pictures import KINDS, DataSet, data_set
from PIL import Image
from places import HERE, NotHere, default_folder

sys.path.append(str(HERE.parent))
from _numbers import whole_number

NATIVE = HERE.parents[1] / "src/flowos/feeder/native"
SOURCES = ("crop", "jpeg", "pixels", "resize", "resize_avx2")
BOUND, PILLOW = "decode only", "Pillow, whole picture to 224"
SIDE = 224


def main() -> int:
    options = arguments()
    try:
        sets = {kind: data_set(kind, options.files, options.folder) for kind in KINDS}
        program = compiled(options.folder)
    except NotHere as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({kind: measured(program, data, options) for kind, data in sets.items()}))
    return 0


def arguments() -> argparse.Namespace:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=whole_number(), default=400, help="of each kind")
    asked.add_argument("--rounds", type=whole_number(), default=12)
    asked.add_argument("--folder", type=Path, default=default_folder())
    return asked.parse_args()


def compiled(folder: Path) -> Path:
    """Compile the program with the library's own sources, as a wheel's build does."""
    made = folder / "programs" / "decode"
    made.parent.mkdir(parents=True, exist_ok=True)
    sources = [HERE / "decode.cpp", *(NATIVE / f"decode/{name}.cpp" for name in SOURCES)]
    flags = ["-std=c++20", "-O3", "-DNDEBUG", "-DFLOWOS_JPEG", f"-I{NATIVE}"]
    words = ["g++", *flags, *map(str, sources), "-ljpeg", "-o", str(made)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotHere(f"decode.cpp does not compile: {done.stderr.strip().splitlines()[0]}")
    return made


def measured(program: Path, data: DataSet, options: argparse.Namespace) -> dict[str, Any]:
    """For each decoder: pictures a second, and its time as a multiple of decoding alone."""
    files = [path.read_bytes() for path in paths(data, options.files)]
    rounds = [one_round(program, data, files, number) for number in range(options.rounds)]
    return {
        "mean_bytes": data.bytes / data.count,
        "ways": {way: summary(way, rounds) for way in rounds[0]},
    }


def paths(data: DataSet, max_pictures: int) -> list[Path]:
    lines = data.listed.read_text().splitlines()[:max_pictures]
    return [data.files / line.partition("\t")[0] for line in lines]


def one_round(
    program: Path, data: DataSet, files: Sequence[bytes], number: int
) -> dict[str, dict[str, float]]:
    how = ["--files", str(len(files)), "--round", str(number)]
    words = [str(program), *how, str(data.files), str(data.listed)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return {**found, PILLOW: by_pillow(files)}


def by_pillow(files: Sequence[bytes]) -> dict[str, float]:
    began, checksum = time.process_time(), 0
    for data in files:
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        pixels = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        checksum += int(pixels.flat[pixels.size // 2])
    return {"seconds": (time.process_time() - began) / len(files), "checksum": checksum}


def summary(way: str, rounds: Sequence[dict[str, dict[str, float]]]) -> dict[str, Any]:
    seconds = [found[way]["seconds"] for found in rounds]
    return {
        "pictures_per_second": round(1 / median(seconds)),
        "of_decode_only": round(
            median(found[way]["seconds"] / found[BOUND]["seconds"] for found in rounds), 3
        ),
        "seconds": seconds,
        "checksum": rounds[0][way]["checksum"],
    }


if __name__ == "__main__":
    sys.exit(main())
