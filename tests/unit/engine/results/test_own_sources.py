"""Modules that a task imports itself, or has as a value, count with all that they import."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowos.engine.results._packages import _installed, _known, package_at
from flowos.engine.results._value_digest import Digester

Digest = Callable[..., bytes]
TREE = {
    "os_consts.py": "W = 2\n",
    "os_helpers.py": "from os_consts import W\ndef f(n): return W * n\n",
    "os_pkg/__init__.py": "",
    "os_pkg/sub.py": "from . import deep\ndef f(n): return deep.W * n\n",
    "os_pkg/deep.py": "import os_pkg.sub\nfrom .deeper import *\n",
    "os_pkg/deeper.py": "def w():\n  from os_consts import W\n",
}


@pytest.fixture
def digested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Digest:
    """Of a task of this source, in a folder with the modules; each has a process of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def digest(source: str, **changes: str) -> bytes:
        changed = {name.replace("__", "/") + ".py": text for name, text in changes.items()}
        for name, text in {**TREE, **changed, "os_task.py": source}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        for name in [name for name in sys.modules if name.startswith("os_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        _known.pop("os_lib", None)
        _known.pop("os_bare", None)
        package_at.cache_clear()
        _installed.cache_clear()
        digester = Digester()
        digester.add(importlib.import_module("os_task").task)
        return digester.digest()

    return digest


@pytest.mark.parametrize(
    "use",
    [
        "def task(n):\n  from os_helpers import f\n  return f(n)",
        "def task(n):\n  import os_helpers as h\n  return lambda: h.f(n)",
        "def task(n):\n  from os_pkg import sub\n  return sub.f(n)",
        "def task(n):\n  import os_pkg.sub\n  return os_pkg.sub.f(n)",
        "import os_helpers\ndef task(n):\n  h = os_helpers\n  return h.f(n)",
    ],
)
def test_what_its_modules_import_counts(digested: Digest, use: str) -> None:
    before = digested(use)
    assert digested(use) == before
    assert digested(use, os_consts="W = 30\n") != before
    assert digested(use) == before
    assert digested(use, os_other="W = 30\n") == before
    assert ("os_pkg" in use) == (digested(use, os_pkg__sub="def f(n): return 30 * n") != before)


def test_nothing_is_imported_for_it(digested: Digest) -> None:
    digested("def task(n):\n  from os_pkg import sub\n  return sub.f(n)")
    assert not [name for name in sys.modules if name.startswith("os_pkg")]


def test_an_import_relative_to_the_package_of_the_task_counts(digested: Digest) -> None:
    use = "from os_pkg.own import task"
    own = "def task(n):\n  from .deep import W\n  return n"
    before = digested(use, os_pkg__own=own)
    assert digested(use, os_pkg__own=own, os_consts="W = 30\n") != before
    assert digested(use, os_pkg__own=own) == before


@pytest.mark.parametrize(
    "use",
    [
        "import os_lib\ndef task(n): return os_lib.f(n)",
        "def task(n):\n  import os_lib\n  return os_lib.f(n)",
    ],
)
@pytest.mark.parametrize("name", ["os_lib", "Os.Lib", "other"])
def test_the_version_of_an_installed_package_counts_that_does_not_say_it(
    digested: Digest, tmp_path: Path, use: str, name: str
) -> None:
    place = tmp_path / "site-packages"
    (place / "os_lib").mkdir(parents=True)
    (place / "os_lib/__init__.py").write_text("def f(n): return n\n")
    (old := place / f"{name}-1.0.dist-info").mkdir()
    (old / "RECORD").write_text("os_lib/__init__.py,,\n")
    before = digested(use)
    assert digested(use) == before
    new = old.rename(place / f"{name}-2.0.dist-info")
    assert digested(use) != before
    (new / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    first = digested(use)
    (new / "METADATA").write_text(f"Name: {name}\nVersion: 1.1\n")
    assert digested(use) != first


@pytest.mark.parametrize("local", [True, False])
def test_files_of_a_package_that_nothing_says_a_version_of_count(
    digested: Digest, tmp_path: Path, local: bool
) -> None:
    file: Any = tmp_path / "site-packages/os_bare/__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text("def f(n): return n\n")
    at_top = "import os_bare\ndef task(n): return os_bare.f(n)"
    use = "def task(n):\n  import os_bare\n  return os_bare.f(n)" if local else at_top
    before = digested(use)
    assert digested(use) == before
    file.write_text("def f(n): return n * 30\n")
    assert digested(use) != before


@pytest.mark.parametrize(
    "use",
    ["  import os_consts\n  return os_consts.W * n", "  from os_consts import W\n  return W * n"],
)
def test_a_value_that_the_program_sets_in_such_a_module_counts(digested: Digest, use: str) -> None:
    set_ = "import os_consts\nos_consts.W = {}\ndef task(n):\n" + use
    assert digested(set_.format(2)) == digested(set_.format(2)) != digested(set_.format(30))
