"""Digests of code: what changes a function's results changes its digest, comments do not."""

import importlib
import statistics
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowos.engine import NoDigest
from flowos.engine.results._value_digest import Digester

BASE = """
import functools
import math
from dataclasses import dataclass

import numpy as np

LIMIT = 3
TABLE = {"a": [1, 2]}

class Kind(type):
    def share(cls):
        return 0.25

@dataclass
class Model(metaclass=Kind):
    slope: float = 2.0

    def at(self, x):
        return self.slope * x

def helper(x):
    return x + LIMIT * helper.weight

helper.weight = 1.5

@functools.lru_cache
def slow(x):
    return x * 2

def outer(scale):
    def inner(x):
        return x * scale
    return inner

scaled = outer(2)

def task(x, more=1):
    try:
        found = [helper(each) for each in x]
    except ValueError:
        found = []
    return Model().at(sum(found)) + slow(more) + scaled(1) + math.sqrt(4) + np.pi + len(TABLE)
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Loads the source as a module of one name, with the source of a module that it may use."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(source: str, helpers: str = "") -> Any:
        (tmp_path / "own_flow.py").write_text(source)
        (tmp_path / "own_helpers.py").write_text(helpers)
        for name in ("own_flow", "own_helpers"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own_flow").task

    return load


def digest(fun: object, *, lenient: bool = False) -> bytes:
    digester = Digester(lenient=lenient)
    digester.add(fun)
    return digester.digest()


def test_the_place_in_a_file_and_comments_do_not_count(code: Callable[..., Any]) -> None:
    before = digest(code(BASE))
    assert digest(code(BASE)) == before
    moved = "# a comment\n\nUNUSED = 1\n" + BASE.replace("def task", "# another\ndef task")
    assert digest(code(moved)) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ len(TABLE)", "- len(TABLE)"),
        ("more=1", "more=2"),
        ("LIMIT = 3", "LIMIT = 4"),
        ('"a": [1, 2]', '"a": [1, 3]'),
        ("return x + LIMIT", "return x - LIMIT"),
        ("helper.weight = 1.5", "helper.weight = 2.5"),
        ("return 0.25", "return 0.75"),
        ("return x * 2", "return x * 3"),
        ("return self.slope * x", "return self.slope + x"),
        ("slope: float = 2.0", "slope: float = 2.5"),
        ("outer(2)", "outer(3)"),
        ("return x * scale", "return x / scale"),
        ("except ValueError", "except TypeError"),
        ("math.sqrt", "math.cbrt"),
        ("np.pi", "np.e"),
    ],
)
def test_what_the_task_names_counts(code: Callable[..., Any], old: str, new: str) -> None:
    before = digest(code(BASE))
    assert BASE.count(old) == 1
    assert digest(code(BASE.replace(old, new))) != before


@pytest.mark.parametrize(
    "use",
    [
        "import own_helpers\ndef task(x): return own_helpers.one(x)",
        "import own_helpers as h\ndef task(x): return list(map(h.one, x))",
        "from own_helpers import one\ndef task(x): return one(x)",
        "import own_helpers\ndef task(x): return vars(own_helpers)['one'](x)",
        "def task(x):\n  import own_helpers\n  return own_helpers.one(x)",
        "def task(x):\n  from own_helpers import one\n  return one(x)",
    ],
)
def test_functions_of_other_own_modules_count(code: Callable[..., Any], use: str) -> None:
    helpers = "def one(x): return two(x)\ndef two(x): return x + 1\n"
    before = digest(code(use, helpers))
    assert digest(code(use, helpers)) == before
    assert digest(code(use, helpers.replace("x + 1", "x + 2"))) != before


def test_only_what_is_named_of_another_module_counts(code: Callable[..., Any]) -> None:
    use = "import own_helpers\ndef task(x): return own_helpers.one(x)"
    helpers = "def one(x): return x\n"
    assert digest(code(use, helpers)) == digest(code(use, helpers + "def other(): pass\n"))


def test_functions_that_call_each_other_have_a_digest(code: Callable[..., Any]) -> None:
    both = "def task(x): return other(x)\ndef other(x): return task(x - 1) if x else {}\n"
    assert (
        digest(code(both.format(1))) == digest(code(both.format(1))) != digest(code(both.format(2)))
    )


def test_a_global_without_a_digest_is_refused_or_left_out(code: Callable[..., Any]) -> None:
    use = "import threading\nlock = threading.Lock()\ndef task(x):\n  with lock: return x + {}\n"
    with pytest.raises(NoDigest, match="it reads 'lock', and a lock has no stable digest"):
        digest(code(use.format(1)))
    one = digest(code(use.format(1)), lenient=True)
    assert one == digest(code(use.format(1)), lenient=True)
    assert one != digest(code(use.format(2)), lenient=True)


def test_an_import_that_fails_is_none(code: Callable[..., Any]) -> None:
    use = "def task(x):\n  import {}\n  return x"
    assert digest(code(use.format("no_such_module"))) != digest(code(use.format("json")))


def test_the_class_of_a_value_counts_and_is_read_once(code: Callable[..., Any]) -> None:
    source = "class Own:\n  def at(self, x): return x + {}\ntask = Own()"
    known: dict[type, bytes] = {}

    def of_value(value: object) -> bytes:
        digester = Digester(classes=known)
        digester.add(value)
        return digester.digest()

    first = of_value(code(source.format(1)))
    assert of_value(code(source.format(1))) == first
    assert of_value(changed := code(source.format(2))) != first
    assert of_value(changed) == of_value(changed)
    assert len(known) == 3


COMPILED = """
#include <Python.h>
static PyObject *more(PyObject *self, PyObject *x) {
    return PyLong_FromLong(PyLong_AsLong(x) + ADD);
}
static PyMethodDef methods[] = {{"more", more, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_compiled", "", -1, methods};
PyMODINIT_FUNC PyInit_own_compiled(void) { return PyModule_Create(&module); }
"""
USES = """
from own_compiled import more
from flowos.engine.results._value_digest import Digester
digester = Digester()
digester.add(lambda x: more(x))
print(more(0), digester.digest().hex())
"""


def test_a_compiled_function_of_an_own_module_counts_by_its_file(tmp_path: Path) -> None:
    found = []
    (tmp_path / "own_compiled.c").write_text(COMPILED)
    (tmp_path / "uses.py").write_text(USES)
    include = sysconfig.get_path("include")
    for add in (1, 1, 2):
        words = ["cc", "-shared", "-fPIC", f"-I{include}", f"-DADD={add}", "own_compiled.c"]
        subprocess.run([*words, "-o", "own_compiled.so"], cwd=tmp_path, check=True)
        done = subprocess.run(
            [sys.executable, "uses.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        found.append(done.stdout.split())
    assert [added for added, _ in found] == ["1", "1", "2"]
    assert found[0] == found[1]
    assert found[1][1] != found[2][1]


def test_a_wrapped_function_counts(code: Callable[..., Any]) -> None:
    use = (
        "import functools\n"
        "def loud(fun):\n"
        "  @functools.wraps(fun)\n"
        "  def called(*given): return fun(*given)\n"
        "  return called\n"
        "@loud\n"
        "def task(x): return x + {}\n"
    )
    assert digest(code(use.format(1))) != digest(code(use.format(2)))


WRAPS = """
import functools, statistics
def scaled(fun):
  @functools.wraps(fun)
  def inner(*given): return fun(*given) * {}
  return inner
"""


@pytest.mark.parametrize("name", ["mean", "statistics.mean"])
def test_an_own_function_with_the_name_of_an_installed_one_counts_by_its_code(
    code: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(statistics, "mean", statistics.mean)
    plain = statistics.mean
    use = WRAPS + f"{name} = scaled(statistics.mean)\ndef task(x): return {name}(x)\n"
    found = []
    for factor in (1, 1, 2):
        statistics.mean = plain
        task = code(use.format(factor))
        found.append(digest(task.__globals__["mean"] if name == "mean" else statistics.mean))
    assert found[0] == found[1] != found[2]
    statistics.mean = plain
    assert digest(statistics.mean) not in found
