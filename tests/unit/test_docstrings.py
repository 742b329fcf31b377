"""Every public name says what it is, with an example that runs and keywords that are shown."""

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import flowos as fo
from flowos.engine import FlowSlice, HeldSlice, Slice
from flowos.feeder import Stats
from flowos.kernels import Kernel
from flowos.operations.measure import Result
from flowos.solver import Info, SetupSummary

PUBLIC = {name: getattr(fo, name) for name in fo.__all__}
HELD: tuple[type, ...] = (
    *(value for value in PUBLIC.values() if inspect.isclass(value)),
    *(FlowSlice, HeldSlice, Slice, Stats, Kernel, Result, Info, SetupSummary),
)
"""The classes of what a person holds."""

OF_THE_ROOMS = {
    fo.Task: "checked_extents fusable",
    fo.Flow: "bind",
    fo.Needs: "choices generic_resources device_counts",
    fo.Peers: "settings",
    Slice: "end map_run ready run_attempt submit_attempt",
    HeldSlice: "begin_anew free_for happened held is_over opened queued",
    Info: "residual_in_words",
    Kernel: "checked_extents fusable",
    Result: "failed interrupted lost",
}
"""What they ask each other, and no person asks."""

FLAGS = doctest.ELLIPSIS
LONGEST = 25


def documented(value: object) -> object:
    """What `help` shows: of a port type, its class."""
    is_own = isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isroutine(value)
    return value if is_own else type(value)


def members(cls: type) -> dict[str, object]:
    """Public methods and properties."""
    hidden = OF_THE_ROOMS.get(cls, "").split()
    return {
        name: value
        for name, value in inspect.getmembers_static(cls)
        if not name.startswith("_")
        and name not in hidden
        and not hasattr(BaseException, name)
        and (inspect.isfunction(value) or hasattr(value, "__get__"))
        and getattr(value, "__doc__", None) is not None
        and not inspect.ismemberdescriptor(value)
        and not inspect.isclass(value)
    }


def docs() -> Iterator[tuple[str, str]]:
    """Where a docstring is, and its text."""
    for name, value in PUBLIC.items():
        yield name, inspect.getdoc(documented(value)) or ""
    for name in ("jpeg", "image"):
        yield f"decode.{name}", inspect.getdoc(getattr(fo.decode, name)) or ""
    for cls in HELD:
        yield cls.__name__, inspect.getdoc(cls) or ""
        for name, member in members(cls).items():
            yield f"{cls.__name__}.{name}", inspect.getdoc(member) or ""


DOCS = dict(docs())
EXAMPLES = {text: name for name, text in DOCS.items() if ">>> " in text}
"""Port types share one."""


@pytest.mark.parametrize("text", EXAMPLES, ids=EXAMPLES.values())
def test_an_example_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"fo": fo, "np": np, "__name__": "__main__"}
    example = doctest.DocTestParser().get_doctest(text, names, EXAMPLES[text], None, 0)
    told: list[str] = []
    found = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=told.append)
    assert found.attempted
    assert not found.failed, "".join(told)


@pytest.mark.parametrize("name", fo.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in DOCS[name]
    assert not DOCS[name].startswith(">>> ")


def test_examples_are_short() -> None:
    lines = {name: text.partition(">>> ")[2].count("\n") for text, name in EXAMPLES.items()}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


@pytest.mark.parametrize("cls", HELD, ids=lambda cls: cls.__name__)
def test_every_method_of_what_is_held_says_what_it_does_and_is_shown(cls: type) -> None:
    used = {word for text in EXAMPLES for word in re.findall(r"\.(\w+)", text.partition(">>> ")[2])}
    for name in members(cls):
        assert DOCS[f"{cls.__name__}.{name}"].strip(), name
        assert name in used, f"no example has .{name}"


CALLED = {
    **{name: value for name, value in PUBLIC.items() if callable(value)},
    **{f"decode.{name}": getattr(fo.decode, name) for name in ("jpeg", "image")},
}
VARIADIC = {"cond", "either", "flow_output", "loop", "measure", "serve_metrics"}
"""These take any number of ports, values, tasks or feeds, each by its own name."""


@pytest.mark.parametrize("name", CALLED)
def test_help_shows_keywords_with_types_and_defaults(name: str) -> None:
    value = CALLED[name]
    if inspect.isclass(value) and issubclass(value, Exception):
        return  # of one text, as all of Python's
    given = inspect.signature(value).parameters.values()
    for each in given:
        is_any = each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        assert not is_any or name in VARIADIC or name in fo.kernels.__all__, each
        assert each.annotation is not each.empty, each
    for each in given:
        assert each.kind is not each.VAR_KEYWORD or name in ("cond", "loop"), each


def test_keywords_that_are_taken_together_have_their_defaults() -> None:
    assert inspect.signature(fo.task).parameters["retries"].default == 0
    assert inspect.signature(fo.solve).parameters["precision"].default == "auto"
    assert inspect.signature(fo.Solver).parameters["block"].default is None
    assert inspect.signature(fo.attach).parameters["fuse"].default == "chains"
    assert inspect.signature(fo.decode.jpeg).parameters["crop"].default == "centre"
    assert inspect.signature(fo.Feed).parameters["batch_size"].kind.name == "KEYWORD_ONLY"
