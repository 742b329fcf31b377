"""Renders the whole report as JSON, raw samples included, and reads it back.

A number that JSON lacks (an unbounded interval, no ratio) is null; it is read back as nan.
"""

import json as text_of
from collections.abc import Collection
from typing import Any

from flowos.model import UsageError, from_plain, schema_of, to_json
from flowos.report._report import Report

FORMAT = "flowos-report"
SCHEMA = 5
_READ = (1, 2, 3, 4, SCHEMA)
"""Schema 4 has the key "book", 3 lacked fields, 2 had other names of some, 1 has "nan", "inf" and
"-inf" instead of null."""


def json(report: Report) -> str:
    """SI base units; the schema number changes when readers must change."""
    whole = {"format": FORMAT, "schema": SCHEMA, "report": to_json(report)}
    return text_of.dumps(whole, allow_nan=False, separators=(",", ":")) + "\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the output of `json`."""
    report = schema_of(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "FlowOS report",
        "description": "SI base units. null is a number that is not known or not finite.",
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "schema": {"const": SCHEMA},
            "report": {"$ref": report["$ref"]},
        },
        "required": ["format", "schema", "report"],
        "$defs": report["$defs"],
    }


def read_json(text: str) -> Report:
    """Read the output of `json`. Raises UsageError for other texts and for newer schemas."""
    body = body_of(text, "report", FORMAT, _READ, "report", formerly="book")
    try:
        return from_plain(Report, body)
    except ValueError as error:
        raise UsageError(f"this report cannot be read: {error}") from None


def body_of(
    text: str, noun: str, form: str, schemas: Collection[int], key: str, formerly: str = ""
) -> object:
    """What a document of ours has at `key`. Raises UsageError if it is none, or newer than known.

    noun: what it is called. form, schemas: its format and those that can be read, the newest last.
    """
    try:
        whole = text_of.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is no FlowOS {noun}: {error}") from None
    if not isinstance(whole, dict) or whole.get("format") != form:
        raise UsageError(f"this is no FlowOS {noun}: it does not say 'format': '{form}'")
    schema = whole.get("schema")
    if schema not in schemas:
        is_newer = isinstance(schema, int) and schema > max(schemas)
        mend = "upgrade FlowOS" if is_newer else "the file is damaged, write it again"
        known = ", ".join(map(str, schemas))
        raise UsageError(
            f"this {noun} has schema {schema!r:.80}, this FlowOS reads {known}: {mend}"
        )
    return whole.get(key, whole.get(formerly))
