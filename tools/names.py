"""Finds public classes that are defined more than once, and aliases of types that have the name of
another module's class; then exit 1.

`python tools/names.py`. A name has one meaning in the whole package. ADR 77 says what is not
counted: aliases of one module among each other, and names of C++.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path("src/flowos")
TYPE = (ast.Subscript, ast.BinOp, ast.Name, ast.Attribute)


def public_classes(body: list[ast.stmt]) -> list[str]:
    return [n.name for n in body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]


def type_aliases(body: list[ast.stmt]) -> Iterator[str]:
    """X of `X = tuple[...]`, `X = A | B` and `X: TypeAlias = ...` with names of types."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, TYPE):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
            names = [ast.unparse(node.target)]
        else:
            continue
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def main() -> int:
    classes: defaultdict[str, list[str]] = defaultdict(list)
    aliases: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        body = ast.parse(file.read_text()).body
        for name in public_classes(body):
            classes[name].append(str(file))
        for name in type_aliases(body):
            aliases[name].append(str(file))
    several = {name: files for name, files in classes.items() if len(files) > 1}
    for name, files in sorted(several.items()):
        print(f"class {name} is defined in {', '.join(files)}", file=sys.stderr)
    shared = sorted(classes.keys() & aliases.keys())
    for name in shared:
        where = f"{', '.join(aliases[name])}; the class is in {', '.join(classes[name])}"
        print(f"{name} is an alias in {where}", file=sys.stderr)
    return 1 if several or shared else 0


if __name__ == "__main__":
    sys.exit(main())
