"""Finds public classes that are defined more than once; then exit 1.

`python tools/names.py`. A name has one meaning in the whole project.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

PACKAGE = Path("src/flowos")


def public_classes(file: Path) -> list[str]:
    body = ast.parse(file.read_text()).body
    return [n.name for n in body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]


def main() -> int:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for name in public_classes(file):
            places[name].append(str(file))
    several = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in sorted(several.items()):
        print(f"class {name} is defined in {', '.join(files)}", file=sys.stderr)
    return 1 if several else 0


if __name__ == "__main__":
    sys.exit(main())
