"""Which modules of the engine ask the machine that they run on (ADR 81); others ask a node."""

import ast
from collections.abc import Iterator
from pathlib import Path

ENGINE = Path(__file__).parents[2] / "src/flowos/engine"
PARTS_OF_HERE = ("local/", "launch/", "environments/", "_look.py", "_processor.py")
IN_THE_PROCESS_OF_A_TASK = ("workers/", "bodies/")
ON_NODES = ("cluster/files_there.py", "sge/node_keeper.py", "guests/guest_program.py")
OF_THIS_PROGRAM = (
    "results/_file_digest.py",
    "cluster/_shared_folder.py",
    "devices/_device_file.py",
)
FUNCTIONS = {"uname", "sysconf", "cpu_count", "sched_getaffinity", "getloadavg", "gethostname"}
MODULES = {"os", "socket", "platform"}
FOLDERS = ("/proc/", "/sys/")


def questions(tree: ast.Module) -> Iterator[str]:
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in FUNCTIONS:
            yield from [node.attr] if ast.unparse(node.value) in MODULES else ()
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from (each.name for each in node.names if each.name in FUNCTIONS)
        elif isinstance(node, ast.Constant) and id(node) not in documented:
            text = node.value if isinstance(node.value, str) else ""
            yield from [text] if text.startswith(FOLDERS) else ()


def test_only_these_ask_it_themselves() -> None:
    files = {str(path.relative_to(ENGINE)): path.read_text() for path in ENGINE.rglob("*.py")}
    asking = {name for name, text in files.items() if list(questions(ast.parse(text)))}
    expected = (*PARTS_OF_HERE, *IN_THE_PROCESS_OF_A_TASK, *ON_NODES, *OF_THIS_PROGRAM)
    assert not {name for name in asking if not name.startswith(expected)}
    assert not {part for part in expected if not any(n.startswith(part) for n in asking)}


def test_questions_are_seen() -> None:
    text = "from os import uname\nos.sysconf('X')\nf'/proc/{1}/stat'\nx = '/sys/class'\n"
    text += "'/proc/1 in a docstring'\n"
    assert sorted(questions(ast.parse(text))) == ["/proc/", "/sys/class", "sysconf", "uname"]
