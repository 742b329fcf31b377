"""What the documents name is there: every file, by its path or the end of it."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
SOURCES = ("benchmarks", "bind", "examples", "src", "tests", "tools")
FILES = [f"/{path.relative_to(HERE)}" for name in SOURCES for path in (HERE / name).rglob("*.*")]
DOCUMENTS = sorted(
    path
    for path in (*HERE.glob("*.md"), *(HERE / "docs").rglob("*.md"), *(HERE / "src").rglob("*.md"))
    if path.parent.name != "generated"
)
NAMED = re.compile(r"(?<![\w./])[\w./]*\w\.(?:py|cpp|h|c)\b(?!\w)")
WRITTEN = re.compile(r"^:caption: (\S+)$", re.M)
EXAMPLES = {"flow.py", "train.py"}
"""Of a person's own. What is to be written is called NAME."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(HERE)))
def test_every_file_that_a_document_names_is_there(document: Path) -> None:
    text = document.read_text()
    written = {*EXAMPLES, *WRITTEN.findall(text)}
    named = {name for name in NAMED.findall(text) if "NAME" not in name} - written
    ends = {name for name in named if any(f.endswith(f"/{name}") for f in FILES)}
    assert not [name for name in named - ends if not (HERE / name).exists()]  # through a link


def test_decisions_are_numbered_one_after_the_other() -> None:
    files = sorted((HERE / "docs/adr").glob("*.md"))
    numbers = [int(file.name[:4]) for file in files]
    assert numbers == list(range(1, len(files) + 1))
    assert [int(file.read_text().split(".")[0].lstrip("# ")) for file in files] == numbers
