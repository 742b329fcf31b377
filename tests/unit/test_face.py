"""What `import flowos as fo` offers: all of it, at once, at no price."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import flowos as fo
from tests import typed_program

FACE = Path(fo.__file__ or "")


def test_importing_flowos_loads_no_room() -> None:
    program = (
        "import sys; before = set(sys.modules); import flowos; "
        "print(sorted(m for m in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert [m for m in ast.literal_eval(done.stdout) if m.startswith("flowos")] == ["flowos"]
    assert "numpy" not in done.stdout


@pytest.mark.parametrize("name", fo.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fo, name) is getattr(fo, name)
    assert name in dir(fo)


STUB = ast.parse(FACE.with_suffix(".pyi").read_text())


def test_type_checkers_see_the_same_names() -> None:
    names: list[str] = []
    for node in STUB.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flowos"):
            names += [a.asname or a.name for a in node.names]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        elif isinstance(node, ast.Assign):
            names += [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.FunctionDef):
            names.append(node.name)
    assert sorted(n for n in names if not n.startswith("_")) == fo.__all__


def test_type_checkers_see_the_same_values() -> None:
    for node in STUB.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flowos"):
            room = import_module(node.module or "")
            for each in node.names:
                shown = (each.asname or each.name).removeprefix("_")
                if shown in fo.__all__:
                    assert getattr(fo, shown) is getattr(room, each.name), shown
    (array,) = (node for node in STUB.body if isinstance(node, ast.FunctionDef))
    known = list(inspect.signature(fo.array).parameters.values())
    assert [each.arg for each in array.args.args] == [each.name for each in known]


def test_what_a_typed_program_does_it_does(tmp_path: Path) -> None:
    flow = typed_program.flows()
    typed_program.slices(flow)
    assert np.array(typed_program.arrays()[0]).tolist() == [[2.0] * 3] * 2
    typed_program.feeds(tmp_path)
    typed_program.solves()
    assert FACE.with_name("py.typed").exists()


def test_dir_shows_what_is_public_and_the_version() -> None:
    assert fo.__version__ == version("flowos-hpc")
    assert "__version__" in dir(fo)
    assert [name for name in dir(fo) if not name.startswith("__")] == fo.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'flowos' has no attribute 'sliec'"):
        fo.sliec  # type: ignore[attr-defined]  # noqa: B018


def test_the_exception_tree_has_one_root() -> None:
    for name in ("WiringError", "ValueRefused", "TaskFailed", "SliceFreed", "SliceRefused"):
        assert issubclass(getattr(fo, name), fo.FlowosError)
