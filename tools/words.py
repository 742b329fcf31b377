"""Finds words that docstrings, comments and documents may not use; then exit 1.

`python tools/words.py`. Prose is plain English in the field's words, as NumPy, httpx and SciPy
write it: docstrings, comments, documents, and texts of several words in the package, which are its
help and messages. CLEAN lists the folders that are checked; ADR 77 says which words are not.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

CLEAN = (
    "src/flowos",
    "benchmarks",
    "bind",
    "examples",
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
    ".ci",
    "Makefile",
    "*.md",
)
HASHED = {".sh", ".R", ".jl"}
"""Endings of files whose comments begin with #; scripts have none."""
SUFFIXES = {".py", ".c", ".h", ".cpp", ".v", ".md", *HASHED}
PACKAGE = Path("src")

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
ANY = re.compile("|".join(word.pattern for word in WORDS), re.IGNORECASE)
RAISES = re.compile(r"\bRaises\b(?:[^.]|\.(?=\w))*")
CONDITION = re.compile(r"\b(?:if|unless|for|of|as|where|when|once)\b", re.IGNORECASE)
COLON = re.compile(r"\w+:\s")
CODE = re.compile(r"``?[^`]*``?")
HASH_COMMENT = re.compile(r"(?:^|\s)#(.*)")
CPP_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.DOTALL)

Line = tuple[int, str]


@lru_cache(maxsize=1)
def texts(text: str) -> tuple[list[Line], list[Line]]:
    """Docstrings, and all other texts; with each, its line."""
    nodes = list(ast.walk(ast.parse(text)))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    documented, others = list[Line](), list[Line]()
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            (documented if id(node) in alone else others).append((node.lineno, node.value))
    return documented, others


def python_prose(text: str) -> Iterator[Line]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for line, docstring in texts(text)[0]:
        yield from enumerate(docstring.splitlines(), line)


def messages(text: str) -> Iterator[Line]:
    """Texts of several words that are no docstrings: help, and what is printed or raised."""
    for line, value in texts(text)[1]:
        if " " in value:
            yield line, " ".join(value.split())


def bare_raises(text: str) -> Iterator[Line]:
    """Sentences of docstrings that say what is raised, and not when."""
    for line, docstring in texts(text)[0]:
        for found in RAISES.finditer(docstring):
            what = found[0].partition(" ")[2]
            if not CONDITION.search(what) or COLON.match(what):
                yield line + docstring.count("\n", 0, found.start()), " ".join(found[0].split())


def cpp_prose(text: str) -> Iterator[Line]:
    for comment in CPP_COMMENT.finditer(text):
        first = text.count("\n", 0, comment.start()) + 1
        yield from enumerate(comment[0].splitlines(), first)


def hashed_prose(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.splitlines(), 1):
        if comment := HASH_COMMENT.search(line):
            yield number, comment[1]


def prose_of(file: Path) -> Iterator[Line]:
    text = file.read_text()
    if file.suffix == ".py":
        return python_prose(text)
    if not file.suffix or file.suffix in HASHED:
        return hashed_prose(text)
    return enumerate(text.splitlines(), 1) if file.suffix == ".md" else cpp_prose(text)


def complaints(line: str, *, names_people: bool = False) -> Iterator[str]:
    """names_people: `who` is said of them."""
    plain = CODE.sub("", line)
    for word, say in WORDS.items():
        for found in word.finditer(plain):
            if not (names_people and found[0] == "who"):
                yield f'"{found[0]}": {say}'


def files() -> Iterator[Path]:
    for pattern in CLEAN:
        for at in sorted(Path().glob(pattern)):
            found = sorted(at.rglob("*")) if at.is_dir() else [at]
            yield from (file for file in found if file.suffix in SUFFIXES or is_script(file))


def is_script(file: Path) -> bool:
    if file.suffix or not file.is_file():
        return False
    with file.open("rb") as opened:
        return file.name == "Makefile" or opened.read(2) == b"#!"


def found_in(file: Path) -> Iterator[str]:
    text = file.read_text()
    if ANY.search(text):
        for number, line in prose_of(file):
            yield from (f"{file}:{number}: {complaint}" for complaint in complaints(line))
    if file.suffix == ".py" and file.is_relative_to(PACKAGE):
        for number, line in messages(text):
            found = complaints(line, names_people=True)
            yield from (f"{file}:{number}: {complaint}" for complaint in found)
        yield from (f'{file}:{number}: "{line}": say when' for number, line in bare_raises(text))


def main() -> int:
    found = [line for file in files() for line in found_in(file)]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
