"""The reference of the site follows from the code, and leaves nothing out."""

import runpy
from pathlib import Path

import flowos
from flowos.cli._commands import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


def test_there_is_a_page_of_each_command_and_a_place_for_each_name(tmp_path: Path) -> None:
    runpy.run_path(str(DOCS / "_generated.py"))["write"](tmp_path / "pages")
    pages = {path.name: path.read_text() for path in (tmp_path / "pages").iterdir()}
    assert sorted(pages) == sorted([*(f"flowos-{name}.md" for name in COMMANDS), "python.md"])
    assert "`--dry-run`" in pages["flowos-measure.md"]
    assert "# flowos feed warm" in pages["flowos-feed.md"]
    for name in flowos.__all__:
        assert f".{name}\n" in pages["python.md"]


def test_docstrings_become_lists_and_code() -> None:
    converted = runpy.run_path(str(DOCS / "_docstrings.py"))["converted"]
    given = ["One line of `any_` and any_.", "", "a, b: first", "    and more.", "c: second", ""]
    assert converted(given) == [
        r"One line of ``any_`` and any\_.",
        "",
        "- ``a, b``: first",
        "  and more.",
        "- ``c``: second",
        "",
    ]
    assert converted(["a: not a list, as", "the next line is not indented."])[0].startswith("a:")
