"""How functions reach worker processes, and what their failures look like here."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flowos as fo


def ran(fun: Callable[..., Any], *values: object, workers: Any = "process") -> object:
    inputs = tuple((f"i{k}", fo.any_) for k in range(len(values)))
    task = fo.task(
        {"task_name": "t", "iport_nametypes": inputs, "oport_nametypes": fo.any_, "fun": fun}
    )
    ports = [fo.flow_input(name, kind) for name, kind in inputs]
    with fo.slice(fo.flow_output(task(*ports)), workers=workers, cores=1) as s:
        return s.run(*values)[0]


def written(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(textwrap.dedent(text))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ModuleType]:
    """Write a module and import it here; found by this process's sys.path only."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, text: str) -> ModuleType:
        written(tmp_path, name, text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return make


Make = Callable[[str, str], ModuleType]


def test_a_function_of_a_module_is_sent_by_name(module: Make) -> None:
    m = module("by_name", "import sys\ndef f(x): return x + 1, f.__module__ in sys.modules")
    assert ran(m.f, 1) == (2, True)


def test_a_decorated_function_is_sent_by_name_too(module: Make) -> None:
    m = module(
        "decorated",
        """
        import sys
        import flowos as fo
        @fo.task
        def f(x: fo.any_) -> fo.any_:
            return f.name, "cloudpickle" in sys.modules
        """,
    )
    assert ran(m.f.body.fun, 1) == ("f", False)


def test_a_module_edited_since_its_import_runs_as_it_was_imported(
    module: Make, tmp_path: Path
) -> None:
    m = module("edited", "def helper(x): return x * 2\ndef f(x): return helper(x)")
    written(tmp_path, "edited", "def helper(x): return x * 1000\ndef f(x): return helper(x)")
    assert ran(m.f, 2) == 4


def test_a_constant_set_after_the_import_is_the_one_that_is_used(module: Make) -> None:
    m = module("scaled", "SCALE = 2\ndef f(x): return x * SCALE")
    m.__dict__["SCALE"] = 5
    assert ran(m.f, 2) == 10


def test_a_module_that_the_worker_cannot_import_is_sent_by_value() -> None:
    made = ModuleType("made_here")
    exec("def helper(x): return x * 3\ndef f(x): return helper(x)", made.__dict__)
    sys.modules["made_here"] = made
    try:
        assert ran(made.f, 2) == 6
    finally:
        del sys.modules["made_here"]


def test_lambdas_closures_builtins_and_objects_are_sent() -> None:
    factor = 7

    class Adds:
        def __init__(self, what: int) -> None:
            self.what = what

        def __call__(self, x: int) -> int:
            return x + self.what

        def method(self, x: int) -> int:
            return x - self.what

    assert ran(lambda x: x * factor, 2) == 14
    assert ran(len, [1, 2, 3]) == 3
    assert ran(str.upper, "a") == "A"
    assert ran(Adds(3), 1) == 4
    assert ran(Adds(3).method, 1) == -2


def test_a_function_that_cannot_be_sent_is_named_in_one_line() -> None:
    lock = threading.Lock()
    with pytest.raises(fo.TaskFailed) as caught:
        ran(lambda x: (x, lock), 1)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("task 't': its function ")
    assert "cannot be sent to a worker process" in text
    assert "cannot pickle '_thread.lock' object" in text
    assert "workers='thread'" in text


MAIN = """
    import flowos as fo
    from dataclasses import dataclass
    from typing import NamedTuple

    @dataclass
    class Point:
        x: int

    @dataclass(slots=True)
    class Slim:
        x: int
        y: int = 2

    class Pair(NamedTuple):
        a: object
        b: int

    def helper(p): return p.x * 2

    @fo.task
    def f(p: fo.any_) -> fo.any_:
        return Point(helper(p))

    @fo.task
    def g(p: fo.any_) -> fo.any_:
        raise KeyError(p.x)

    @fo.task
    def h(p: fo.any_) -> fo.any_:
        return Pair(Slim(p.a.x + 1), p.b)

    p = fo.flow_input("p", fo.any_)
    with fo.slice(fo.flow_output(h(p)), workers="process") as s:
        assert s.run(Pair(Slim(4), 1)) == [Pair(Slim(5), 1)]
    with fo.slice(fo.flow_output(f(p)), workers="process") as s:
        result = s.run(Point(4))[0]
        assert type(result) is Point and result == Point(8), result
    with fo.slice(fo.flow_output(g(p)), workers="process") as s:
        try:
            s.run(Point(4))
        except fo.TaskFailed as error:
            print(error)
            print(type(error.__cause__))
    print("ok")
"""


def test_functions_and_classes_of_main_cross_both_ways(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(MAIN))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "task 'g' raised KeyError: 4 (script.py:27); given p = Point(x=4) (Point)",
        "<class 'KeyError'>",
        "ok",
    ]


def raises_value(x: object) -> object:
    return inner(x)


def inner(_: object) -> object:
    raise ValueError("no such thing")


class Needy(Exception):  # noqa: N818
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def raises_needy(_: object) -> None:
    raise Needy(1, 2)


def raises_with_lock(_: object) -> None:
    raise RuntimeError(threading.Lock())


def exits(_: object) -> None:
    sys.exit("enough")


def raises_long(_: object) -> None:
    raise RuntimeError("x" * 300_000)


@pytest.mark.parametrize("fun", [raises_value, raises_needy, raises_with_lock, exits])
def test_a_failure_is_told_as_by_a_thread(fun: Callable[..., Any]) -> None:
    told = []
    for workers in ("thread", "process"):
        with pytest.raises(fo.TaskFailed) as caught:
            ran(fun, [1, 2], workers=workers)
        text = str(caught.value)
        told.append(text.split(" at 0x")[0])
        assert "given i0 = [1, 2] (list)" in text
    assert told[0] == told[1]


def test_an_exception_crosses_with_type_text_and_its_own_traceback() -> None:
    with pytest.raises(fo.TaskFailed) as caught:
        ran(raises_value, 1)
    cause = caught.value.__cause__
    assert type(cause) is ValueError
    assert cause.args == ("no such thing",)
    trace = str(cause.__cause__)
    assert "in raises_value\n    return inner(x)" in trace
    assert 'raise ValueError("no such thing")' in trace
    assert "worker.py" not in trace


def test_an_exception_that_cannot_cross_is_described() -> None:
    for fun, text in (
        (raises_with_lock, "RuntimeError: <unlocked"),
        (raises_needy, "Needy: 1 and 2"),
    ):
        with pytest.raises(fo.TaskFailed) as caught:
            ran(fun, 1)
        assert str(caught.value.__cause__).startswith(text)


def test_an_exception_of_any_size_crosses() -> None:
    with pytest.raises(fo.TaskFailed) as caught:
        ran(raises_long, 1)
    assert type(caught.value.__cause__) is RuntimeError


def checked(fun: Callable[..., Any], outputs: Any, workers: Any) -> object:
    task = fo.task(
        {"task_name": "t", "iport_nametypes": (), "oport_nametypes": outputs, "fun": fun}
    )
    ports = task()
    with fo.slice(fo.flow_output(ports), workers=workers, cores=1) as s:
        return s.run()


@pytest.mark.parametrize(
    ("fun", "outputs"),
    [
        (lambda: "text", fo.int64),
        (lambda: 2**63, fo.int64),
        (lambda: (1, 2, 3), (("a", fo.int64), ("b", fo.int64))),
        (lambda: 1, (("a", fo.int64), ("b", fo.int64))),
        (lambda: (1, "x"), (("a", fo.int64), ("b", fo.int64))),
        (lambda: [1.0], fo.array(fo.float64)),
        (lambda: "/no/such/file", fo.File),
        (lambda: 5, fo.File),
    ],
)
def test_a_refused_result_is_told_as_by_a_thread(fun: Callable[..., Any], outputs: Any) -> None:
    told = []
    for workers in ("thread", "process"):
        with pytest.raises(fo.ValueRefused) as caught:
            checked(fun, outputs, workers)
        told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("workers", ["thread", "process"])
def test_a_refused_result_is_told_with_what_the_task_was_given(workers: Any) -> None:
    """A wrong input that the task let pass is seen in what it gave only."""

    @fo.task
    def half(x: fo.any_, by: fo.int64) -> fo.float64:
        return x * by  # type: ignore[no-any-return]

    flow = fo.flow_output(half(fo.flow_input("x", fo.any_), 2))
    told = (
        "task 'half', output 'out': expected float64, given 'abab' (str); its inputs were "
        "x = 'ab' (str), by = 2 (int)"
    )
    with (
        fo.slice(flow, workers=workers, cores=1) as s,
        pytest.raises(fo.ValueRefused) as caught,
    ):
        s.run("ab")
    assert str(caught.value) == told


def test_a_file_result_becomes_the_absolute_path_of_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "made"
    path.write_text("x")
    assert checked(lambda: str(path), fo.File, "process") == [path]


def test_several_results_come_in_order() -> None:
    outputs = (("a", fo.int64), ("b", fo.str_))
    assert checked(lambda: [1, "b"], outputs, "process") == [1, "b"]


def test_values_that_cannot_cross_are_named_with_task_and_port() -> None:
    with pytest.raises(fo.ValueRefused, match=r"task 't', input 'i0': cannot cross .*_thread.lock"):
        ran(id, threading.Lock())
    with pytest.raises(fo.ValueRefused, match=r"task 't', output '.*': cannot leave .*generator"):
        ran(lambda x: (i for i in x), [1])


def test_a_failed_run_leaves_the_worker_usable() -> None:
    x = fo.flow_input("x", fo.int64)
    inverse = fo.task(
        {
            "task_name": "inverse",
            "iport_nametypes": fo.int64,
            "oport_nametypes": fo.float64,
            "fun": lambda x: 1 / x,
        }
    )
    with fo.slice(fo.flow_output(inverse(x)), workers="process", cores=1) as s:
        for _ in range(3):
            with pytest.raises(fo.TaskFailed, match="ZeroDivisionError"):
                s.run(0)
            assert s.run(4) == [0.25]
