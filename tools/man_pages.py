"""Writes a page of `man` for flowos and one for each command, from what `--help` is made of.

`python tools/man_pages.py FOLDER`: FOLDER/flowos.1, FOLDER/flowos-measure.1 and so on. The build
calls it, before anything is installed: it needs the standard library alone.
"""

import argparse
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
_WRITTEN = str.maketrans(
    {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
)
sys.path.insert(0, str(HERE / "src"))
_COLUMNS = 78
os.environ["COLUMNS"] = str(_COLUMNS)  # of usage lines

from flowos.cli import parser  # noqa: E402
from flowos.cli._commands import COMMANDS  # noqa: E402
from flowos.cli._described import options, subparsers  # noqa: E402
from flowos.cli._exit_codes import OF_EVERY_COMMAND  # noqa: E402
from flowos.cli._shared import epilog_text  # noqa: E402


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of each."""
    top = parser(all_options=True)
    yield "flowos", _page("flowos", top, top.description or "", list(_commands()))
    for name, command in subparsers(top).items():
        sections = [*_sections(command), ".SH SEE ALSO", ".BR flowos (1)"]
        yield f"flowos-{name}", _page(f"flowos-{name}", command, COMMANDS[name], sections)


def _page(name: str, of: argparse.ArgumentParser, about: str, sections: list[str]) -> str:
    version = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["version"]
    lines = [
        f'.TH {_escaped(name.upper())} 1 "" "flowos {version}" "FlowOS"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(about.rstrip('.'))}",
        ".SH SYNOPSIS",
        *_usage(of),
        *_options(of, ".SH OPTIONS"),
        *sections,
    ]
    return "\n".join(lines) + "\n"


def _commands() -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, about in COMMANDS.items():
        yield from (".TP", f".BR flowos\\-{_escaped(name)} (1)", _text(about))
    yield ".SH EXIT STATUS"
    for code, means in OF_EVERY_COMMAND:
        yield from (".TP", f".B {code}", _text(means))
    yield from (".PP", "The page of a command says where its codes say more.")
    yield from (".SH FILES", ".TP", ".I flowos.toml")
    yield "settings, in the current folder and in ~/.config/flowos:"
    yield from (".B flowos config", "shows them.")


def _sections(of: argparse.ArgumentParser) -> Iterator[str]:
    """What is said below the options: of each command within this one too."""
    within = subparsers(of)
    if not within:
        yield from _epilog(of, ".SH EXAMPLES")
    for command in within.values():
        yield f'.SH "{_escaped(command.prog.upper())}"'
        yield _text(command.description or "")
        yield from (".PP", *_usage(command))
        yield from _options(command, "")
        yield from _sections(command) if subparsers(command) else _epilog(command, ".PP")


def _options(of: argparse.ArgumentParser, title: str) -> Iterator[str]:
    found = list(options(of))
    if found and title:
        yield title
    for given, said in found:
        yield from (".TP", f"\\fB{_escaped(given)}\\fR", _text(said))


def _usage(of: argparse.ArgumentParser) -> Iterator[str]:
    return _as_it_is(_without("usage: ", of.format_usage()))


def _without(label: str, text: str) -> str:
    """A text that begins with a label, to whose width further lines are indented."""
    return text.removeprefix(label).replace("\n" + " " * len(label), "\n")


def _epilog(of: argparse.ArgumentParser, title: str) -> Iterator[str]:
    if of.epilog:
        yield from (title, *_as_it_is(_without("example: ", epilog_text(of.epilog, _COLUMNS))))


def _as_it_is(text: str) -> Iterator[str]:
    yield ".nf"
    yield from (_text(line.rstrip()) for line in text.rstrip().splitlines())
    yield ".fi"


def _text(words: str) -> str:
    """A line that starts with no request."""
    escaped = _escaped(" ".join(words.split("\n")))
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _escaped(text: str) -> str:
    return text.translate(_WRITTEN)


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    for name, text in pages():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
