"""Checks includes in the native libraries: a file includes its own folder and those before it.

`python tools/includes.py`; exit 1 names each include against the order, and circles between files.
Includes are relative to the library's `native` folder: "cache/layout.h".
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ORDERS = {
    "src/flowos/feeder/native": "base < cache | catalog | decode < peers | source < pipeline",
    "src/flowos/solver/native": (
        "base < matrix < ordering < simd | threads < ic | multigrid < krylov < mpi"
    ),
}
"""Folders between bars do not include each other."""
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

Includes = dict[str, list[str]]
"""Of each file, by its path in the room, what it includes in quotes."""


def included(room: Path) -> Includes:
    files = (path for path in sorted(room.rglob("*")) if path.suffix in (".h", ".cpp"))
    return {str(file.relative_to(room)): INCLUDE.findall(file.read_text()) for file in files}


def ranks(order: str) -> dict[str, int]:
    layers = enumerate(order.split(" < "))
    return {folder: rank for rank, layer in layers for folder in layer.split(" | ")}


def misplaced(includes: Includes, order: str) -> Iterator[str]:
    rank = ranks(order)
    for file, others in includes.items():
        folder = file.rpartition("/")[0]
        if folder not in rank:
            yield f"{file}: its folder is not in the order {order}"
            continue
        for other in others:
            into = other.rpartition("/")[0]
            if other not in includes:
                yield f'{file}: "{other}" is no file of this room, written FOLDER/FILE'
            elif into != folder and not rank.get(into, len(rank)) < rank[folder]:
                yield f'{file}: "{other}" goes against {order}'


def circles(includes: Includes) -> Iterator[str]:
    try:
        TopologicalSorter(includes).prepare()
    except CycleError as error:
        yield "a circle of includes: " + " -> ".join(reversed(error.args[1]))


def complaints(room: Path, order: str) -> list[str]:
    includes = included(room)
    return [f"{room}: {line}" for line in (*misplaced(includes, order), *circles(includes))]


def ambiguous(rooms: list[Path]) -> list[str]:
    """One command may compile several rooms."""
    headers = Counter(file for room in rooms for file in included(room) if file.endswith(".h"))
    return [f'"{file}" is in several rooms' for file, count in headers.items() if count > 1]


def main() -> int:
    found = [line for room, order in ORDERS.items() for line in complaints(Path(room), order)]
    found += ambiguous([Path(room) for room in ORDERS])
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
