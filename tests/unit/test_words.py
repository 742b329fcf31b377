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
