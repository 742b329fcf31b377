"""A baseline as a JSON file, a line for each number, and back."""

import json
import math
from collections.abc import Collection, Iterator

from flowos.model import Baseline, BaselineNumber, UsageError, from_plain, to_plain
from flowos.report._json import body_of
from flowos.report._words import case_text

FORMAT = "flowos-baseline"
SCHEMA = 1


def baseline_json(baseline: Baseline) -> str:
    """SI base units; the schema number changes when readers must change."""
    plain = to_plain(baseline)
    numbers = ",\n".join(f"   {json.dumps(number)}" for number in plain.pop("numbers"))
    head = [f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in plain.items()]
    return (
        f'{{\n "format": "{FORMAT}",\n "schema": {SCHEMA},\n "baseline": {{\n'
        f'{"".join(head)}  "numbers": [\n{numbers}\n  ]\n }}\n}}\n'
    )


def read_baseline_json(text: str, *, asked: Collection[str]) -> Baseline:
    """Read a baseline, and check it. Raises UsageError for what it cannot be.

    asked: names of the probes that measure commands of the user.
    """
    body = body_of(text, "baseline", FORMAT, (SCHEMA,), "baseline")
    try:
        found = from_plain(Baseline, body)
    except ValueError as error:
        raise UsageError(f"this baseline cannot be read: {error}") from None
    for complaint in _complaints(found, asked):
        raise UsageError(f"this baseline cannot be used: {complaint}")
    return found


def _complaints(baseline: Baseline, asked: Collection[str]) -> Iterator[str]:
    if not baseline.numbers:
        yield "it has no numbers"
    if baseline.nodes < 1:
        yield f"nodes {baseline.nodes}: expected a number above 0"
    if bool(baseline.commands) == {*asked}.isdisjoint(baseline.probes):
        names = " or ".join(map(repr, asked))
        yield f"commands: expected where the probes have {names}, and only there"
    if not 0 < baseline.error < 1:
        yield f"error {baseline.error}: expected a share between 0 and 1"
    if not 0 < baseline.max_tolerance < math.inf:
        yield f"max_tolerance {baseline.max_tolerance}: expected a share above 0"
    yield from _complaints_of_numbers(baseline)


def _complaints_of_numbers(baseline: Baseline) -> Iterator[str]:
    seen: set[tuple[object, ...]] = set()
    for at, number in enumerate(baseline.numbers):
        where = f"numbers[{at}] ({_name(number)})"
        for name, value in (("median", number.median), ("tolerance", number.tolerance)):
            if not 0 < value < math.inf:
                yield f"{where}: {name} {value}: expected a number above 0"
        if number.probe not in baseline.probes:
            yield f"{where}: {number.probe!r} is none of the probes"
        if (key := (number.case, number.metric, number.unit)) in seen:
            yield f"{where}: it is there twice"
        seen.add(key)


def _name(number: BaselineNumber) -> str:
    return f"{case_text(number.case)}: {number.metric}"
