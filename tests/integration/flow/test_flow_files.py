"""`flowos run flow.py`: a flow of a Python file; inputs as words, outputs as text or JSON."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
FLOWOS = str(Path(sys.executable).with_name("flowos"))

ADDS = """
import flowos as fo

@fo.task
def add(a: fo.int64, b: fo.int64) -> fo.int64:
    return a + b

flow = fo.flow_output(add(fo.flow_input("a", fo.int64), fo.flow_input("b", fo.int64)))
"""

TAKES_ALL = """
import flowos as fo

@fo.task
def say(
    n: fo.uint8, x: fo.float32, yes: fo.bool_, word: fo.str_, raw: fo.bytes_, file: fo.File,
    grid: fo.array(fo.float64, (None, 2)), thing: fo.any_,
) -> fo.str_:
    return f"{n} {x} {yes} {word} {raw} {file.name} {grid.sum()} {thing}"

kinds = dict(
    n=fo.uint8, x=fo.float32, yes=fo.bool_, word=fo.str_, raw=fo.bytes_, file=fo.File,
    grid=fo.array(fo.float64, (None, 2)), thing=fo.any_,
)
said = fo.flow_output(say(*[fo.flow_input(name, kind) for name, kind in kinds.items()]))
"""

GIVES_ALL = """
import flowos as fo

def make(n):
    import numpy as np
    return n, np.eye(2), b"abc", {"a": [1, 2.5, None]}

make = fo.task({
    "task_name": "make",
    "iport_nametypes": fo.int64,
    "oport_nametypes": (
        ("n", fo.int64), ("grid", fo.array()), ("raw", fo.bytes_), ("thing", fo.any_)
    ),
    "fun": make,
})
flow = fo.flow_output(*make(fo.flow_input("n", fo.int64)))
"""

SCALES = """
import numpy as np
import flowos as fo

@fo.task
def twice(x: np.ndarray) -> np.ndarray:
    return 2 * x

flow = fo.flow_output(twice(fo.flow_input("x", np.ndarray)))
"""


COUNTS = """
import flowos as fo

@fo.task
def count(x: fo.array(fo.int8), y: fo.array(fo.float32)) -> fo.int64:
    return len(x) + len(y)

flow = fo.flow_output(count(fo.flow_input("x", fo.array(fo.int8)),
    fo.flow_input("y", fo.array(fo.float32))))
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    files = {
        "counts": COUNTS,
        "adds": ADDS,
        "takes": TAKES_ALL,
        "gives": GIVES_ALL,
        "scales": SCALES,
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "notes.npy").write_text("")
    return tmp_path


def flowos_run(here: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [FLOWOS, "run", *words], cwd=here, capture_output=True, text=True, timeout=300
    )


def test_inputs_are_named_and_outputs_printed(here: Path) -> None:
    done = flowos_run(here, "adds.py", "a=40", "b=0x2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "add = 42\n", "")


@pytest.mark.parametrize("workers", ["thread", "process", "inline"])
def test_a_flow_file_runs_in_any_workers(here: Path, workers: str) -> None:
    done = flowos_run(here, "adds.py", "--workers", workers, "a=1", "b=2")
    assert (done.returncode, done.stdout) == (0, "add = 3\n")


def test_each_input_is_read_by_its_type(here: Path) -> None:
    words = ("n=200", "x=0.5", "yes=true", "word=a b=c", "raw=xyz", "file=adds.py")
    done = flowos_run(here, "takes.py", *words, "grid=[[1,2],[3,4]]", 'thing={"a": 1}')
    assert done.stderr == ""
    assert done.stdout == "say = 200 0.5 True a b=c b'xyz' adds.py 10.0 {'a': 1}\n"


def test_an_array_may_come_from_a_file(here: Path) -> None:
    import numpy as np

    np.save(here / "grid.npy", np.ones((3, 2)))
    words = ("n=1", "x=1", "yes=no", "word=", "raw=", "file=adds.py", "thing=plain")
    done = flowos_run(here, "takes.py:said", *words, "grid=grid.npy")
    assert done.stdout == "say = 1 1.0 False  b'' adds.py 6.0 plain\n"


def test_json_has_every_output_by_name(here: Path) -> None:
    done = flowos_run(here, "--json", "gives.py", "n=7")
    assert json.loads(done.stdout) == {
        "make.n": 7,
        "make.grid": [[1.0, 0.0], [0.0, 1.0]],
        "make.raw": "abc",
        "make.thing": {"a": [1, 2.5, None]},
    }


ODD = """
import numpy as np
import flowos as fo

@fo.task
def odd() -> tuple[fo.float64, fo.array(), fo.any_, fo.any_, fo.any_]:
    thing = {"a": float("inf"), 2: [np.float32("nan")], None: {3, }, "b": np.longdouble(2)}
    ring = [1]; ring.append(ring)
    return float("nan"), np.array([[1.5, -np.inf]]), thing, np.array([1 + 2j]), ring

flow = fo.flow_output(*odd())
"""


def test_json_has_null_for_what_is_infinite_or_no_number(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    done = flowos_run(tmp_path, "--json", "odd.py")
    assert done.stderr == ""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    assert json.loads(done.stdout, parse_constant=refuse) == {
        "odd.out1": None,
        "odd.out2": [[1.5, None]],
        "odd.out3": {"a": None, "2": [None], "null": [3], "b": "2.0"},
        "odd.out4": ["(1+2j)"],
        "odd.out5": "[1, [...]]",
    }
    printed = flowos_run(tmp_path, "odd.py").stdout
    assert "odd.out1 = nan\nodd.out2 = [[1.5, -inf]]\n" in printed


@pytest.mark.parametrize("workers", ["thread", "process", "inline"])
def test_what_tasks_print_is_no_part_of_the_json(tmp_path: Path, workers: str) -> None:
    below = "import os; os.write(1, b'from below\\n'); print('loud'); return a + b"
    loud = "print('loaded')\n" + ADDS.replace("return a + b", below)
    (tmp_path / "loud.py").write_text(loud)
    done = flowos_run(tmp_path, "loud.py", "--json", "--workers", workers, "a=1", "b=2")
    assert json.loads(done.stdout) == {"add": 3}
    assert set(done.stderr.split()) == {"from", "below", "loaded", "loud"}


@pytest.mark.usefixtures("here")
def test_a_dry_run_has_json_too(flowos: Flowos) -> None:
    done = flowos("run", "--dry-run", "--json", "adds.py")
    assert json.loads(done.stdout) == {
        "name": "flow",
        "inputs": {"a": "int64", "b": "int64"},
        "tasks": ["add"],
        "needs": {},
        "outputs": {"add": "int64"},
        "environment": "bare",
    }


def test_a_dry_run_shows_the_flow_and_where_it_would_run(flowos: Flowos, here: Path) -> None:
    (here / "mine" / "bin").mkdir(parents=True)
    done = flowos("run", "--dry-run", "adds.py", "--env", "./mine")
    assert done.stdout.startswith("# mine@auto\n")
    assert "add" in done.stdout


def test_help_tells_what_json_is_of_a_flow(flowos: Flowos) -> None:
    said = " ".join(flowos("run", "--help").stdout.split())
    assert "of a flow: its outputs, on standard output" in said


LISTS = "expected numbers in nested lists of equal lengths as JSON, or a .npy file"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("none.py",), "no such flow file: there is nothing at "),
        (("adds.py", "a=1"), "no value for b; the flow's inputs are a: int64, b: int64"),
        (("adds.py", "a=1", "b=x"), "input 'b': expected int64, given 'x' (str)"),
        (("adds.py", "a=1", "a=2"), "'a=2': input 'a' is given twice"),
        (("adds.py", "a=1", "c=2"), "the flow has no input 'c'; its inputs are a: int64, b"),
        (("takes.py", "word=y", "words=x"), "the flow has no input 'words'; its inputs are "),
        (("gives.py", "n=1", "--out", "make.n"), "--out make.n: expected OUTPUT=PATH; outputs: "),
        (
            ("gives.py", "n=1", "--out", "make.grd=y"),
            "--out make.grd=y: no output 'make.grd'; did you mean 'make.grid'?",
        ),
        (("gives.py", "n=1", "--out", "x=y"), "--out x=y: no output 'x'; outputs: make.n, "),
        (("takes.py", "words=x"), "the flow has no input 'words'; did you mean 'word'?"),
        (("notes.txt",), "notes.txt: the name of a flow file must end in .py"),
        (("adds.py", "a=1", "2"), "'2': expected NAME=VALUE"),
        (
            ("gives.py", "n=1", "--out", "make.n=a.json", "--out", "make.n=b.json"),
            "--out make.n=b.json: make.n is given twice; one place is for one output",
        ),
        (
            ("gives.py", "n=1", "--out", "make.n=a.json", "--out", "make.grid=./a.json"),
            "--out make.grid=./a.json: make.n is written there too; use another name",
        ),
        (("adds.py:other",), "adds.py has no flow 'other'; its flows are flow"),
        ((), "name a flow file, or an image to be run"),
        (("--pool", "nope", "adds.py", "a=1", "b=2"), "no pool 'nope' in flowos.toml, whi"),
        (("--env", "mine", "--journal", "j"), "--journal is for a flow, and mine is an image"),
        (("--env", "mine", "--log", "l"), "--log is for a flow, and mine is an image"),
        (("--env", "mine", "--out", "a=b"), "--out is for a flow, and mine is an image"),
        (("takes.py", "n=256"), "input 'n': expected uint8 (0..255), given 256 (int)"),
        (("takes.py", "x=1e400"), "input x: float32: '1e400' (str): too large for a float64"),
        (("takes.py", "x=-1e-400"), "input x: float32: '-1e-400' (str): too small for a float64"),
        (("takes.py", "thing=[1e999]"), "input thing: any_: '[1e999]' (str): too large for a fl"),
        (
            ("takes.py", "grid=[[1,1e400]]"),
            "input grid: array(float64, (any, 2)): '[[1,1e400]]' (str): too large for a float64",
        ),
        (
            ("takes.py", "grid=[[true]]"),
            "input grid: array(float64, (any, 2)): '[[true]]' (str): t",
        ),
        (
            ("counts.py", "x=[1.5]"),
            "input x: array(int8, any): '[1.5]' (str): these are float64, the port takes int8",
        ),
        (("counts.py", "y=[1e39]"), "input y: array(float32, any): '[1e39]' (str): a number is t"),
        (("takes.py", "grid=[1,2]"), "input 'grid': expected array(float64, (any, 2))"),
        (("takes.py", "grid=no.npy"), "input grid: array(float64, (any, 2)): 'no.npy' (str): "),
        (("takes.py", "grid=notes.npy"), "input grid: array(float64, (any, 2)): 'notes.npy' (str)"),
        (("takes.py", "grid={}"), f"input grid: array(float64, (any, 2)): '{{}}' (str): {LISTS}"),
        (("scales.py", "x=3"), f"input x: array(any, any): '3' (str): {LISTS}"),
        (("scales.py", "x=three"), f"input x: array(any, any): 'three' (str): {LISTS}"),
        (("scales.py", 'x=["a"]'), f"input x: array(any, any): '[\"a\"]' (str): {LISTS}"),
        (("scales.py", "x=[[1],[2,3]]"), f"input x: array(any, any): '[[1],[2,3]]' (str): {LISTS}"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_wrong_call_is_one_line_and_exit_code_2(
    flowos: Flowos, words: Sequence[str], complaint: str
) -> None:
    done = flowos("run", *words, code=2)
    assert done.stderr.startswith(f"flowos run: {complaint}")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("text", "code", "complaint"),
    [
        ("x = 1\n", 2, "file.py makes no flow: it must leave one in its module"),
        ("import flowos as fo\nx = (\n", 1, "file.py:2: SyntaxError: "),
        ("import flowos as fo\n\nx = 1 / 0\n", 1, "file.py:3: ZeroDivisionError: division by zero"),
        ("import no_such_module\n", 1, "file.py:1: ModuleNotFoundError: No module named 'no_such_"),
        (
            ADDS
            + "second = fo.flow_output(add(1, 2))\ndel flow\nthird = fo.flow_output(add(3, 4))",
            2,
            "file.py makes several flows (second, third); name one, as in file.py:second",
        ),
    ],
)
def test_a_file_without_a_flow_is_refused_with_the_line(
    flowos: Flowos, tmp_path: Path, text: str, code: int, complaint: str
) -> None:
    (tmp_path / "file.py").write_text(text)
    done = flowos("run", "file.py", code=code)
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("workers", ["thread", "process", "inline"])
def test_what_a_task_raises_is_its_own_traceback_and_one_line(tmp_path: Path, workers: str) -> None:
    fails = ADDS.replace("return a + b", "raise ValueError('no')")
    (tmp_path / "fails.py").write_text(fails)
    done = flowos_run(tmp_path, "fails.py", "a=1", "b=2", "--workers", workers)
    told = (
        "flowos run: task 'add' raised ValueError: no (fails.py:6); "
        "given a = 1 (int), b = 2 (int)\n"
    )
    *trace, last = done.stderr.splitlines(keepends=True)
    assert (done.returncode, done.stdout, last) == (1, "", told)
    assert trace[0] == "Traceback (most recent call last):\n"
    assert trace[1] == f'  File "{tmp_path}/fails.py", line 6, in add\n'
    assert trace[-1] == "ValueError: no\n"
    assert sum(line.startswith("  File") for line in trace) == 1


def test_a_flow_file_may_be_named_as_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(ADDS)
    done = flowos_run(tmp_path, "json.py", "a=1", "b=2", "--workers", "process")
    assert (done.returncode, done.stdout) == (0, "add = 3\n")
