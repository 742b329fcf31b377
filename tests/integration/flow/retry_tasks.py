"""Tasks of retries, in a file that a worker imports without pytest."""

from pathlib import Path
from typing import Any

import flowos as fo

BAD = {7, 8, 9, 100, 255, 256, 300, 511, 512, 513, 700, 998, 999}


def counted(folder: str, name: object) -> int:
    """How often it was called with this name, over processes too."""
    with Path(folder, str(name)).open("a") as file:
        file.write("x")
    return len(Path(folder, str(name)).read_text())


def succeeds_at(third: int) -> Any:
    def fun(folder: str, item: Any) -> Any:
        attempt = counted(folder, item)
        if attempt < third:
            raise ConnectionError(f"not yet: {attempt}")
        return attempt

    return fun


def same(x: fo.any_) -> fo.any_:
    return x


def fails(folder: str, item: Any) -> Any:  # noqa: ARG001
    if item in BAD:
        raise ValueError(f"bad {item}")
    return item * 2


def picky(folder: str, item: Any) -> Any:
    return "other" if item == "other" else fails(folder, item)


def half(x: fo.float64) -> fo.float64:
    return x / 2
