"""Which modules can start a process; the import contract does not see what `os` starts."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/flowos"
FOLDERS = ("engine/launch/", "probes/programs/")
EXCEPTIONS = {"engine/_ask.py", "engine/guests/guest_program.py", "engine/sge/node_keeper.py"}
MODULES = {"subprocess", "multiprocessing", "pty"}
FUNCTIONS = ("posix_spawn", "fork", "exec", "spawn", "system", "popen")


def starts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in {*MODULES, "os"}:
            names = [each.name for each in node.names]
            yield from (n for n in names if node.module != "os" or n.startswith(FUNCTIONS))
        elif isinstance(node, ast.Attribute) and node.attr.startswith(FUNCTIONS):
            yield from [node.attr] if ast.unparse(node.value) == "os" else ()


def test_processes_start_in_one_folder_but_for_the_exceptions_of_the_architecture() -> None:
    files = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    found = {name for name, path in files.items() if list(starts(ast.parse(path.read_text())))}
    assert {name for name in found if not name.startswith(FOLDERS)} == EXCEPTIONS
    process = (ROOT / "ARCHITECTURE.md").read_text().split("**A process.**")[1].split("\n\n**")[0]
    for name in (*EXCEPTIONS, "engine/launch/_detached.py", "probes/programs/"):
        assert f"`{name}`" in process


def test_starts_are_seen() -> None:
    text = "import subprocess\nfrom os import fork\nos.posix_spawnp()\nos.getpid()\nimport os\n"
    assert sorted(starts(ast.parse(text))) == ["fork", "posix_spawnp", "subprocess"]
