"""The gate on includes of the native rooms: which folder may include which, and no circles."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATE = runpy.run_path(str(ROOT / "tools/includes.py"))
ORDER = "base < cache | decode < pipeline"
GOOD = {
    "base/errors.h": "#pragma once\n#include <string>\n",
    "cache/layout.h": "#pragma once\n",
    "cache/cache.h": '#pragma once\n#include "base/errors.h"\n#include "cache/layout.h"\n',
    "cache/cache.cpp": '#include "cache/cache.h"\n',
    "decode/jpeg.cpp": '#include "base/errors.h"\n',
    "pipeline/feeder.cpp": '#include "base/errors.h"\n#include "cache/cache.h"\n',
}

Room = Callable[..., Path]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    def made(files: dict[str, str], name: str = "native") -> Path:
        for file, text in files.items():
            at = tmp_path / name / file
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
        return tmp_path / name

    return made


def complaints(room: Path) -> list[str]:
    found: list[str] = GATE["complaints"](room, ORDER)
    return [line.removeprefix(f"{room}: ") for line in found]


def test_the_native_rooms_keep_their_order() -> None:
    orders: dict[str, str] = GATE["ORDERS"]
    assert orders
    for name, order in orders.items():
        assert {folder.name for folder in (ROOT / name).iterdir()} == set(GATE["ranks"](order))
        assert GATE["complaints"](ROOT / name, order) == []
    assert GATE["ambiguous"]([ROOT / name for name in orders]) == []


def test_includes_of_its_own_folder_and_of_those_before_it_are_fine(room: Room) -> None:
    assert complaints(room(GOOD)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("base/errors.h", '#include "cache/layout.h"', '"cache/layout.h" goes against'),
        ("decode/jpeg.cpp", '  #  include "cache/layout.h"', '"cache/layout.h" goes against'),
        ("cache/cache.cpp", '#include "cache.h"', '"cache.h" is no file of this room'),
        ("cache/cache.cpp", '#include "../base/errors.h"', '"../base/errors.h" is no file of'),
        ("flat.h", "#pragma once", "its folder is not in the order"),
        ("cache/deep/flat.h", "#pragma once", "its folder is not in the order"),
    ],
)
def test_what_goes_against_the_order_is_named(
    file: str, text: str, complaint: str, room: Room
) -> None:
    (found,) = complaints(room(GOOD | {file: text + "\n"}))
    assert found.startswith(f"{file}: {complaint}")


def test_a_circle_within_a_folder_is_named(room: Room) -> None:
    circle = {"cache/layout.h": '#pragma once\n#include "cache/cache.h"\n'}
    (found,) = complaints(room(GOOD | circle))
    assert found.startswith("a circle of includes: ")
    assert {"cache/layout.h", "cache/cache.h"} <= set(found.split(": ")[1].split(" -> "))


def test_a_header_of_the_same_name_in_two_rooms_is_named(room: Room) -> None:
    rooms = [room(GOOD, "one"), room({"base/errors.h": "", "base/other.h": ""}, "two")]
    assert GATE["ambiguous"](rooms) == ['"base/errors.h" is in several rooms']
