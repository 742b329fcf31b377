"""`flowos run flow.py`: runs a flow defined in a Python file, with inputs from the command line.

A flow file is a Python file that defines a flow at module level: under the name `flow`, or as the
only one. It is imported under its own name, so that code below `if __name__ == "__main__":` does
not run.
"""

import importlib.util
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowos._dataclasses import dataclass
from flowos.engine import RemoteTraceback
from flowos.model import (
    Choice,
    Complex,
    Composite,
    Environment,
    File,
    Flow,
    FlowosError,
    Needs,
    PortSpec,
    PortType,
    TaskFailed,
    UsageError,
    any_,
    bool_,
    brief_repr,
    bytes_,
    did_you_mean,
    str_,
)
from flowos.operations._from_json import from_json
from flowos.operations._kept_files import keep
from flowos.plan import tasks_within

_LISTS = "expected numbers in nested lists of equal lengths as JSON, or a .npy file"
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class RanFlow:
    """Outputs by name, of those that are published the path. failed: why others are not.

    A file that is not published is where it stays; without one if there is no room for it.
    """

    outputs: Mapping[str, object]
    failed: tuple[str, ...] = ()


def run_flow(
    flow: Flow,
    given: Sequence[str],
    env: Environment,
    places: Mapping[str, Path] | None = None,
    *,
    on_note: Callable[[str], None],
    **how: Any,
) -> RanFlow:
    """Run the flow once on a slice of this node, or of a pool.

    given: NAME=VALUE for each input. places: of outputs that are published. on_note: called with
    each of the slice's notes, with those that are there before the run at once. Raises UsageError
    for an invalid value, and what `fo.slice` and `run` raise.
    """
    from flowos.operations._slice import slice_

    values = read_values(flow, given)
    with slice_(flow, env, **how) as on:
        for note in (said := on.notes):
            on_note(note)
        results = on.run(**values)
        kinds = {port.name: port.type for port in flow.task.outputs}
        outputs = dict(zip(kinds, results, strict=True))
        failed = _publish(outputs, kinds, places or {})
    for note in on.notes:
        if note not in said:
            on_note(note)
    return RanFlow(outputs=outputs, failed=failed)


def _publish(
    outputs: dict[str, object], kinds: Mapping[str, PortType], places: Mapping[str, Path]
) -> tuple[str, ...]:
    """Why some are not published. outputs: of the others it is the path then.

    A file without a place is kept in a temporary folder.
    """
    from flowos.operations.publish import publish

    failed = []
    for name, place in places.items():
        try:
            publish(outputs[name], place)
        except FlowosError as error:  # no reason to lose what the run has made
            failed.append(f"{error}{keep(outputs, name, kinds[name], unpublished=True)}")
        else:
            outputs[name] = place
    for name in [name for name in outputs if name not in places]:
        why = keep(outputs, name, kinds[name])
        if name not in outputs:
            failed.append(f"output {name}{why}")
    return tuple(failed)


def read_places(flow: Flow, given: Sequence[str]) -> dict[str, Path]:
    """Where outputs are to be published. Raises UsageError if one is no output of the flow, or
    cannot be written there."""
    from flowos.operations.publish import place_complaint

    kinds = {port.name: port.type for port in flow.task.outputs}
    places: dict[str, Path] = {}
    for word in given:
        name, _, path = word.partition("=")
        if not path:
            raise UsageError(f"--out {word}: expected OUTPUT=PATH; outputs: {', '.join(kinds)}")
        if name not in kinds:
            hint = did_you_mean(name, kinds) or f"; outputs: {', '.join(kinds)}"
            raise UsageError(f"--out {word}: no output {name!r}{hint}")
        if complaint := place_complaint(kinds[name], Path(path)):
            raise UsageError(f"--out {word}: {complaint}")
        if name in places:
            raise UsageError(f"--out {word}: {name} is given twice; one place is for one output")
        real = os.path.realpath(path)
        for other, place in places.items():
            if os.path.realpath(place) == real:
                raise UsageError(f"--out {word}: {other} is written there too; use another name")
        places[name] = Path(path)
    return places


def file_and_name(word: str) -> tuple[str, str]:
    """Of FILE.py:NAME; "" without a name. A folder may have a colon in its name."""
    file, end, name = word.rpartition(".py:")
    return (f"{file}.py", name) if end else (word, "")


def load_flow(word: str) -> Flow:
    """The flow of FILE or FILE:NAME. Raises UsageError if the file has none, or several."""
    file, name = file_and_name(word)
    path = Path(file).absolute()
    if not path.is_file():
        raise UsageError(f"no such flow file: there is nothing at {path}")
    module = _imported(path)
    flows = {n: v for n, v in vars(module).items() if isinstance(v, Flow) and n[:1] != "_"}
    if name:
        return _named(flows, name, file)
    if "flow" in flows:
        return flows["flow"]
    if len({id(flow) for flow in flows.values()}) == 1:
        return next(iter(flows.values()))
    if not flows:
        raise UsageError(
            f"{file} makes no flow: it must leave one in its module, as in "
            "flow = fo.flow_output(...)"
        )
    first = next(iter(flows))
    raise UsageError(
        f"{file} makes several flows ({', '.join(flows)}); name one, as in {file}:{first}"
    )


def read_values(flow: Flow, given: Sequence[str], *, lacking: bool = False) -> dict[str, object]:
    """The inputs' values, read by the types of their ports. Raises UsageError for the first invalid
    one, and unless `lacking` for inputs that have none."""
    ports = {p.spec.name: p.spec for p in flow.inputs}
    takes = ", ".join(f"{p.name}: {p.type}" for p in ports.values()) or "none"
    named = {word.partition("=")[0] for word in given}
    values: dict[str, object] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r}: expected NAME=VALUE; the flow's inputs are {takes}")
        if name not in ports:
            hint = (
                did_you_mean(name, [each for each in ports if each not in named])
                or f"; its inputs are {takes}"
            )
            raise UsageError(f"the flow has no input {name!r}{hint}")
        if name in values:
            raise UsageError(f"{word!r}: input {name!r} is given twice")
        values[name] = _read(ports[name], text)
    missing = [name for name in ports if name not in values]
    if missing and not lacking:
        raise UsageError(f"no value for {', '.join(missing)}; the flow's inputs are {takes}")
    return values


def own_traceback(error: TaskFailed) -> str:
    """The traceback of a task's exception, without frames of FlowOS; "" if it has none."""
    cause = error.__cause__
    if cause is None or isinstance(cause, FlowosError):
        return ""
    if isinstance(cause.__cause__, RemoteTraceback):
        return str(cause.__cause__.args[0])
    return "".join(traceback.format_exception(cause))


def plain_flow(flow: Flow) -> dict[str, object]:
    """A flow's inputs, tasks and outputs, for JSON."""
    return {
        "name": flow.name,
        "inputs": {p.spec.name: str(p.spec.type) for p in flow.inputs},
        "tasks": [call.task.name for call in flow.calls],
        "needs": needs_words(flow),
        "outputs": {p.name: str(p.type) for p in flow.task.outputs},
    }


def needs_words(flow: Flow) -> dict[str, str]:
    """What its tasks need, of those that need more than a core."""
    return {task.name: task.needs.words for task in tasks_within(flow) if task.needs != Needs()}


def _imported(path: Path) -> Any:
    name = path.stem if path.stem.isidentifier() else "flow_file"
    if name in sys.modules or name in sys.stdlib_module_names:
        name = f"flow_file_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except FlowosError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TaskFailed(
            f"{path}{_line_of(error, path)}: {type(error).__name__}: {error}"
        ) from error
    return module


def _line_of(error: BaseException, path: Path) -> str:
    """The line in the file, as :LINE."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""


def _named(flows: Mapping[str, Flow], name: str, file: str) -> Flow:
    if name not in flows:
        known = f"its flows are {', '.join(flows)}" if flows else "it makes no flow"
        raise UsageError(f"{file} has no flow {name!r}; {known}")
    return flows[name]


def _read(port: PortSpec, text: str) -> object:
    try:
        value = _parsed(port, text)
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise UsageError(f"input {port}: {brief_repr(text)}: {error}") from error
    complaint = port.type.check(value)
    if complaint:
        raise UsageError(f"input {port.name!r}: {complaint}")
    return value


def _parsed(port: PortSpec, text: str) -> object:
    """The text as a value of the port's type; as it is if it cannot be, for the port to refuse."""
    kind = port.type
    if isinstance(kind, (Complex, Composite, Choice)):
        return _of_parts(kind, text)
    if kind in (str_, File):
        return text
    if kind == bytes_:
        return text.encode()
    if kind == bool_:
        return _TRUTHS.get(text.lower(), text)
    if kind.name.startswith(("int", "uint")):
        return int(text, 0) if _is_number(text, int) else text
    if kind.name.startswith("float"):
        return _number(text) if _is_number(text, float) else text
    if kind == any_:
        return _json_or_text(text)
    return _array(port, text)


def _of_parts(kind: PortType, text: str) -> object:
    """From JSON, or the text itself if that fits, as for `str | None`."""
    if isinstance(kind, Complex):
        return _complex_or_text(text)
    given = _json_or_text(text)
    made = from_json(kind, given)
    if kind.check(made) is None:
        return made
    for other in (text, _complex_or_text(text)):
        if kind.check(other) is None:
            return other
    return made


def _complex_or_text(text: str) -> object:
    try:
        return complex(text.replace(" ", ""))
    except ValueError:
        return text


class _NotHeldError(ValueError):
    """Numbers that do not fit an array's type."""


def _refuse_changed(given: Any, made: Any) -> None:
    """Raises _NotHeldError if NumPy rounded to integers, made booleans of other numbers, or
    overflowed to infinity, all of which it does silently."""
    if given.size == 0 or given.dtype.kind not in "biufc":
        return
    fits = {"b": "b", "i": "iu", "u": "iu"}.get(made.dtype.kind, "iufc")
    if given.dtype.kind not in fits:
        raise _NotHeldError(f"these are {given.dtype.name}, the port takes {made.dtype.name}")
    if made.dtype.kind == "f" and (abs(made) == math.inf).sum() > (abs(given) == math.inf).sum():
        raise _NotHeldError(f"a number is too large for {made.dtype.name}")


def _is_number(text: str, kind: type) -> bool:
    try:
        kind(text, 0) if kind is int else kind(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float:
    """Raises ValueError for a number that would overflow or underflow as float64."""
    number = float(text)
    mantissa = text.lower().partition("e")[0]
    if math.isinf(number) and any(map(str.isdigit, text)):
        raise ValueError("too large for a float64")
    if number == 0 and any(digit in mantissa for digit in "123456789"):
        raise ValueError("too small for a float64")
    return number


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text, parse_float=_number)
    except json.JSONDecodeError:
        return text


def _array(port: PortSpec, text: str) -> object:
    """From a .npy file, or nested lists of numbers as JSON. Raises ValueError for anything else."""
    import numpy as np

    if text.endswith(".npy"):
        return _loaded(text)
    try:
        lists = json.loads(text, parse_float=_number)
    except json.JSONDecodeError as error:
        raise ValueError(_LISTS) from error
    try:
        with np.errstate(over="ignore"):  # refused below
            made = np.array(lists, dtype=getattr(port.type, "dtype", None))
        _refuse_changed(np.array(lists), made)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    except (TypeError, ValueError) as error:
        raise ValueError(str(error) if isinstance(error, _NotHeldError) else _LISTS) from error
    is_number = made.ndim == 0 and getattr(port.type, "shape", None) != ()
    if is_number or made.dtype.kind not in "biufc":
        raise ValueError(_LISTS)
    return made


def _loaded(file: str) -> object:
    """Raises OSError if it cannot be opened, ValueError for whatever else NumPy raises."""
    import numpy as np

    try:
        return np.load(file, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"it cannot be read as .npy ({error})") from error
