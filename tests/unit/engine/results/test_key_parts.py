"""What a task's code is made of, and which part of it is said to have changed."""

import importlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowos.engine import Journal, KeptResult
from flowos.engine.results._key_parts import (
    FORMAT,
    KeyParts,
    changes,
    code_parts,
    keep_parts,
    kept_parts,
)

CODE = b"12345678"
PARTS = {"its code": {"a": ""}}
WEIGHT: Any = 2
PASSWORD = "first"
USER_PIN = 1234
code = defaults = imports = 1


def scaled(x: int) -> Any:
    return WEIGHT * x


def recursive(x: int) -> Any:
    return x and other(x - 1)


def other(x: int) -> Any:
    return recursive(x) + scaled(x)


TABLE = {"scaled": scaled, "recursive": recursive}


class Shape:
    sides = 3

    def area(self) -> int:
        return self.sides


def direct(x: int) -> Any:
    return WEIGHT, x


def nested(x: int) -> Any:
    return other(x), Shape(), PASSWORD, math.sqrt


def both(x: int) -> Any:
    return recursive(x), scaled(x), TABLE


def keyed(x: int) -> Any:
    return x, USER_PIN


def of_its_own_names(x: int) -> Any:
    import pydoc

    return x, code, defaults, imports, pydoc


def made(number: Any) -> Callable[[int], Any]:
    def plus(x: int) -> Any:
        return x + number

    return plus


def parts(fun: Callable[..., object]) -> KeyParts:
    return code_parts([fun])


@pytest.mark.parametrize(
    ("fun", "name", "value", "said"),
    [
        (direct, "WEIGHT", 3, "WEIGHT (now 3, before 2)"),
        (direct, "WEIGHT", [3], "WEIGHT"),
        (direct, "WEIGHT", 10**30, "WEIGHT"),
        (nested, "WEIGHT", 3.5, "WEIGHT in scaled (now 3.5, before 2)"),
        (nested, "PASSWORD", "second", "PASSWORD"),
        (nested, "other", lambda x: x, "other"),
        (keyed, "USER_PIN", 4321, "USER_PIN"),
        (of_its_own_names, "code", 2, "code (now 2, before 1)"),
        (of_its_own_names, "defaults", 2, "defaults (now 2, before 1)"),
        (of_its_own_names, "imports", 2, "imports (now 2, before 1)"),
    ],
)
def test_a_value_that_changed_is_named_where_it_is_read(
    monkeypatch: pytest.MonkeyPatch, fun: Callable[..., object], name: str, value: object, said: str
) -> None:
    before = parts(fun)
    assert changes(before, parts(fun)) == ()
    monkeypatch.setitem(globals(), name, value)
    assert changes(before, parts(fun)) == (said,)


def test_code_is_named_by_the_function_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = parts(nested)
    monkeypatch.setattr(scaled, "__code__", (lambda x: WEIGHT + x).__code__)
    monkeypatch.setattr(scaled, "__defaults__", (1,))
    monkeypatch.setattr(Shape, "sides", 4)
    assert set(changes(before, parts(nested))) == {
        "the code of scaled",
        "the defaults of scaled",
        "sides in Shape (now 4, before 3)",
    }
    monkeypatch.undo()
    monkeypatch.setattr(Shape.area, "__code__", (lambda self: 2 * self.sides).__code__)
    assert changes(before, parts(nested)) == ("the code of Shape.area",)
    monkeypatch.setattr(nested, "__defaults__", (1,))
    monkeypatch.setattr(nested, "__code__", direct.__code__)
    assert changes(before, parts(nested)) == ("its code", "its defaults")


def test_only_the_code_that_was_edited_is_said_whatever_the_order_of_its_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = parts(both)
    edited = (lambda x: (TABLE, scaled(x), recursive(x))).__code__
    monkeypatch.setattr(both, "__code__", edited)
    assert changes(before, parts(both)) == ("its code",)
    monkeypatch.setattr(scaled, "__code__", (lambda x: WEIGHT + x).__code__)
    assert changes(before, parts(both)) == ("its code", "the code of scaled")
    assert changes(parts(both), before) == ("its code", "the code of scaled")


def test_functions_in_a_set_are_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "WEIGHT", {Shape, scaled})
    before = parts(direct)
    monkeypatch.setattr(scaled, "__code__", (lambda x: x).__code__)
    assert changes(before, parts(direct)) == ("the code of scaled",)


def test_a_value_that_many_read_is_said_once() -> None:
    names = [f"h{number}" for number in range(6)]
    known: dict[str, Any] = {"K": 1, "Q": 1, "__name__": __name__}
    lines = [f"def {name}(): return K" for name in names]
    exec("\n".join([*lines, "def q(): return Q", f"def t(): return q, {', '.join(names)}"]), known)
    before = parts(known["t"])
    known |= {"K": 2, "Q": 2}
    said = ("Q in q (now 2, before 1)", "K in h0 (now 2, before 1)")
    assert changes(before, parts(known["t"])) == said


def test_closures_of_one_function_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(*numbers: int) -> KeyParts:
        monkeypatch.setitem(globals(), "WEIGHT", tuple(map(made, numbers)))
        return parts(direct)

    assert changes(of(2, 3), of(3, 2, 4, 4)) == ("WEIGHT",)  # one more is no change of those
    assert changes(of(2, 3), of(3, 5)) == ("number in plus (now 5, before 2)",)
    assert changes(of(2, 3), of(4, 5)) == ("number in plus",)


def test_the_name_of_a_class_member_may_be_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("code", "defaults", "we/ird", "x in y"):
        monkeypatch.setattr(Shape, name, 1, raising=False)
        before = parts(nested)
        monkeypatch.setattr(Shape, name, 2)
        assert changes(before, parts(nested)) == (f"{name} in Shape (now 2, before 1)",)


def test_a_chain_of_any_length_has_parts() -> None:
    known: dict[str, Any] = {"f0": scaled, "__name__": __name__}
    exec("\n".join(f"def f{n}(x): return f{n - 1}(x)" for n in range(1, 3000)), known)
    assert len([name for name in parts(known["f2999"]) if "code of" in name]) == 2999


def test_a_value_is_digested_once_however_many_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reduced = []

    class Table:
        def __reduce__(self) -> tuple[object, ...]:
            reduced.append(1)
            return int, ()

    monkeypatch.setitem(globals(), "WEIGHT", Table())

    def fun(x: int) -> Any:
        return direct(x), scaled(x), WEIGHT

    parts(fun)
    assert len(reduced) == 1


def test_what_has_no_digest_is_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "WEIGHT", (each for each in "ab"))
    assert [name for name in parts(direct) if "WEIGHT" in name] == []


def test_another_version_of_a_package_is_shown() -> None:
    before = {"np.sum in ": {"a": "numpy 1.26.4"}}
    after = {"np.sum in ": {"b": "numpy 2.1.0"}}
    assert changes(before, after) == ("np.sum (now numpy 2.1.0, before numpy 1.26.4)",)
    assert [*parts(nested)["math.sqrt in "].values()] == ["python"]


def test_of_a_package_its_name_and_version_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    monkeypatch.setitem(globals(), "WEIGHT", numpy)
    assert [*parts(direct)["WEIGHT in "].values()] == [f"numpy {numpy.__version__}"]


def test_of_a_package_that_says_no_version_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "site-packages" / "vendored_here"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setitem(globals(), "WEIGHT", importlib.import_module("vendored_here"))
    before = parts(direct)
    assert [*before["WEIGHT in "].values()] == [""]


@pytest.mark.parametrize("name", ["USER_PIN", "API_TOKEN", "apikey", "Secret", "passwd", "c.pin"])
def test_a_text_or_a_number_that_may_be_a_password_is_neither_shown_nor_kept(
    tmp_path: Path, name: str
) -> None:
    first, _, last = name.partition(".")
    inner = type("Config", (), {last: 998877}) if last else 998877
    known: dict[str, Any] = {first: inner, "WORD": "998877", "__name__": __name__}
    exec(f"def t(): return {name}, WORD", known)
    keep_parts(tmp_path, CODE, parts(known["t"]))
    kept = (tmp_path / "tasks" / CODE.hex()).read_text()
    assert (last or first) in kept
    assert "998877" not in kept


def test_parts_are_kept_once_they_are_whole(tmp_path: Path) -> None:
    assert kept_parts(tmp_path, CODE) == {}
    keep_parts(tmp_path, CODE, parts(nested))
    assert kept_parts(tmp_path, CODE) == parts(nested)
    (file,) = (tmp_path / "tasks").iterdir()
    assert (file.name, file.stat().st_mode & 0o077) == (CODE.hex(), 0)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "3", '{"format": 1}', f'{{"format": {FORMAT}, "parts": {{"a": 3}}}}'),
        json.dumps({"format": FORMAT - 1, "parts": {"a": ["b", ""]}}),
        json.dumps({"format": FORMAT + 1, "parts": PARTS}),
        "[" * 200_000,
    ],
)
def test_damaged_parts_and_those_of_another_format_are_not_known(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / CODE.hex()).write_text(content)
    assert kept_parts(tmp_path, CODE) == {}
    keep_parts(tmp_path, CODE, PARTS)
    assert kept_parts(tmp_path, CODE) == PARTS


def test_what_is_no_file_is_neither_waited_for_nor_read(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    os.mkfifo(tmp_path / "tasks" / CODE.hex())
    assert kept_parts(tmp_path, CODE) == {}
    keep_parts(tmp_path, CODE, PARTS)
    assert kept_parts(tmp_path, CODE) == PARTS


def test_where_they_cannot_be_written_nothing_is_left_nor_raised(tmp_path: Path) -> None:
    (tmp_path / "tasks" / CODE.hex()).mkdir(parents=True)
    keep_parts(tmp_path, CODE, PARTS)
    assert [file.name for file in (tmp_path / "tasks").iterdir()] == [CODE.hex()]
    assert kept_parts(tmp_path, CODE) == {}
    (tmp_path / "file").touch()
    keep_parts(tmp_path / "file", CODE, PARTS)
    assert kept_parts(tmp_path / "file", CODE) == {}


def test_parts_of_a_code_go_with_its_last_result(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "kept")
    for code_ in (b"1" * 8, b"2" * 8):
        journal.put(KeptResult(key=code_ * 4, code=code_, label="a", when=0.0))
        keep_parts(journal.path, code_, PARTS)
    (journal.path / "tasks" / (b"0" * 8).hex()).mkdir()  # stops nothing
    (journal.path / "tasks" / "README").touch()
    journal.keep_only(lambda all_: [each for each in all_ if each.code == b"2" * 8])
    left = {file.name for file in (journal.path / "tasks").iterdir()}
    assert left == {(b"0" * 8).hex(), (b"2" * 8).hex(), "README"}
    journal.close()
