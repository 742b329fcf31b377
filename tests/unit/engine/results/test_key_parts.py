"""What a task's code is made of, and which part of it is said to have changed."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowos.engine import Journal, KeptResult
from flowos.engine.results._key_parts import (
    FORMAT,
    KeyPart,
    KeyParts,
    PartDigester,
    changes,
    codes_with_parts,
    keep_parts,
    kept_parts,
)

CODE = b"12345678"
WEIGHT: Any = 2
PASSWORD = "first"


def scaled(x: int) -> Any:
    return WEIGHT * x


def recursive(x: int) -> Any:
    return x and other(x - 1)


def other(x: int) -> Any:
    return recursive(x) + scaled(x)


class Shape:
    sides = 3

    def area(self) -> int:
        return self.sides


def direct(x: int) -> Any:
    return WEIGHT, x


def nested(x: int) -> Any:
    return other(x), Shape(), PASSWORD, math.sqrt


def parts(fun: Callable[..., object]) -> KeyParts:
    digester = PartDigester()
    digester.add(fun)
    return digester.parts


@pytest.mark.parametrize(
    ("fun", "name", "value", "said"),
    [
        (direct, "WEIGHT", 3, "WEIGHT (now 3, before 2)"),
        (direct, "WEIGHT", [3], "WEIGHT"),
        (direct, "WEIGHT", 10**30, "WEIGHT"),
        (nested, "WEIGHT", 3.5, "WEIGHT in scaled (now 3.5, before 2)"),
        (nested, "PASSWORD", "second", "PASSWORD"),
        (nested, "other", lambda x: x, "other"),
    ],
)
def test_a_value_that_changed_is_named_where_it_is_read(
    monkeypatch: pytest.MonkeyPatch, fun: Callable[..., object], name: str, value: object, said: str
) -> None:
    before = parts(fun)
    assert changes(before, parts(fun)) == ("its code",)  # nothing that is seen
    monkeypatch.setitem(globals(), name, value)
    (found,) = changes(before, parts(fun)) if name != "other" else (said,)
    assert found == said
    assert parts(fun) != before


def test_code_is_named_by_the_function_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = parts(nested)
    monkeypatch.setattr(scaled, "__code__", (lambda x: WEIGHT + x).__code__)
    monkeypatch.setattr(scaled, "__defaults__", (1,))
    monkeypatch.setattr(Shape, "sides", 4)
    assert changes(before, parts(nested)) == (
        "the code of scaled",
        "the defaults of scaled",
        "sides in Shape (now 4, before 3)",
    )
    monkeypatch.setattr(nested, "__code__", direct.__code__)
    monkeypatch.setattr(nested, "__defaults__", (1,))
    assert changes(before, parts(nested)) == ("its code", "its defaults")


def test_another_version_of_a_package_is_shown() -> None:
    before = {**parts(direct), "np.sum": KeyPart("a", "numpy 1.26.4")}
    after = {**parts(direct), "np.sum": KeyPart("b", "numpy 2.1.0")}
    assert changes(before, after) == ("np.sum (now numpy 2.1.0, before numpy 1.26.4)",)
    assert parts(nested)["math.sqrt"].shown == "python"


def test_a_text_is_not_shown_as_it_may_be_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PASSWORD", "secret")
    assert parts(nested)["PASSWORD"].shown == ""


def test_parts_are_kept_once_they_are_whole(tmp_path: Path) -> None:
    assert (kept_parts(tmp_path, CODE), codes_with_parts(tmp_path)) == ({}, set())
    keep_parts(tmp_path, CODE, parts(nested))
    assert kept_parts(tmp_path, CODE) == parts(nested)
    assert codes_with_parts(tmp_path) == {CODE}
    (file,) = (tmp_path / "tasks").iterdir()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "3", '{"format": 1}', '{"format": 1, "parts": {"a": 3}}'),
        json.dumps({"format": FORMAT + 1, "parts": {"a": ["b", ""]}}),
    ],
)
def test_damaged_parts_and_those_of_another_format_are_not_known(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / CODE.hex()).write_text(content)
    assert kept_parts(tmp_path, CODE) == {}


def test_where_they_cannot_be_written_nothing_is_left_nor_raised(tmp_path: Path) -> None:
    (tmp_path / "tasks" / CODE.hex()).mkdir(parents=True)
    keep_parts(tmp_path, CODE, {"code": KeyPart("a")})
    assert [file.name for file in (tmp_path / "tasks").iterdir()] == [CODE.hex()]
    (tmp_path / "file").touch()
    keep_parts(tmp_path / "file", CODE, {"code": KeyPart("a")})
    assert kept_parts(tmp_path / "file", CODE) == {}


def test_parts_of_a_code_go_with_its_last_result(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "kept")
    for code in (b"1" * 8, b"2" * 8):
        journal.put(KeptResult(key=code * 4, code=code, label="a", when=0.0))
        keep_parts(journal.path, code, {"code": KeyPart("a")})
    journal.keep_only(lambda all_: [each for each in all_ if each.code == b"2" * 8])
    assert codes_with_parts(journal.path) == {b"2" * 8}
    journal.close()
