"""Runs the blocks of a page of docs/ in their order, in a folder of the test's own.

A code block with a caption is a file of that name. Of a block of a console each line after `$ ` is
a command; the lines after it are what it prints, then what it says on standard error, where `...`
stands for anything. It exits with 0, or with one of `EXIT_CODES`.
"""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

DOCS = Path(__file__).parents[1] / "docs"

_BLOCK = re.compile(
    r"^```(?:\{code-block\} )?(\w+)\n(?::caption: (\S+)\n\n)?(.*?)^```$", re.M | re.S
)

EXIT_CODES = {
    "flowos compare ": (0, 1, 2),
    "flowos run chaos.py r=four": (2,),
    "timeout -s KILL ": (137,),
}
"""How a command begins -> what it may exit with: an answer, or what its page says."""


@dataclass(frozen=True)
class Block:
    """Of a page. file: its caption; "" of one without."""

    language: str
    file: str
    text: str


@dataclass(frozen=True)
class Command:
    """Of a console, and what it prints."""

    line: str
    shown: str


def blocks(page: str) -> Iterator[Block]:
    for language, file, text in _BLOCK.findall(page):
        yield Block(language=language, file=file, text=text)


def commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        yield Command(line=line, shown=shown)


def run_page(
    page: Path,
    folder: Path,
    *,
    variables: Mapping[str, str] = MappingProxyType({}),
    instead: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Asserts that each command works and prints what is shown; how many there were.

    instead: text of the page -> what stands for it here.
    """
    text = page.read_text()
    for old, new in instead.items():
        assert old in text
        text = text.replace(old, new)
    count = 0
    for block in blocks(text):
        if block.file:
            (folder / block.file).write_text(block.text)
        elif block.language == "console":
            for command in commands(block.text):
                _check(command, folder, variables)
                count += 1
    return count


def _check(command: Command, folder: Path, variables: Mapping[str, str]) -> None:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # compiled by others
    given = {"XDG_CACHE_HOME": cache, **os.environ, "HOME": str(folder), **variables}
    path = f"{Path(sys.executable).parent}:{given['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.line],
        cwd=folder,
        env={**given, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed = done.stdout + done.stderr  # in what order they come, buffers decide
    said = f"$ {command.line}\n{printed}(exit code {done.returncode})"
    assert doctest.OutputChecker().check_output(command.shown, printed, flags), said
    assert _works(command.line, done), said


def _works(line: str, done: subprocess.CompletedProcess[str]) -> bool:
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    codes = next((codes for start, codes in EXIT_CODES.items() if line.startswith(start)), (0,))
    refused = done.stderr.startswith("flowos compare: ")  # it exits with 2 then, too
    return code in codes and not refused
