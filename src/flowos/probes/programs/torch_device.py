"""Measures one device through PyTorch: its arithmetic, its memory, and the way to it from the host.

usage: python torch_device.py gemm        --device D --seconds S --sizes N,... --types T,...
       python torch_device.py stream      --device D --seconds S --bytes B
       python torch_device.py copy        --device D --seconds S --sizes BYTES,...
       python torch_device.py deepbench   --device D --seconds S --types T,...

D is cpu, cuda:0, cuda:1 and so on; S is about how long all of it may take. Every result is checked
against one in f64 before it is timed.
Prints the JSON that probes read; exit 77 with {"cannot", "remedy"} where it cannot be measured, 1
if a result is wrong. Types: f64, f32 (full precision), tf32, f16, bf16, fp8 (e4m3).
"""

from __future__ import annotations

import argparse
import json
import sys

MEASURES = ("gemm", "stream", "copy", "deepbench")
TYPES = ("f64", "f32", "tf32", "f16", "bf16", "fp8")
_SIZED, _TYPED = ("gemm", "copy"), ("gemm", "deepbench")


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a device through PyTorch.")
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--types", default="")
    parser.add_argument("--bytes", type=int, default=0)
    options = parser.parse_args(words)
    if complaint := complaint_of(options):
        parser.error(complaint)
    return options


def complaint_of(options: argparse.Namespace) -> str:
    """What of the words this measurement cannot do, or ""."""
    sizes, types = options.sizes.split(","), options.types.split(",")
    if not options.seconds > 0:
        return f"--seconds {options.seconds:g}: give more than 0"
    if options.measure in _SIZED and not all(n.isdecimal() and int(n) > 0 for n in sizes):
        return f"--sizes {options.sizes}: give whole numbers above 0, with commas between"
    if options.measure in _TYPED and not set(types) <= {*TYPES}:
        return f"--types {options.types}: give some of {','.join(TYPES)}"
    if options.measure == "stream" and options.bytes < 8:
        return f"--bytes {options.bytes}: give 8 or more"
    return ""


def main() -> None:
    options = parsed(sys.argv[1:])
    from device_measures import measured

    sys.stdout.write(json.dumps({"readings": measured(options)}))


if __name__ == "__main__":
    main()
