"""What the documents name is there: every file, by its path or the end of it."""

import re
import runpy
import tomllib
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


ARCHITECTURE = (HERE / "ARCHITECTURE.md").read_text()
PACKAGE = HERE / "src/flowos"
NATIVE = runpy.run_path(str(HERE / "tools/includes.py"))["ORDERS"]
CONTRACTS = tomllib.loads((HERE / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
LAYERS = {c["containers"][0]: c["layers"] for c in CONTRACTS if c["type"] == "layers"}


TITLES = {"src/flowos": "## Rooms\n", "src/flowos/engine": "## Folders of the engine\n"}
TITLES |= {room: f"`{room[11:]}/`: " for room in NATIVE}
OTHERS = {"bind", "tests", "benchmarks", "tools", "packaging"}
"""Next to `src`."""


@pytest.mark.parametrize("parent", TITLES)
def test_the_table_of_folders_has_a_row_for_each(parent: str) -> None:
    table = ARCHITECTURE.split(TITLES[parent])[1].split("| --- | --- |\n")[1].split("\n\n")[0]
    files = (path for path in (HERE / parent).glob("*/*.*") if path.suffix != ".pyc")
    rows = re.findall(r"^\| `(\w+)/`", table, re.M)
    assert sorted({*rows} - OTHERS) == sorted({file.parent.name for file in files})
    assert len(rows) == len({*rows})


@pytest.mark.parametrize("parent", ["src/flowos", "src/flowos/engine"])
def test_the_row_of_a_folder_names_the_folders_in_it(parent: str) -> None:
    table = ARCHITECTURE.split(TITLES[parent])[1].split("\n\n")[0]
    for name, text in re.findall(r"^\| `(\w+)/` \| (.*) \|$", table, re.M):
        folders = {path.parent.name for path in (HERE / parent / name).glob("*/*.[a-zA-Z]*")}
        of_their_own = {"__pycache__", "native"} | {f for f in folders if name == "engine"}
        assert folders - of_their_own <= {*re.findall(r"\w+", text)}, name
        written = {*re.findall(r"`(\w+)/`", text)}
        assert not {f for f in written if not list(PACKAGE.rglob(f"{f}/")) and f not in OTHERS}


@pytest.mark.parametrize("container", LAYERS)
def test_the_order_of_imports_is_that_of_the_contract(container: str) -> None:
    layers = [[m for m in layer.split(" | ") if m[0] != "_"] for layer in LAYERS[container]]
    assert f"`{' > '.join(' | '.join(layer) for layer in layers if layer)}`" in ARCHITECTURE


@pytest.mark.parametrize("room", NATIVE)
def test_the_order_of_includes_is_that_of_the_gate(room: str) -> None:
    assert f"`{room[11:]}/`: `{NATIVE[room]}`\n" in ARCHITECTURE
