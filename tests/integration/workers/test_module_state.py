"""What a task reads of modules is in a worker process as it is in the program."""

import functools
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flowos as fo
from tests.integration.workers.shared import one

Make = Callable[..., ModuleType]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Writes modules, the last of which is imported; workers find them by sys.path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(**texts: str) -> ModuleType:
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
            monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(list(texts)[-1])

    return make


def ran(fun: Callable[..., Any], value: object) -> object:
    with one(fun) as s:
        return s.run(value)[0]


class Calls:
    """Is called as a function, and has one in it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, x: object) -> object:
        return self.fun(x)


SETTINGS = """
    import types
    SCALE = 1
    TABLE = {"a": [1]}
    NAMES = {"x"}
    SPACE = types.SimpleNamespace(more=1)
    class Own:
        scale = 1
        def __init__(self): self.more = 1
    OWN = Own()
"""


@pytest.mark.parametrize(
    ("read", "change"),
    [
        ("st_settings.SCALE", "SCALE = 10"),
        ("getattr(st_settings, 'SCALE')", "SCALE = 10"),
        ("st_settings.TABLE['a'][0]", "TABLE['a'] = [10]"),
        ("len(st_settings.NAMES)", "NAMES.update(range(9))"),
        ("st_settings.SPACE.more", "SPACE.more = 10"),
        ("st_settings.OWN.more", "OWN.more = 10"),
        ("st_settings.Own.scale", "Own.scale = 10"),
        ("st_settings.NEW", "NEW = 10"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_what_the_program_set_in_another_module_counts(
    module: Make, read: str, change: str, named: bool
) -> None:
    m = module(st_settings=SETTINGS, st_reads=f"import st_settings\ndef f(x): return x * {read}")
    exec(change, sys.modules["st_settings"].__dict__)
    if not named:  # as of a script, it goes by value then
        m.f.__module__ = m.f.__qualname__ = "__main__"
    assert ran(m.f, 7) == 70


def test_what_the_program_set_in_the_module_itself_counts_though_it_has_a_lock(
    module: Make,
) -> None:
    text = """
        import os, threading
        LOCK, TABLE, PID = threading.Lock(), {"a": 1}, os.getpid()
        def helper(x): return x * TABLE["a"]
        def f(x):
            with LOCK: return helper(x), PID
    """
    m = module(st_own=text)
    m.TABLE["a"] = 10
    assert ran(m.f, 7) == (70, m.PID)


@pytest.mark.parametrize(
    ("use", "helpers"),
    [
        ("from st_helpers import h\ndef f(x): return h(x)", "def h(x): return x * 10"),
        ("import st_helpers\ndef f(x): return st_helpers.h(x)", "def h(x): return x * 10"),
        ("from st_helpers import F\ndef f(x): return F['h'](x)", "F = {'h': lambda x: x * 10}"),
        ("from st_helpers import C\ndef f(x): return C.h(x)", "class C:\n  h = lambda x: x * 10"),
    ],
)
def test_another_module_that_is_edited_since_runs_as_it_was_imported(
    module: Make, tmp_path: Path, use: str, helpers: str
) -> None:
    m = module(st_helpers=helpers, st_uses=use)
    (tmp_path / "st_helpers.py").write_text(helpers.replace("10", "3000"))
    assert ran(m.f, 7) == 70


def test_one_that_the_task_imports_itself_and_that_is_edited_since_is_refused(
    module: Make, tmp_path: Path
) -> None:
    helpers = "def h(x): return x * 10"
    use = "import st_helpers\ndef f(x):\n  from st_helpers import h\n  return h(x)"
    f = module(st_helpers=helpers, st_late=use).f
    assert ran(f, 7) == 70
    (tmp_path / "st_helpers.py").write_text(helpers.replace("10", "3000"))
    with pytest.raises(
        fo.TaskFailed, match=r"another here than in the program: st_helpers\.h"
    ) as caught:
        ran(f, 7)
    assert "\n" not in str(caught.value)


def test_a_module_that_only_the_program_can_import_does_not_matter(module: Make) -> None:
    text = """
        def f(x):
            try:
                import st_fast
            except ImportError:
                return x
            return st_fast.h(x)
    """
    m = module(st_slow=text)
    made = ModuleType("st_fast")
    exec("def h(x): return x * 10", made.__dict__)
    sys.modules["st_fast"] = made
    try:
        assert ran(m.f, 7) == 7
    finally:
        del sys.modules["st_fast"]


def test_a_class_of_another_module_stays_itself_where_the_tasks_own_module_is_edited(
    module: Make, tmp_path: Path
) -> None:
    use = "import st_kinds\ndef f(x): return isinstance(x, st_kinds.Kind) * 10"
    m = module(st_kinds="class Kind: pass", st_edits=use)
    (tmp_path / "st_edits.py").write_text(use.replace("10", "3000"))
    assert ran(m.f, sys.modules["st_kinds"].Kind()) == 10


@pytest.mark.parametrize(
    "around", [Calls, functools.partial, lambda f: Calls(functools.partial(f))]
)
def test_what_functions_within_a_callable_object_read_counts(
    module: Make, around: Callable[..., Any]
) -> None:
    m = module(st_settings=SETTINGS, st_in="import st_settings as s\ndef f(x): return x * s.SCALE")
    sys.modules["st_settings"].__dict__["SCALE"] = 10
    assert ran(around(m.f), 7) == 70


def test_two_functions_of_one_name_are_both_compared(module: Make, tmp_path: Path) -> None:
    helpers = "F = [lambda x: x * 10, lambda x: x * 20]"
    m = module(st_helpers=helpers, st_both="from st_helpers import F\ndef f(x): return F[x](7)")
    for old in ("10", "20"):
        (tmp_path / "st_helpers.py").write_text(helpers.replace(old, "3000"))
        assert (ran(m.f, 0), ran(m.f, 1)) == (70, 140)


def test_what_a_lambda_of_an_edited_module_calls_is_as_it_was_imported(
    module: Make, tmp_path: Path
) -> None:
    text = "def h(x): return x * SCALE\nSCALE = 1\nF = [lambda x: h(x)]"
    m = module(st_lambda=text)
    m.__dict__["SCALE"] = 10
    assert ran(m.F[0], 7) == 70
    (tmp_path / "st_lambda.py").write_text(text.replace("x * SCALE", "x * 3000"))
    assert ran(m.F[0], 7) == 70
