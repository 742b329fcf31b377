"""Programs that say `Python 3.8` run there: images and nodes may have no newer one."""

import ast
from collections.abc import Iterator
from importlib.resources import files

import pytest

import flowos.probes

PROGRAMS = sorted(
    (each for each in (files(flowos.probes) / "programs").iterdir() if each.name.endswith(".py")),
    key=lambda each: each.name,
)
OF_3_8 = {each.name: text for each in PROGRAMS if "Python 3.8" in (text := each.read_text())}
OF_3_9 = {"dict", "frozenset", "list", "set", "tuple", "type"}
"""Types of which an index, as in `list[str]`, is an error until then."""


def evaluated(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but annotations, which `from __future__ import annotations` leaves unread."""
    for name, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and name not in ("annotation", "returns"):
                yield node
                yield from evaluated(node)


def needs_3_9(text: str) -> list[str]:
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("collections", "collections.abc")
        for alias in node.names
    }
    return [
        ast.unparse(node)
        for node in evaluated(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in OF_3_9 | imported
    ]


@pytest.mark.parametrize("name", OF_3_8)
def test_a_program_for_python_3_8_uses_nothing_newer(name: str) -> None:
    assert "from __future__ import annotations" in OF_3_8[name]
    assert needs_3_9(OF_3_8[name]) == []


def test_what_is_newer_is_seen() -> None:
    assert {"collect.py", "collect_software.py", "kept_trials.py"} <= OF_3_8.keys()
    text = "from collections.abc import Callable\n"
    text += "def f(x: list[int]) -> None:\n    y: dict[str, int] = {}\n"
    text += "T = Callable[[], int]\nU = dict[str, T]\n"
    assert needs_3_9(text) == ["Callable[[], int]", "dict[str, T]"]
    with pytest.raises(SyntaxError):
        needs_3_9("match 1:\n    case 1: pass\n")
