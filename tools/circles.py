"""Finds circular imports between modules of flowos, those for type checking too; then exit 1.

`python tools/circles.py [PACKAGE]`
"""

import sys
from graphlib import CycleError, TopologicalSorter

import grimp


def circle_in(package: str) -> list[str]:
    """One circle, its first module again at the end; empty if there is none."""
    graph = grimp.build_graph(package)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def main(package: str = "flowos") -> int:
    circle = circle_in(package)
    if circle:
        print(f"circle of imports: {' <- '.join(circle)}", file=sys.stderr)
    return 1 if circle else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
