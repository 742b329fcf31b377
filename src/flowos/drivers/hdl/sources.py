"""Files of Verilog as the tools get them: under names of ours, in a folder of their own."""

import re
from pathlib import PurePath

from flowos.model import HdlDesign

_NAME = re.compile(r"(?:\binclude\d+/)?\bsource(\d+)\.\w+")
_FOLDER = re.compile(r"\binclude(\d+)/")
_MODULE = re.compile(r"^[ \t]*module[ \t]+(\w+)", re.MULTILINE)


def source_names(design: HdlDesign) -> list[str]:
    """Of the design's files, there."""
    suffixes = (PurePath(path).suffix or ".v" for path, _ in design.files)
    return [f"source{number}{suffix}" for number, suffix in enumerate(suffixes)]


def source_folders(design: HdlDesign) -> list[str]:
    """Where its files are: what they read by a relative name is there."""
    return [*dict.fromkeys(str(PurePath(path).parent) for path, _ in design.files if path)]


def folder_links(design: HdlDesign) -> dict[str, str]:
    """Names without spaces for its folders, as Yosys needs them."""
    return {f"include{number}": folder for number, folder in enumerate(source_folders(design))}


def placed_text(name: str, path: str, text: str, links: dict[str, str]) -> str:
    """A source under this name of ours, which says that it is in the person's folder."""
    folders = {folder: link for link, folder in links.items()}
    at = folders.get(str(PurePath(path).parent)) if path else None
    return f'`line 1 "{at}/{name}" 0\n{text}' if at else text


def named_in(design: HdlDesign, name: str) -> str:
    """The place where its files name this one, as `FILE:LINE: `; "" if they do not."""
    for path, text in design.files:
        before, found, _ = text.partition(f'"{name}"')
        if found:
            return f"{path or 'source.v'}:{before.count(chr(10)) + 1}: "
    return ""


def with_paths(said: str, design: HdlDesign) -> str:
    """What a tool said, with the person's names of the files."""

    def named(found: re.Match[str]) -> str:
        number = int(found[1])
        path = design.files[number][0] if number < len(design.files) else found[0]
        return path or "source.v"

    links = folder_links(design)
    return _FOLDER.sub(
        lambda found: f"{links.get(found[0][:-1], found[0][:-1])}/", _NAME.sub(named, said)
    )


def no_top(design: HdlDesign) -> str:
    """That the files have no module of this name, and which they have."""
    known = [name for _, text in design.files for name in _MODULE.findall(text)]
    there = ", ".join(dict.fromkeys(known)) or "none"
    return f"no module {design.top}; there is {there}"
