"""Files within values: found by the type, and given another name."""

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import flowos.model as m
from flowos.model import has_files, with_files
from flowos.model._hints import port_type

A, B = Path("a"), Path("b")


@dataclass(frozen=True, slots=True)
class Frozen:
    mesh: Path
    note: Any = None


@dataclass
class Case:
    frozen: Frozen
    files: list[Path] = field(default_factory=list)
    count: int = 1


class Pair(NamedTuple):
    first: Path
    second: int


CASES: list[tuple[Any, Any, Any, list[str]]] = [
    (Path, A, Path("new/a"), [""]),
    (list[Path], [A, B], [Path("new/a"), Path("new/b")], ["[0]", "[1]"]),
    (list[Path], [], [], []),
    (set[Path], {A}, {Path("new/a")}, ["[0]"]),
    (tuple[Path, ...], (A,), (Path("new/a"),), ["[0]"]),
    (tuple[Path, ...], Pair(A, B), Pair(Path("new/a"), Path("new/b")), ["[0]", "[1]"]),  # type: ignore[arg-type]
    (tuple[int, Path], (1, A), (1, Path("new/a")), ["[1]"]),
    (dict[str, Path], {"k": A}, {"k": Path("new/a")}, ["['k']"]),
    (dict[Path, Path], {A: B}, {Path("new/a"): Path("new/b")}, [".keys()", "['a']"]),
    (dict[str, Path], OrderedDict(k=A), OrderedDict(k=Path("new/a")), ["['k']"]),
    (Path | None, A, Path("new/a"), [""]),
    (Path | None, None, None, []),
    (Path | str, "a", "a", []),
    (Path | str, A, Path("new/a"), [""]),
    (Pair, Pair(A, 1), Pair(Path("new/a"), 1), [".first"]),
    (Case, Case(Frozen(A)), Case(Frozen(Path("new/a"))), [".frozen.mesh"]),
    (
        dict[str, list[Case]],
        {"k": [Case(Frozen(A, A), [B])]},
        {"k": [Case(Frozen(Path("new/a"), A), [Path("new/b")])]},
        ["['k'][0].frozen.mesh", "['k'][0].files[0]"],
    ),
    (list[Path], 3, 3, []),
    (int, 3, 3, []),
    (Any, A, A, []),
]


@pytest.mark.parametrize(("hint", "value", "expected", "paths"), CASES, ids=str)
def test_each_file_of_a_value_is_replaced_and_told_where_it_is(
    hint: Any, value: Any, expected: Any, paths: list[str]
) -> None:
    before, seen = repr(value), []

    def moved(file: Path, path: str) -> Path:
        seen.append(path.replace("PosixPath('a')", "'a'"))
        return "new" / file

    found = with_files(port_type("here", hint), value, moved)
    assert (found, type(found), seen) == (expected, type(value), paths)
    assert repr(value) == before


def test_a_dict_with_a_default_keeps_it() -> None:
    given = defaultdict(Path, k=A)
    found = with_files(port_type("here", dict[str, Path]), given, lambda *_: B)
    assert found == {"k": B}
    assert found["other"] == Path()


@pytest.mark.parametrize(("hint", "value", "expected", "paths"), CASES, ids=str)
def test_a_value_whose_files_stay_is_the_same_object(
    hint: Any, value: Any, expected: Any, paths: list[str]
) -> None:
    del expected, paths
    assert with_files(port_type("here", hint), value, lambda file, _: file) is value


@pytest.mark.parametrize(
    ("type_", "has"),
    [
        (m.File, True),
        (m.any_, False),
        (port_type("", list[int]), False),
        (port_type("", Case), True),
    ],
)
def test_a_type_has_files_if_a_part_of_it_may_be_one(type_: m.PortType, has: bool) -> None:
    assert has_files(type_) is has
