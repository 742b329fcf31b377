"""Source code of a body in another language: what a person gave, and how it is compiled."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from flowos._dataclasses import dataclass

Language = Literal["c", "c++", "fortran", "opencl", "cuda", "r", "julia"]

_SUFFIXES: dict[str, Language] = {
    **dict.fromkeys((".c",), "c"),
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".c++", ".C"), "c++"),
    **dict.fromkeys((".f", ".for", ".f90", ".f95", ".f03", ".f08", ".F", ".F90"), "fortran"),
}
_OWN_SUFFIX: dict[Language, str] = {
    "c": ".c",
    "c++": ".cpp",
    "fortran": ".f90",
    "opencl": ".cl",
    "cuda": ".cu",
    "r": ".R",
    "julia": ".jl",
}
_MARKS: dict[Language | None, tuple[str, ...]] = {"r": ("<-", "function("), "julia": (") =", ")=")}
_ERROR = re.compile(r"(?P<where>[^\n]*?:\d+(:\d+)?): (fatal )?error: (?P<what>[^\n]*)")
_POCL_ERROR = re.compile(r"^error: (?P<where>[^\n]*?:\d+:\d+): (?P<what>[^\n]*)", re.MULTILINE)
_NVRTC_ERROR = re.compile(
    r"^(?P<where>[^\n]*?)\((?P<line>\d+)\): (catastrophic )?error( #[\w-]+)?: (?P<what>[^\n]*)",
    re.MULTILINE,
)
_FORTRAN_PLACE = re.compile(r"^(?P<where>[^\n]*:\d+:\d+):$", re.MULTILINE)
_FORTRAN_ERROR = re.compile(r"^(Fatal )?Error: (?P<what>[^\n]*)", re.MULTILINE)
_LINKER_ERRORS = (
    re.compile("[Cc]annot find|undefined reference|multiple definition"),
    re.compile("error|undefined"),
)
"""Of other lines, as a linker's: the most telling first."""

_INCLUDE = re.compile(
    r"(?:^[ \t]*#[ \t]*(?:include|define[ \t]+\w+)|`[ \t]*include|^[ \t]*(?i:include)"
    r"|\bsource\([ \t]*(?:file[ \t]*=)?|\binclude\()"
    r"""[ \t]*("[^"\n]+"|<[^>\n]+>|'[^'\n]+')""",
    re.MULTILINE,
)
"""A name that a macro has may be one that is included."""
_SYSTEM = ("-isystem", "-idirafter")
_WRITES = re.compile(
    r'\$(?:dumpfile|writemem[bh])\s*\(\s*"[^"\n]*"'
    r'|\$fopen\s*\(\s*"[^"\n]*"\s*(?:\)|,\s*"[wa][^"\n]*")'
)
"""Calls in Verilog that write a file; $fopen without a mode does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCode:
    """text: as it was when the task was made. path: of its file, "" if it was given as text.

    headers: digests of the files that it includes, and of those among the flags, for results that
    are kept.
    """

    text: str
    path: str
    language: Language
    flags: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def suffix(self) -> str:
        """Of the file that is compiled."""
        own = PurePath(self.path).suffix
        if own in _SUFFIXES:
            return own
        return _OWN_SUFFIX[self.language]

    @property
    def name(self) -> str:
        """For people, in what a compiler complains of."""
        return self.path or f"source{self.suffix}"

    @property
    def content(self) -> str:
        """What is compiled: the text, which names its file for the compiler."""
        line = "# 1" if self.language == "fortran" else "#line 1"
        return f'{line} "{self.name}"\n{self.text}'

    def command(self, compiler: str, file: str, library: str, headers: str) -> tuple[str, ...]:
        """How `file` becomes a library; the names of what it includes are written to `headers`."""
        made = ("-O3", "-march=native", "-fPIC", "-shared")
        listed = "-MD" if any(flag.startswith(_SYSTEM) for flag in self.flags) else "-MMD"
        return (
            *(compiler, *made, *self._reading, listed, "-MF", headers),
            *(file, "-o", library, *self.flags),
        )

    def type_command(self, compiler: str, file: str, made: str) -> tuple[str, ...]:
        """How a compiler is asked for the types of functions. made: a folder for what it writes."""
        fortran = self.language == "fortran"
        modules = any(flag.startswith("-J") for flag in self.flags)
        folder = ("-J", made) if fortran and not modules else ()
        said = ("-fc-prototypes",) if fortran else ()
        asked = ("-fsyntax-only", "-w", "-fno-diagnostics-color", *said)
        return (
            compiler,
            "-O3",
            "-march=native",
            *self._reading,
            *folder,
            file,
            *self.flags,
            *asked,
        )

    @property
    def _reading(self) -> tuple[str, ...]:
        """How it is read: where files are that it includes, and the standard."""
        folder = str(PurePath(self.path).parent) if self.path else "."
        if self.language == "fortran":
            return "-cpp", "-I", folder
        standard = ("-std=c++20",) if self.language == "c++" else ()
        return (*standard, "-iquote", folder)


def language_of(path: str) -> Language | None:
    """By the suffix of a file; None if it says nothing."""
    return _SUFFIXES.get(PurePath(path).suffix)


def included_names(text: str) -> list[str]:
    """Names of the files that a source may include: `include is Verilog's, source() R's,
    include() Julia's."""
    return [word[1:-1] for word in _INCLUDE.findall(text)]


def quoted_words(text: str) -> list[str]:
    """What Verilog has in quotes, in one line: names of files that it reads may be among them."""
    return re.findall(r'"([^"\\\n]+)"', _WRITES.sub("", text))


def first_error(said: str) -> str:
    """The first error line of a compiler, else the last line that it wrote."""
    if found := _POCL_ERROR.search(said) or _ERROR.search(said):
        return f"{found['where']}: {found['what']}"
    if found := _NVRTC_ERROR.search(said):
        return f"{found['where']}:{found['line']}: {found['what']}"
    what, where = _FORTRAN_ERROR.search(said), _FORTRAN_PLACE.search(said)
    if what and where:
        return f"{where['where']}: {what['what']}"
    return _linker_error([line.strip() for line in said.splitlines() if line.strip()])


def _linker_error(lines: Sequence[str]) -> str:
    """But for the line that says no more than that the linker failed."""
    lines = [line for line in lines if not line.startswith("collect2: error: ")]
    found = (line for words in _LINKER_ERRORS for line in lines if words.search(line))
    return next(found, lines[-1] if lines else "it said nothing")


def headers_of(rule: str) -> list[str]:
    """The files that a rule of make names, as -MMD writes it, but for the source itself."""
    return files_of(rule)[1:]


def files_of(rule: str) -> list[str]:
    """The files that a rule of make names as what its targets are made of."""
    words = rule.replace("\\\n", " ").partition(": ")[2]
    names = re.findall(r"(?:\\ |\S)+", words)
    return [name.replace("\\ ", " ") for name in names]


def misses_c_abi(entry: str, symbols: bytes) -> str:
    """What to do where a library has the function under another name; "" if it has not."""
    if f"_Z{len(entry)}{entry}".encode() in symbols:
        return f'write extern "C" before {entry}, which C++ else gives another name'
    if f"{entry.lower()}_".encode() in symbols:
        return f"write bind(c, name='{entry}') after its arguments"
    return ""


def is_source_text(source: str, language: Language | None = None) -> bool:
    """Whether it is code, rather than a path: it has a line break, or a brace; in R also if it has
    `<-` or `function(`, in Julia `) =`."""
    marks = ("\n", "{", *_MARKS.get(language, ()))
    return any(mark in source for mark in marks)


def alternatives(words: Sequence[str]) -> str:
    """As a, b or c."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
