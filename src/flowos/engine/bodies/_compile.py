"""Libraries of bodies, compiled where they run. What is kept of them: see `_kept`."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from flowos.engine._ask import ToolAnswer, ask, which
from flowos.engine._processor import processor_lines
from flowos.engine.bodies._kept import CompileFailed, Made, files_read, kept_file
from flowos.engine.bodies._source import flag_files, is_file
from flowos.model import (
    EngineMissing,
    NativeEntry,
    SourceCode,
    first_error,
    headers_of,
)

__flowos_frames__ = True
_SECONDS = 600.0
_COMPILERS = {
    "c": ("CC", ("cc", "gcc", "clang"), "gcc"),
    "c++": ("CXX", ("c++", "g++", "clang++"), "g++"),
    "fortran": ("FC", ("gfortran", "flang"), "gfortran"),
}
_TRACE = "-Wl,--trace"
_MEMBER = re.compile(r"\((.+)\)[^()]*|(.+)\([^()]*\)")
"""Of an archive, as linkers write it: (libx.a)y.o, libx.a(y.o)."""
_OWN = ("crti.o", "crtbeginS.o", "libgcc.a")
"""Files of a compiler, in whose folders its libraries are."""
_SPOKEN = {"c": "C", "c++": "C++", "fortran": "Fortran"}


def library_of(code: SourceCode) -> Path:
    """The file of the library.

    Raises CompileFailed if the compiler refuses it, and EngineMissing if there is no compiler.
    """
    compiler = compiler_words(code.language)
    return kept_file(_words(code, compiler), lambda made: compiled(code, compiler[0], made))


def kept_type(code: SourceCode, entry: str) -> str:
    """Of this function in the source, as the compiler says it; "" if it does not.

    Of a source whose `library_of` is kept. Raises as that does.
    """
    compiler = compiler_words(code.language)
    words = _words(code, compiler)

    def make(made: Path) -> Made:
        said = made / "body.type"
        said.write_text(_said_type(code, entry, compiler[0], made), encoding="utf-8")
        return said, files_read(words)

    return kept_file(("type", entry, *words), make).read_text(encoding="utf-8")


def _words(code: SourceCode, compiler: Sequence[str]) -> tuple[str, ...]:
    return code.content, code.suffix, *code.flags, *compiler


def _said_type(code: SourceCode, entry: str, compiler: str, made: Path) -> str:
    """A run of its own: what a compiler thinks of the question is none of the person's matter."""
    file = made / f"body{code.suffix}"
    function = NativeEntry(entry, code.language)
    file.write_text(f"{code.content}{function.probe}", encoding="utf-8")
    answer = answered(code.type_command(compiler, str(file), str(made)), None)
    return function.type_in(f"{os.fsdecode(answer.stdout)}\n{answer.says}")


def compiler_words(language: str) -> tuple[str, str, str]:
    """Its path, what distinguishes it from another one at that path, and the processor.

    Raises EngineMissing if there is none.
    """
    variable, names, package = _COMPILERS[language]
    given = os.environ.get(variable)
    found = next((path for name in ((given,) if given else names) if (path := which(name))), None)
    if found is None:
        named = f" {given!r}, which {variable} names" if given else ""
        raise EngineMissing(
            f"there is no {_SPOKEN[language]} compiler{named}: install {package}, or name one in "
            f"{variable}"
        )
    return found, program_facts(found), processor_lines()


def compiler_path(language: str) -> str:
    """Raises EngineMissing if there is none."""
    return compiler_words(language)[0]


def program_facts(path: str) -> str:
    """What distinguishes a program from another one at this path."""
    real = Path(path).resolve()
    facts = real.stat()
    return f"{real} {facts.st_size} {facts.st_mtime_ns}"


def compiled(code: SourceCode, compiler: str, made: Path) -> Made:
    """The library, in this folder, and what was read for it: headers, files among the flags, and
    what was linked, but for the folders of the compiler's own libraries, and shared libraries,
    which are not part of it. Raises CompileFailed if the compiler refuses it."""
    file, library, headers = (made / f"body{suffix}" for suffix in (code.suffix, ".so", ".d"))
    file.write_text(code.content, encoding="utf-8")
    argv = code.command(compiler, str(file), str(library), str(headers))
    answer = answered((*argv, _TRACE), None)
    if answer.code:
        raise CompileFailed(first_error(_complaint(answer).replace(f"{made}/", "")))
    rule = headers.read_text(encoding="utf-8") if headers.exists() else ""
    linked = _linked(os.fsdecode(answer.stdout))
    read = dict.fromkeys([*headers_of(rule), *linked, *flag_files(code.flags)])
    return library, [name for name in read if ".so" not in Path(name).suffixes]


def _linked(said: str) -> list[str]:
    names = [name for line in said.splitlines() if (name := _existing(line.strip()))]
    own = {Path(name).resolve().parent for name in names if Path(name).name in _OWN}
    return [name for name in names if Path(name).resolve().parent not in own]


def _existing(line: str) -> str:
    """The file that a line of a linker's list names; "" if it is gone, as temporary ones are."""
    member = _MEMBER.fullmatch(line)
    names = (line, *(filter(None, member.groups()) if member else ()))
    return next((name for name in names if name and is_file(Path(name))), "")


def asked(argv: Sequence[str], folder: Path | None = None) -> str | None:
    """Runs a tool, in this folder; what it complains of if it fails. Raises CompileFailed if it
    cannot be run."""
    answer = answered(argv, folder)
    return _complaint(answer) if answer.code else None


def answered(argv: Sequence[str], folder: Path | None) -> ToolAnswer:
    """Runs a tool, in this folder. Raises CompileFailed if it cannot be run."""
    try:
        words = {**os.environ, "LC_ALL": "C"}
        return ask(argv, seconds=_SECONDS, variables=words, cwd=folder)
    except OSError as error:
        raise CompileFailed(f"{argv[0]} could not be run: {error}") from error


def _complaint(answer: ToolAnswer) -> str:
    return answer.says or answer.stdout.decode(errors="replace")
