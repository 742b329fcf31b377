"""Opens one BLAS library, multiplies with it, and says how to call it. Prints JSON lines.

usage: python open_blas.py LIBRARY

Runs as a child of its own, because a library may crash or exit when it is opened or called; the
last line counts. Says {"symbol": pattern of Fortran names, as "{}_", "integer_bytes": 4 or 8,
"says": the library's own version, "loaded": the files that were mapped}, or {"fails": complaint}.
Standard library only, Python 3.8+.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

PATTERNS = ("{}_", "scipy_{}_64_", "scipy_{}_", "{}_64_", "{}64_", "{}")
CONFIGURATIONS = ("openblas_get_config", "scipy_openblas_get_config")
NO_BITS, ALL_BITS = 0, -1


def as_integer(value: int, upper: int) -> Any:
    """A Fortran integer of 4 or 8 bytes, with these bits above the lower four bytes."""
    return ctypes.byref(ctypes.c_int64(value | (upper << 32)))


def multiplies(dgemm: Any, upper: int) -> bool:
    """2 x 2 product, column-major: is it right? With ALL_BITS a size is negative as 8 bytes."""
    two, size = as_integer(2, upper), ctypes.c_size_t(1)
    a, b, c = ((ctypes.c_double * 4)(*values) for values in ((1, 2, 3, 4), (5, 6, 7, 8), (0,) * 4))
    one, zero = ctypes.byref(ctypes.c_double(1)), ctypes.byref(ctypes.c_double(0))
    dgemm.restype = None
    dgemm(b"N", b"N", two, two, two, one, a, two, b, two, zero, c, two, size, size)
    return list(c) == [23.0, 34.0, 31.0, 46.0]


def version(library: Any) -> str:
    """What the library says of itself: OpenBLAS, BLIS, MKL; "" for others."""
    for name in CONFIGURATIONS:
        for suffix in ("", "64_", "_64_"):
            if hasattr(library, name + suffix):
                ask = getattr(library, name + suffix)
                ask.restype = ctypes.c_char_p
                return str((ask() or b"").decode("utf-8", "replace"))
    if hasattr(library, "bli_info_get_version_str"):
        library.bli_info_get_version_str.restype = ctypes.c_char_p
        return "BLIS " + str(library.bli_info_get_version_str().decode("utf-8", "replace"))
    if hasattr(library, "mkl_get_version_string"):
        text = ctypes.create_string_buffer(200)
        library.mkl_get_version_string(text, 200)
        return text.value.decode("utf-8", "replace").strip()
    return ""


def pattern_of(library: Any) -> str | None:
    return next((p for p in PATTERNS if hasattr(library, p.format("dgemm"))), None)


def loaded() -> list[str]:
    """Files that this process has mapped: the library, what it needs, Python."""
    try:
        with os.fdopen(os.open("/proc/self/maps", os.O_RDONLY), errors="replace") as maps:
            found = [line.split(maxsplit=5)[5].strip() for line in maps if "/" in line]
    except OSError:
        return []
    return sorted({path for path in found if path.startswith("/")})


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def main(path: str) -> None:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        return say(fails=str(error))
    symbol = pattern_of(library)
    if symbol is None:
        return say(fails="has no dgemm")
    dgemm = getattr(library, symbol.format("dgemm"))
    if not multiplies(dgemm, NO_BITS):
        return say(fails="dgemm gives a wrong product")
    says = version(library)
    known = {"symbol": symbol, "says": says, "fails": "", "loaded": loaded()}
    say(**known, integer_bytes=8)
    if multiplies(dgemm, ALL_BITS):
        say(**known, integer_bytes=4)
    return None


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)
