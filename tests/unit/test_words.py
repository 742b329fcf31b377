"""tools/words.py finds words in prose, and in prose only."""

import runpy
from pathlib import Path

import pytest

WORDS = runpy.run_path(str(Path(__file__).parents[2] / "tools/words.py"))


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("x.py", '"""It is told."""\ntold = "told"  # told\n', [1, 2]),
        ("x.py", 'def f():\n    """First.\n\n    ValueError: no."""\n', [4]),
        ("x.py", '"""Raises ValueError: no, `told` is a name, who_ too."""\n', []),
        ("x.h", 'int wanted = 1;  // not wanted\nauto x = "http://told";\n', [1]),
        ("x.c", "/* As wanted:\n * who waits */\nint told; /* told */\n", [1, 2, 3]),
        ("x.md", "A thread\nwho waits\n", [2]),
    ],
)
def test_words_of_prose_are_found(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    file = tmp_path / name
    file.write_text(text)
    found = [number for number, line in WORDS["prose_of"](file) for _ in WORDS["complaints"](line)]
    assert sorted(found) == lines


MESSAGES = """help = "a variable, beside those"
raise ValueError(f"{name}: was not told"
    " twice")
word = "told"
def f():
    "It is told here."
"""


def test_words_of_messages_and_help_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("src/x.py")
    file.parent.mkdir()
    file.write_text(MESSAGES)
    found = list(WORDS["found_in"](file))
    assert sorted(line.partition(": ")[0] for line in found) == [f"src/x.py:{n}" for n in (1, 2, 6)]


@pytest.mark.parametrize(
    ("docstring", "lines"),
    [
        ("Raises ValueError.", [1]),
        ("First.\n\nRaises zlib.error, ValueError. As it is.", [3]),
        ("Raises zlib.error if it is damaged.", []),
        ("Raises as `Slice.run` does. Raises ValueError of\nthe first.", []),
        ("Raises A if not.\nRaises B without\nneed.", [2]),
    ],
)
def test_what_is_raised_has_a_condition(docstring: str, lines: list[int]) -> None:
    found = WORDS["bare_raises"](f'"""{docstring}"""\n')
    assert [number for number, _ in found] == lines
