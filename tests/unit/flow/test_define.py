from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any

import numpy as np
import pytest

import flowos.model as m
from flowos.model import (
    Command,
    Gang,
    In,
    Needs,
    Out,
    PortSpec,
    PortType,
    Python,
    Task,
    WiringError,
    array,
    command,
    flow_input,
    flow_output,
    gang,
    task,
)
from flowos.model._hints import port_type


def add(x: int, y: int) -> int:
    return x + y


def definition(**changed: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "task_name": "add",
        "iport_nametypes": (m.int64, m.int64),
        "oport_nametypes": m.int64,
        "fun": add,
    }
    return {**usual, **changed}


def test_the_papers_dictionary_makes_a_task() -> None:
    made = task(definition())
    assert str(made) == "add(x: int64, y: int64) -> out: int64"
    assert made.body == Python(add)


def test_a_port_of_a_dictionary_may_be_a_name_and_a_type() -> None:
    made = task(
        definition(
            iport_nametypes=(("left", m.int8), m.int64),
            oport_nametypes=(("sum", m.int64), ("all", m.any_)),
            needs=Needs(cores=2),
        )
    )
    assert str(made) == "add(left: int8, y: int64) -> sum: int64, all: any_"
    assert made.needs.cores == 2


def test_one_named_port_needs_no_tuple_around_it() -> None:
    made = task(definition(iport_nametypes=("x", m.int64), oport_nametypes=("y", m.int64)))
    assert str(made) == "add(x: int64) -> y: int64"


def test_ports_are_numbered_where_the_function_does_not_name_them() -> None:
    made = task(definition(iport_nametypes=(m.int64,) * 3, oport_nametypes=(m.int64,) * 2))
    assert [p.name for p in made.inputs] == ["in1", "in2", "in3"]
    assert [p.name for p in made.outputs] == ["out1", "out2"]
    assert [p.name for p in task(definition(fun=iter, iport_nametypes=m.any_)).inputs] == ["in1"]
    assert [p.name for p in task(definition(fun=partial(add))).inputs] == ["x", "y"]


def test_a_task_may_have_no_inputs() -> None:
    assert task(definition(iport_nametypes=(), fun=lambda: 1)).inputs == ()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"color": 1}, "task 'add': 'color' is unknown; the keys are task_name"),
        ({"fun": 3}, "task 'add': expected a function, given 3 (int)"),
        ({"task_name": ""}, "a task's name is a text, given '' (str)"),
        ({"task_name": 3}, "a task's name is a text, given 3 (int)"),
        ({"iport_nametypes": ("x", 3)}, "port 'x': expected a port type such as fo.int64, given 3"),
        ({"iport_nametypes": (("x", int), ("x", int))}, "two inputs are named 'x'"),
        ({"iport_nametypes": ("", int)}, "an input's name is a text, given ''"),
        ({"oport_nametypes": ()}, "has no output, so no flow could reach it"),
    ],
)
def test_a_wrong_dictionary_is_refused_in_one_line(changed: dict[str, object], words: str) -> None:
    with pytest.raises(WiringError, match=r"^[^\n]*$") as caught:
        task(definition(**changed))
    assert words in str(caught.value)


def test_a_missing_key_is_named() -> None:
    given = definition()
    del given["fun"]
    with pytest.raises(WiringError, match="task 'add': 'fun' is missing"):
        task(given)


def test_a_decorated_function_takes_its_ports_from_its_annotations() -> None:
    @task
    def divide(number: m.int64, by: int = 10) -> tuple[int, m.int64]:  # type: ignore[valid-type]
        return divmod(number, by)

    assert str(divide) == "divide(number: int64, by: int64) -> out1: int64, out2: int64"
    assert divide.defaults == (("by", 10),)
    assert repr(divide) == f"<task {divide}>"


def test_the_decorator_takes_a_name_and_needs() -> None:
    @task(name="sum", needs=Needs(cores=2, gpus=1))
    def plus(x: float) -> "float":
        return x

    assert (plus.name, plus.needs.gpus, str(plus.outputs[0])) == ("sum", 1, "out: float64")


def test_the_decorator_takes_retries_and_a_time_limit() -> None:
    @task(retries=2, limit_seconds=1.5)
    def plus(x: float) -> float:
        return x

    given: Any = {**definition(), "retries": 1, "limit_seconds": 3, "needs": Needs(cores=2)}
    both = task(given, retries=4)
    assert isinstance(plus.body, Python)
    assert isinstance(both.body, Python)
    assert (plus.retries, plus.body.limit_seconds, plus.fusable) == (2, 1.5, False)
    assert (both.retries, both.body.limit_seconds, both.needs.cores) == (4, 3, 2)
    assert command(["true"], retries=2).retries == 2
    assert task(definition()).fusable
    assert not command(["true"]).fusable


def test_a_task_may_be_cached_or_have_a_version() -> None:
    made = [task(definition(), cache=cache) for cache in (None, True, "v2", False)]
    assert [each.cache for each in made] == [None, True, "v2", False]
    assert [each.fusable for each in made] == [True, False, False, True]
    assert task({**definition(), "cache": "v1"}).cache == "v1"
    assert command(["true"], cache="v2").cache == "v2"


def test_a_task_that_is_not_requeued_is_a_stage_alone() -> None:
    made = [task(definition(), requeue=requeue) for requeue in (True, False)]
    assert [(each.requeue, each.fusable) for each in made] == [(True, True), (False, False)]
    assert task({**definition(), "requeue": False}).requeue is False
    assert command(["true"], requeue=False).requeue is False
    flow = flow_output(made[0](flow_input("x", int), 1))
    assert task(flow, requeue=True).requeue
    with pytest.raises(WiringError, match="as a task takes no requeue: its own tasks say"):
        task(flow, requeue=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"requeue": 0}, "task 'plus': requeue=0 (int); expected True or False"),
        ({"cache": ""}, "task 'plus': cache='' (str); expected True, False, or a version such as"),
        ({"cache": 1}, "task 'plus': cache=1 (int)"),
        ({"retries": -1}, "task 'plus': retries=-1 (int); expected a whole number, 0 or more"),
        ({"retries": True}, "task 'plus': retries=True"),
        ({"retries": 1.0}, "task 'plus': retries=1.0"),
        ({"limit_seconds": 0}, "task 'plus': limit_seconds=0 (int); expected a number above 0"),
        ({"limit_seconds": -2.5}, "limit_seconds=-2.5"),
        ({"limit_seconds": float("nan")}, "limit_seconds=nan"),
        ({"limit_seconds": float("inf")}, "limit_seconds=inf"),
        ({"limit_seconds": True}, "limit_seconds=True"),
        ({"limit_seconds": "1"}, "limit_seconds='1'"),
        (
            {"retrys": 2},
            "there is no option 'retrys'; the options are name, needs, retries",
        ),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(options: Any, words: str) -> None:
    def plus(x: float) -> float:
        return x

    with pytest.raises(WiringError, match=r"^[^\n]*$") as caught:
        task(**options)(plus)
    assert words in str(caught.value)


def test_a_command_with_a_wrong_limit_is_refused_where_it_is_written() -> None:
    with pytest.raises(WiringError, match="task 'true': limit_seconds=0"):
        command(["true"], limit_seconds=0)


def test_annotations_may_be_texts() -> None:
    def late(x: "int") -> "tuple[int, str]":
        return x, ""

    assert [str(p.type) for p in task(late).outputs] == ["int64", "str_"]


class Own:
    pass


class Scaled:
    def __call__(self, x: "int", by: float = 2.0) -> float:
        return x * by


def scale(by: float, x: int, *, more: int = 0) -> float:
    return by * x + more


@pytest.mark.parametrize(
    ("fun", "said"),
    [
        (partial(scale, 2.0), "scale(x: int64, more: int64) -> out: float64"),
        (
            partial(partial(scale, more=3), x=1),
            "scale(by: float64, x: int64, more: int64) -> out: float64",
        ),
        (Scaled(), "task(x: int64, by: float64) -> out: float64"),
        (partial(Scaled(), 3), "task(by: float64) -> out: float64"),
        (Scaled().__call__, "__call__(x: int64, by: float64) -> out: float64"),
    ],
)
def test_types_are_read_of_what_is_called(fun: Any, said: str) -> None:
    assert str(task(fun)) == said


def no_type(x) -> int:  # type: ignore[no-untyped-def]
    return int(x)


def no_return(x: int):  # type: ignore[no-untyped-def]
    return x


def nothing(x: int) -> None: ...
def several(*x: int) -> int: ...  # type: ignore[empty-body]
def named_values(**x: int) -> int: ...  # type: ignore[empty-body]
def listed(x: list[Own]) -> int: ...  # type: ignore[empty-body]
def called(x: Callable[[int], int]) -> int: ...  # type: ignore[empty-body]
def unknown(x: "Missing") -> int: ...  # type: ignore[empty-body,name-defined]  # noqa: F821
def wrong_default(x: int = 2**70) -> int: ...  # type: ignore[empty-body]
def random(x: np.random.Generator) -> int: ...  # type: ignore[empty-body]
async def later(x: int) -> int: ...  # type: ignore[empty-body]
def some(x: int):  # type: ignore[no-untyped-def]
    yield x


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (no_type, "task 'no_type': parameter 'x' has no type; use fo.any_"),
        (no_return, "task 'no_return': say what it returns"),
        (nothing, "it returns None, so no flow could reach it"),
        (several, "parameter 'x' takes any number of values"),
        (named_values, "parameter 'x' takes any number of values"),
        (
            called,
            "expected a port type such as fo.int64, given collections.abc.Callable[[int], int]",
        ),
        (
            unknown,
            "task 'unknown': its type hints cannot be read (NameError: name 'Missing' is not",
        ),
        (wrong_default, "default of 'x': expected int64"),
        (random, "parameter 'x': expected a port type"),
        (listed, "Own'> (type), in list["),
        (int, "task 'int': it does not say what it takes (no signature found"),
        (partial(no_type), "task 'no_type': parameter 'x' has no type; use fo.any_"),
        (later, "expected a plain function, given an async or generator one"),
        (some, "expected a plain function, given an async or generator one"),
        (3, "expected a function, given 3"),
        (task(definition()), "expected a function, given <task add"),
    ],
)
def test_a_function_that_is_no_task_is_refused_in_one_line(fun: Any, words: str) -> None:
    with pytest.raises(WiringError, match=r"^[^\n]*$") as caught:
        task(fun)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "type_"),
    [
        (int, m.int64),
        (float, m.float64),
        (bool, m.bool_),
        (str, m.str_),
        (bytes, m.bytes_),
        (object, m.any_),
        (Any, m.any_),
        (Path, m.File),
        (PurePath, m.File),
        (np.float32, m.float32),
        (np.uint8, m.uint8),
        (np.bool_, m.bool_),
        (np.ndarray, array()),
        (Annotated[Any, "doc", array(m.int8)], array(m.int8)),
    ],
)
def test_python_and_numpy_types_stand_for_port_types(hint: object, type_: PortType) -> None:
    assert port_type("here", hint) == type_


def test_a_class_of_ones_own_is_no_port_type() -> None:
    with pytest.raises(WiringError, match="here: expected a port type"):
        port_type("here", Own)


def test_a_flow_is_a_task_of_its_own_name_or_another() -> None:
    x = flow_input("x", m.int64)
    flow = flow_output(task(add)(x, x), name="double")
    assert str(task(flow)) == "double(x: int64) -> add: int64"
    assert task(flow, name="twice").name == "twice"
    for options in (
        {"needs": Needs(cores=2)},
        {"retries": 1},
        {"limit_seconds": 2},
        {"cache": True},
    ):
        with pytest.raises(WiringError, match="its own tasks say what they need"):
            task(flow, **options)


def test_a_command_line_makes_its_ports() -> None:
    made = command(
        ["cc", "-O", 2, In("source"), ("-I", In("include")), "-o", Out("program"), Path("/x")],
        inputs={"include": m.str_, "after": m.any_},
        stdout="log",
        stderr=("raw", m.bytes_),
        exit_code="code",
        outcome="outcome",
        variables={"A": "1", "B": 4, "C": Path("/x")},
    )
    assert made.name == "cc"
    assert str(made) == (
        "cc(source: File, include: str_, after: any_) -> "
        "program: File, log: str_, raw: bytes_, code: int64, outcome: any_"
    )
    assert isinstance(made.body, Command)
    assert made.body.argv[2] == "2"
    assert made.body.argv[-1] == "/x"
    assert made.body.variables == (("A", "1"), ("B", "4"), ("C", "/x"))
    assert dict(made.body.captures)["code"] == "exit_code"


def test_a_command_without_outputs_gives_what_it_prints() -> None:
    assert str(command(["/bin/date"])) == "date() -> stdout: str_"
    assert command([In("program")]).name == "command"


@pytest.mark.parametrize(
    ("words", "options", "complaint"),
    [
        ("ls -l", {}, "command: expected a list of words, given 'ls -l'"),
        ([], {}, "command: expected a list of words, given []"),
        (["a", True], {}, "command: a word is a text, a number, a path, In, Out"),
        (["a", None], {}, "given None"),
        (["a"], {"stdout": ("x", m.int64)}, "command 'a': stdout cannot be captured as"),
        (["a"], {"exit_code": ("x", m.bytes_)}, "exit_code cannot be captured as"),
        (["a"], {"stdout": True}, "stdout= names an output, such as stdout='stdout', given True"),
        (["a", Out("../x")], {}, "Out('../x') has to be a File with a plain name"),
        (["a", Out("..")], {}, "Out('..') has to be a File with a plain name"),
        (["a", In("x")], {"inputs": {"x": m.bytes_}}, "In('x') is bytes_, which is no word"),
        (["a", In("x")], {"inputs": {"x": array()}}, "which is no word; use a File"),
        (["a", In("x")], {"inputs": {"x": 3}}, "input 'x': expected a port type"),
        (["a", Out("x")], {"stdout": "x"}, "two outputs are named 'x'"),
        (["a", Out("x")], {"stdout": "y", "once": "k"}, "what is made once is files"),
        (["a"], {"variables": ["A"]}, "command 'a': variables=['A'] (list); expected a dictionary"),
        (["a"], {"variables": {"A=B": ""}}, "command 'a': no variable has the name 'A=B'"),
        (["a"], {"variables": {"A": None}}, "command 'a': variable A=None"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    words: Any, options: Any, complaint: str
) -> None:
    with pytest.raises(WiringError, match=r"^[^\n]*$") as caught:
        command(words, **options)
    assert complaint in str(caught.value)


def test_a_command_task_made_by_hand_is_checked_too() -> None:
    file = PortSpec("x", m.File)
    with pytest.raises(WiringError, match=r"In\('y'\) is no input of it"):
        Task(name="t", inputs=(), outputs=(file,), body=Command(argv=("a", In("y"), Out("x"))))
    with pytest.raises(WiringError, match="output 'x' has to be either an Out"):
        Task(name="t", inputs=(), outputs=(file,), body=Command(argv=("a",)))
    with pytest.raises(WiringError, match="input 'z' has no port type, given 3"):
        Task(name="t", inputs=(PortSpec("z", 3),), outputs=(file,), body=Python(add))  # type: ignore[arg-type]


def test_a_gang_is_a_command_started_as_ranks() -> None:
    made = gang(command(["hello"], needs=Needs(ranks=2)), mpi="openmpi", mpirun="/usr/bin/mpirun")
    assert isinstance(made.body, Gang)
    assert (made.body.mpi, made.needs.ranks, str(made)) == ("openmpi", 2, "hello() -> stdout: str_")
    with pytest.raises(WiringError, match="expected a task made by"):
        gang(task(add), mpi="mpich")
