"""Renders the whole report as JSON, raw samples included, and reads it back.

A number that JSON lacks (an unbounded interval, no ratio) is null; it is read back as nan.
"""

import json as text_of
from typing import Any

from flowos.model import UsageError, from_plain, schema_of, to_json
from flowos.report._report import Report

FORMAT = "flowos-report"
SCHEMA = 3
_READ = (1, 2, SCHEMA)
"""Schema 2 had other names of some fields, schema 1 "nan", "inf" and "-inf" instead of null."""


def json(book: Report) -> str:
    """SI base units; the schema number changes when readers must change."""
    whole = {"format": FORMAT, "schema": SCHEMA, "book": to_json(book)}
    return text_of.dumps(whole, allow_nan=False, separators=(",", ":")) + "\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the output of `json`."""
    book = schema_of(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "FlowOS report",
        "description": "SI base units. null is a number that is not known or not finite.",
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "schema": {"const": SCHEMA},
            "book": {"$ref": book["$ref"]},
        },
        "required": ["format", "schema", "book"],
        "$defs": book["$defs"],
    }


def read_json(text: str) -> Report:
    """Read the output of `json`. Raises UsageError for other texts and for newer schemas."""
    try:
        whole = text_of.loads(text)
    except ValueError as error:
        raise UsageError(f"this is no FlowOS report: {error}") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise UsageError(f"this is no FlowOS report: it does not say 'format': '{FORMAT}'")
    if whole.get("schema") not in _READ:
        raise UsageError(
            f"this report has schema {whole.get('schema')!r}, this FlowOS reads {SCHEMA}: "
            "upgrade FlowOS"
        )
    try:
        return from_plain(Report, whole.get("book"))
    except ValueError as error:
        raise UsageError(f"this report cannot be read: {error}") from None
