"""Reports are valid by their published schema, and the schema rejects what is no report."""

import json as text_of
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from flowos.report import Report, json, json_schema

from .reports import hostile


def validate(text: str) -> None:
    Draft202012Validator(json_schema()).validate(text_of.loads(text))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json_schema())


def test_every_report_is_what_the_schema_says(small: Report, recorded: Report) -> None:
    for report in (small, recorded, hostile(small)):
        validate(json(report))


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        (("run", "host"), 3),
        (("run", "request", "effort"), "wild"),
        (("measurements", 0, "median"), "inf"),
        (("measurements", 0, "case", "levels"), [["a"]]),
        (("verdicts",), {}),
    ],
)
def test_what_is_no_report_is_refused(small: Report, at: tuple[Any, ...], wrong: object) -> None:
    found = text_of.loads(json(small))
    inner = found["report"]
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = wrong
    with pytest.raises(ValidationError):
        Draft202012Validator(json_schema()).validate(found)
