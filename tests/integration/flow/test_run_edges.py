"""`flowos run` with values that are too long, too deep or damaged, or have files in them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FLOWOS = str(Path(sys.executable).with_name("flowos"))
FLOW = """
import flowos as fo

@fo.task
def power(n: int) -> fo.any_:
    return {"a": [10**n, 2], 10**n: True}

@fo.task
def deep(n: int) -> fo.any_:
    value = []
    for _ in range(n):
        value = [value]
    return value

@fo.task
def total(x: fo.array(fo.float64)) -> float:
    return float(x.sum())

@fo.task
def keyed(n: int) -> fo.any_:
    return {n: "a", str(n): "b", None: {1: 2}}

n = fo.flow_input("n", int)
alike = fo.flow_output(keyed(n))
odd = fo.flow_output(power(n), deep(n))
summed = fo.flow_output(total(fo.flow_input("x", fo.array(fo.float64))))
"""


def flowos(folder: Path, *words: str, text: str = FLOW) -> "subprocess.CompletedProcess[str]":
    (folder / "flow.py").write_text(text)
    return subprocess.run(
        [FLOWOS, "run", *words], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_long_integers_are_shown_whole_and_deep_lists_by_a_word(tmp_path: Path) -> None:
    number = "1" + "0" * 5000
    done = flowos(tmp_path, "flow.py:odd", "n=5000")
    deep = "(list, nested too deeply to be shown)"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"power = {{'a': [{number}, 2], '{number}': True}}\ndeep = {deep}\n")
    done = flowos(tmp_path, "flow.py:odd", "n=5000", "--json", "--out", "power=x.json")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)  # its keys are no texts
    found = json.loads(done.stdout, parse_int=str)
    assert found == {"power": {"a": [number, "2"], number: True}, "deep": deep}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("zip", "it cannot be read as .npy (File is not a zip file)"),
        ("huge", "it cannot be read as .npy (Unable to allocate"),
        ("cut", "it cannot be read as .npy ("),
        ("none", "No such file"),
    ],
)
def test_a_damaged_array_is_one_line(tmp_path: Path, name: str, why: str) -> None:
    file = tmp_path / f"{name}.npy"
    np.save(file, np.ones(3))
    whole = file.read_bytes()
    huge = whole.replace(b"(3,)", b"(1000000000000,)").replace(b" " * 12, b"", 1)
    cut = whole.replace(b"(3,), }", b"(3,    ")
    file.write_bytes({"zip": b"PK\3\4" + whole, "huge": huge, "cut": cut, "none": b""}[name])
    if name == "none":
        file.unlink()
    done = flowos(tmp_path, "flow.py:summed", f"x={name}.npy")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert why in done.stderr


def test_a_colon_may_be_in_the_name_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "c:d"
    folder.mkdir()
    flowos(folder)
    done = flowos(tmp_path, "c:d/flow.py:summed", "x=[1, 2]")
    assert (done.returncode, done.stdout, done.stderr) == (0, "total = 3.0\n", "")
    assert "c:d/flow.py makes several flows" in flowos(tmp_path, "c:d/flow.py").stderr


PARTS = """
from dataclasses import dataclass
from pathlib import Path
import flowos as fo

@dataclass(frozen=True)
class Made:
    count: int
    file: fo.File

@fo.task
def listed(a: fo.File, b: fo.File) -> list[Path]:
    return [a, b, a]

@fo.task
def made(a: fo.File) -> Made:
    return Made(1, a)

@fo.task
def anything(a: fo.File) -> fo.any_:
    return {"a": [(1, a)], "b": Made(2, a), "c": Path("/etc")}

a, b = (fo.command(["/bin/sh", "-c", f'echo {n} > "$0"', fo.Out("file")])() for n in "ab")
flow = fo.flow_output(listed(a, b), made(a), anything(a))
"""


def test_files_within_values_are_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = flowos(tmp_path, "flow.py", "--json", text=PARTS)
    assert (done.returncode, done.stderr) == (0, "")
    listed, made, anything = json.loads(done.stdout).values()
    assert [Path(file).read_text() for file in listed] == ["a\n", "b\n", "a\n"]
    assert listed[0] == listed[2]
    within = (made["file"], anything["a"][0][1], anything["b"]["file"])
    assert [Path(file).read_text() for file in within] == ["a\n"] * 3
    assert anything["c"] == "/etc"


def test_keys_of_the_same_text_become_pairs(tmp_path: Path) -> None:
    done = flowos(tmp_path, "flow.py:alike", "n=1", "--json")
    (pairs,) = json.loads(done.stdout).values()
    assert pairs == [[1, "a"], ["1", "b"], [None, {"1": 2}]]
    assert "= [[1, 'a'], ['1', 'b'], " in flowos(tmp_path, "flow.py:alike", "n=1").stdout


OBJECTS = """
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
import flowos as fo

class Kind(Enum):
    ROUND = "o"

class Size(NamedTuple):
    width: float
    height: float

@dataclass(frozen=True)
class Shape:
    kind: Kind
    sizes: tuple[Size, ...]
    angle: complex | None = None

@fo.task
def shape(angle: complex | None) -> Shape:
    return Shape(Kind.ROUND, (Size(1.5, float("inf")),), angle)

flow = fo.flow_output(shape(fo.flow_input("angle", complex | None)))
"""


def test_objects_are_published_as_they_are_printed(tmp_path: Path) -> None:
    words, text = ("--out", "shape=shape.json"), OBJECTS
    printed = json.loads(flowos(tmp_path, "flow.py", "angle=null", "--json", text=text).stdout)
    done = flowos(tmp_path, "flow.py", "angle=null", *words, text=text)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads((tmp_path / "shape.json").read_text())
    sizes = [{"width": 1.5, "height": None}]
    assert found == printed["shape"] == {"kind": "ROUND", "sizes": sizes, "angle": None}
    done = flowos(tmp_path, "flow.py", "angle=1j", *words, text=text)
    assert done.stderr == "flowos run: publish: shape.json: 1j (complex) has no form in JSON\n"
