"""All-pairs gravity on a GPU, or split over several of them.

usage: python nbody_gpu.py --device cuda:0[,cuda:1...] --bodies N --types f32,f64 --seconds S

a_i = sum over j of m_j (x_j - x_i) / (|x_j - x_i|^2 + eps^2)^1.5, which is counted as 20 operations
a pair, as Nyland, Harris and Prins do (GPU Gems 3, chapter 31). Some bodies are checked in f64.
Several devices each accelerate a part of the bodies; what is timed begins with a copy of the
positions of each part to all other devices. A device may be cpu, as a check of that.
Prints the JSON that probes read; exit 77 with {"cannot", "remedy"} where it cannot be measured, 1
if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys

BLOCK = 64
"""The parts of all devices are multiples of it, as the kernel needs."""


def main() -> None:
    parser = argparse.ArgumentParser(description="N-body on GPUs.")
    parser.add_argument("--device", required=True)
    parser.add_argument("--bodies", type=int, required=True)
    parser.add_argument("--types", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    names = options.device.split(",")
    if options.bodies <= 0 or options.bodies % (BLOCK * len(names)):
        sys.exit(f"nbody_gpu: --bodies {options.bodies}: give a multiple of {BLOCK * len(names)}")
    kinds = options.types.split(",")
    if not set(kinds) <= {"f32", "f64"}:
        sys.exit(f"nbody_gpu: --types {options.types}: give f32, f64 or both")
    from split_bodies import all_measured

    readings = all_measured(names, kinds, options.bodies, options.seconds)
    sys.stdout.write(json.dumps({"readings": readings}))


if __name__ == "__main__":
    main()
