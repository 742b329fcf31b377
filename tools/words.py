"""Finds words that docstrings, comments and documents may not use; then exit 1.

`python tools/words.py`. Prose is plain English in the field's words, as NumPy, httpx and SciPy
write it. CLEAN lists the folders that are checked.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CLEAN = (
    "src/flowos",
    "benchmarks",
    "bind",
    "docs/*.md",
    "docs/*.py",
    "docs/adr",
    "docs/explanation",
    "docs/guide",
    "docs/howto",
    "docs/reference/*.md",
    "docs/tutorials",
    "tests",
    "tools",
    "ARCHITECTURE.md",
    "README.md",
)
SUFFIXES = {".py", ".c", ".h", ".cpp", ".md"}

INSTEAD = {
    r"told|tells": "says, shows, distinguishes, decided",
    r"wanted": "requested",
    r"meant": "intended, or the name of the thing",
    r"beside": "next to, except",
    r"who": "the noun: the thread, the process, the user",
    r"nobody|somebody|anybody": "no thread, no process, no user",
    r"in vain": "does nothing",
    r"how it went": "the result",
    r"what was made of": "statistics of",
    r"(?<!Raises )(?<!Throws )(?-i:[A-Z]\w*(?:Error|Refused|Failed):)(?= [^\"])": "Raises X if ...",
}
WORDS = {
    re.compile(rf"\b(?:{pattern})(?!\w)", re.IGNORECASE): say for pattern, say in INSTEAD.items()
}
CODE = re.compile(r"``?[^`]*``?")
CPP_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.DOTALL)

Line = tuple[int, str]


def python_prose(text: str) -> Iterator[Line]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield from enumerate(value.value.splitlines(), value.lineno)


def cpp_prose(text: str) -> Iterator[Line]:
    for comment in CPP_COMMENT.finditer(text):
        first = text.count("\n", 0, comment.start()) + 1
        yield from enumerate(comment[0].splitlines(), first)


def prose_of(file: Path) -> Iterator[Line]:
    text = file.read_text()
    if file.suffix == ".py":
        return python_prose(text)
    return enumerate(text.splitlines(), 1) if file.suffix == ".md" else cpp_prose(text)


def complaints(line: str) -> Iterator[str]:
    plain = CODE.sub("", line)
    for word, say in WORDS.items():
        for found in word.finditer(plain):
            yield f'"{found[0]}": {say}'


def files() -> Iterator[Path]:
    for pattern in CLEAN:
        for at in sorted(Path().glob(pattern)):
            found = sorted(at.rglob("*")) if at.is_dir() else [at]
            yield from (file for file in found if file.suffix in SUFFIXES)


def main() -> int:
    found = [
        f"{file}:{number}: {complaint}"
        for file in files()
        for number, line in prose_of(file)
        for complaint in complaints(line)
    ]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
