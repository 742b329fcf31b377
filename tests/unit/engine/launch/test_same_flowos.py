"""How another FlowOS is known, by what finds it instead of this one."""

import shutil
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import flowos
from flowos.engine.launch._same_flowos import mend_words, sizes_here, unlike, unlike_words
from flowos.engine.ray import ray_worker

HERE = Path(str(flowos.__file__)).parent
OURS, MORE = sizes_here(), sizes_here("cli", "no/such/folder")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, which is found as FlowOS."""
    copy = tmp_path / "flowos"
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so", "native"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.delitem(sys.modules, "flowos")
    return copy


def add(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


def test_what_tasks_load_has_sizes_and_more_where_it_is_asked_for() -> None:
    assert OURS["__init__.py"] == (HERE / "__init__.py").stat().st_size
    assert {"model/_ports.py", "feeder/__init__.py", "engine/bodies/_cuda.py"} <= set(OURS)
    assert "cli/run.py" not in OURS
    assert OURS.items() < MORE.items()
    assert MORE["cli/run.py"] == (HERE / "cli/run.py").stat().st_size


@pytest.mark.parametrize("ours", [OURS, MORE])
def test_a_copy_is_the_same_and_what_is_not_loaded_does_not_count(
    there: Path, ours: dict[str, int]
) -> None:
    assert unlike(ours) is None
    add(there / "cli/run.py", "#\n")
    assert (unlike(ours) is not None) == (ours is MORE)


def test_another_version_is_said(there: Path) -> None:
    add(there / "__init__.py", "\n__version__ = '9.9.9'\n")
    assert unlike(OURS) == ("9.9.9", "__init__.py")


def test_a_file_more_or_less_makes_it_another(there: Path) -> None:
    (there / "model/_ports.py").unlink()
    found = unlike(OURS)
    assert found is not None
    assert found[1] == "model/_ports.py"
    (there / "feeder/_a_file_more.py").touch()
    found = unlike(OURS)
    assert found is not None
    assert found[1] == "feeder/_a_file_more.py"


def test_what_an_editor_keeps_next_to_a_file_makes_it_no_other(there: Path) -> None:
    (there / "model/.#_ports.py").symlink_to("me@host.1:2")
    (there / "model/._ports.py").touch()
    assert unlike(OURS) is None


def test_one_that_cannot_be_loaded_is_another_one_too(there: Path) -> None:
    (there / "__init__.py").write_text("1 / 0\n")
    assert unlike(OURS) == ("without a version", "__init__.py")


def test_where_there_is_none_nothing_differs(there: Path) -> None:
    shutil.rmtree(there)
    assert unlike(OURS) is None
    there.mkdir()  # a folder of this name is none
    assert unlike(OURS) is None
    sys.modules["flowos"] = ModuleType("flowos")  # a worker's stand-in
    assert unlike(OURS) is None


def test_both_versions_are_named_and_the_file_where_they_are_equal() -> None:
    ours = flowos.__version__
    assert unlike_words(("9.9.9", "a.py")) == f"FlowOS 9.9.9, this is FlowOS {ours}"
    assert unlike_words((ours, "model/a.py")) == (
        f"FlowOS {ours}, this is FlowOS {ours}, and model/a.py is another file"
    )


def test_how_it_is_mended_depends_on_which_side_has_changed() -> None:
    there = ("9.9.9", "model/_ports.py")
    assert mend_words(there, OURS) == f"{HERE} has to be the same folder on both sides"
    before = {**OURS, "model/_ports.py": 1}
    assert mend_words(there, before) == (
        f"{HERE} has changed since this program began: start it again"
    )


def test_an_actor_of_ray_loads_nothing_with_another_flowos(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(get_node_id=lambda: "a node")
    ray = SimpleNamespace(get_runtime_context=lambda: context)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(ray_worker, "is_worker", False)  # an actor sets it; undone at the end
    actor = ray_worker.RayWorker([], OURS)
    add(there / "__init__.py", "\n__version__ = '9.9.9'\n")
    assert actor.load(b"no pickle") == (("9.9.9", "__init__.py"), "a node")
