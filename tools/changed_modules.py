"""A module with a change: imported, or the functions by which it differs as compiled code."""

import importlib.util
import inspect
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

Place = tuple[str, int]
"""A function's qualified name and first line."""


def is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def inner(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def all_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in inner(code):
        yield from all_inner(each)


def signature(code: CodeType) -> tuple[object, ...]:
    """What the code does by itself, without the functions in it."""
    consts = [repr(const) for const in code.co_consts if not isinstance(const, CodeType)]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
    return (code.co_code, code.co_exceptiontable, consts, names, counts)


def place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def changed_functions(old: CodeType, new: CodeType) -> dict[Place, CodeType] | None:
    """The functions that differ; None where something does that an import runs."""
    if is_function(old):
        same = [*map(signature, all_inner(old))] == [*map(signature, all_inner(new))]
        at_import = old.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
        codes = [] if same else [*all_inner(new)]
        found = {place(code): code for code in codes}
        return None if codes and (at_import or place(old) not in found) else found
    if signature(old) != signature(new) or len(inner(old)) != len(inner(new)):
        return None
    if len({place(code) for code in inner(old)}) < len(inner(old)):  # two lambdas in a line
        return None
    functions: dict[Place, CodeType] = {}
    for one, other in zip(inner(old), inner(new), strict=True):
        found_in = changed_functions(one, other)
        if found_in is None:
            return None
        functions |= found_in
    return functions


class OneModule(SourceFileLoader):
    """Imports one module from this source; an editable install's finder comes after it."""

    def __init__(self, path: Path, source: str) -> None:
        parts = path.with_suffix("").parts[1:]
        super().__init__(".".join(parts[:-1] if parts[-1] == "__init__" else parts), str(path))
        self.source = source

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != self.name:
            return None
        folder = [str(Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=folder
        )

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - that of the base
        return compile(self.source, self.path, "exec")
