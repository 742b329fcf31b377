"""Checks that no file is over 400 lines and no function over 50. Prints lines per package.

`python tools/sizes.py`; exit 1 names what is too long. C and C++ functions are checked by
clang-tidy, Python functions here.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FILE_LINES, HEADER_LINES, FUNCTION_LINES = 400, 600, 50
CODE = {".py", ".c", ".h", ".cpp"}


def tracked() -> list[Path]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [p for p in map(Path, listed.splitlines()) if p.suffix in CODE and p.exists()]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All below it, with the arms of `try` and `match`; an expression has none."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for each in getattr(node, part, ()):
            yield each
            yield from statements(each)


def long_functions(path: Path, text: str) -> list[str]:
    found = []
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                found.append(f"{path}:{node.lineno}: {node.name} has {lines} lines")
    return found


def main() -> int:
    rooms: Counter[str] = Counter()
    complaints: list[str] = []
    for path in tracked():
        text = path.read_text()
        lines = text.count("\n")
        room = "/".join(path.parts[:3] if path.parts[0] == "src" else path.parts[:1])
        rooms[room] += lines
        if lines > (HEADER_LINES if path.suffix == ".h" else FILE_LINES):
            complaints.append(f"{path}: {lines} lines")
        if path.suffix == ".py" and lines > FUNCTION_LINES:
            complaints += long_functions(path, text)
    for room, lines in sorted(rooms.items()):
        print(f"{lines:7,} {room}")
    print(f"{sum(rooms.values()):7,} in all")
    print("\n".join(complaints), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
