"""Asks the NVIDIA driver which GPUs this process may use. Prints one JSON list.

usage: python cuda_devices.py

Runs as a child of its own, because a driver may crash or hang; makes no context on a GPU, so that
none is taken. Standard library only, Python 3.8+. Each entry: number, name, memory_bytes,
multiprocessors, clock_khz, memory_clock_khz, bus_bits, cache_bytes, major, minor: the attributes
of cuDeviceGetAttribute (CUDA driver API). Exit 1 without a driver or a GPU.
"""

from __future__ import annotations

import ctypes
import sys

ATTRIBUTES = {
    "clock_khz": 13,
    "multiprocessors": 16,
    "memory_clock_khz": 36,
    "bus_bits": 37,
    "cache_bytes": 38,
    "major": 75,
    "minor": 76,
}
"""Names of our own -> numbers of CUdevice_attribute."""


def asked(code: int, what: str) -> None:
    if code:
        sys.exit(f"{what}: CUDA error {code}")


def device(cuda: ctypes.CDLL, number: int) -> dict[str, object]:
    handle, name, total = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    asked(cuda.cuDeviceGet(ctypes.byref(handle), number), "cuDeviceGet")
    asked(cuda.cuDeviceGetName(name, len(name), handle), "cuDeviceGetName")
    asked(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), handle), "cuDeviceTotalMem")
    found: dict[str, object] = {
        "number": number,
        "name": name.value.decode("utf-8", "replace"),
        "memory_bytes": total.value,
    }
    for attribute, key in ATTRIBUTES.items():
        value = ctypes.c_int()
        asked(cuda.cuDeviceGetAttribute(ctypes.byref(value), key, handle), "cuDeviceGetAttribute")
        found[attribute] = value.value
    return found


def main() -> None:
    """Most nodes have no driver, and there a start without `json` takes half the time."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(str(error))
    count = ctypes.c_int()
    asked(cuda.cuInit(0), "cuInit")
    asked(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    import json

    sys.stdout.write(json.dumps([device(cuda, number) for number in range(count.value)]))


if __name__ == "__main__":
    main()
