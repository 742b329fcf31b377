"""Pages of what is kept, report.json and the tables of the store, from the code that writes it."""

import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from _escaped import escaped_but_code
from _fields import FIELDS

from flowos.model import Process, Run, Sample, SliceRecord, schema_of
from flowos.report import json_schema
from flowos.store import ImageRecord, open_store

Schema = Mapping[str, Any]

BODIES = {
    "flowos_runs": Run,
    "flowos_samples": Sample,
    "flowos_processes": Process,
    "flowos_slices": SliceRecord,
    "flowos_image_origins": ImageRecord,
}
COLUMNS = {
    "number": "in the order of writing",
    "id": "as commands take it",
    "started": "ISO 8601 in UTC",
    "host": "name of the machine",
    "body": "JSON",
    "run": "id of the run",
    "probe": "such as stream",
    "metric": "such as triad",
    "process": "id of the program",
    "asked": "when; seconds since 1970",
    "digest": "SHA-256 of the image",
}
UNITS = {
    "_bytes_per_second": "byte/s",
    "transfers_per_second": "1/s",
    "_bytes": "byte",
    "_seconds": "s",
    "seconds": "s",
    "_hz": "Hz",
    "joules": "J",
    "watts": "W",
    "celsius": "°C",
}
_ITEM = re.compile(r"(?:^|(?<=\. ))(?:`?\w+`?, )*`?\w+`?: ")
_NAMES = (
    r"(?:^|(?<=[.;)?,] ))(?:\w+, )*{}(?:, \w+)*: (.+?)(?=(?:[.;?] |\) )(?:\w+(?:, \w+)*: |`)|$)"
)


def report_page() -> Iterator[str]:
    whole = json_schema()
    yield from (
        "# report.json",
        "",
        "Everything of a run: what `flowos measure` and `flowos report` write.",
        f"`format` is `{whole['properties']['format']['const']}`, `schema` is "
        f"{whole['properties']['schema']['const']}, `report` is a [Report](#report). "
        "Units are SI base units; null is a number that is not known or not finite. `flowos report",
        "--schema` prints this as a JSON Schema, by which every report is valid.",
        "",
    )
    yield from _classes(whole["$defs"], first="Report")


def store_page() -> Iterator[str]:
    yield from (
        "# The store",
        "",
        "`$XDG_DATA_HOME/flowos/flowos.db` (SQLite, `~/.local/share` by default), or the database",
        "that `--store` names. An older one is brought to this schema when it is opened; a newer",
        "one is refused. Columns next to `body` serve queries only; a stored sample never changes.",
        "",
    )
    for name, columns in _tables().items():
        yield from _table(name, columns)
    yield from (
        "`flowos_schema` has the number of this schema, `flowos_images` names of images from",
        "before they became links in the library.",
        "",
    )
    known = json_schema()["$defs"]
    found = {k: v for noun in BODIES.values() for k, v in schema_of(noun)["$defs"].items()}
    yield from _classes({k: v for k, v in found.items() if k not in known})


def _tables() -> dict[str, tuple[tuple[str, str, bool], ...]]:
    """Name, type and uniqueness of each column of a new store, by table."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "new.db")
        open_store(str(file)).close()
        with closing(sqlite3.connect(file)) as database:
            return {name: tuple(_columns(database, name)) for name in BODIES}


def _columns(database: sqlite3.Connection, table: str) -> Iterator[tuple[str, str, bool]]:
    unique = {
        column
        for _, index, is_unique, *_ in database.execute(f"PRAGMA index_list({table})")
        for _, _, column in database.execute(f"PRAGMA index_info({index})")
        if is_unique
    }
    for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})"):
        yield name, kind, name in unique


def _table(name: str, columns: Iterable[tuple[str, str, bool]]) -> Iterator[str]:
    noun = BODIES[name].__name__
    page = "report-json.md" if noun in json_schema()["$defs"] else ""
    yield from (f"## {name}", "", "| column | type | is |", "| --- | --- | --- |")
    for column, kind, unique in columns:
        more = f" of a [{noun}]({page}#{noun.lower()})" if column == "body" else ""
        more += ", unique" * unique
        yield f"| `{column}` | {kind} | {COLUMNS[column]}{more} |"
    yield ""


def _classes(found: Mapping[str, Schema], first: str = "") -> Iterator[str]:
    for name in sorted(found, key=lambda name: (name != first, name)):
        about = " ".join(found[name]["description"].split())
        yield from (f"## {name}", "", escaped_but_code(_lead(about)), "")
        yield from ("| field | type | unit | is |", "| --- | --- | --- | --- |")
        for field, said in found[name]["properties"].items():
            meaning = escaped_but_code(meaning_of(name, field, said, about))
            yield f"| `{field}` | {_type(said, found)} | {unit_of(field)} | {meaning} |"
        yield ""


def _lead(about: str) -> str:
    """Without what is said of single fields."""
    return _ITEM.split(about, maxsplit=1)[0]


def meaning_of(noun: str, field: str, said: Schema, about: str) -> str:
    """From the field, its class, or FIELDS. Raises KeyError if none says it."""
    if "description" in said:
        return str(said["description"])
    if f"{noun}.{field}" in FIELDS:
        return FIELDS[f"{noun}.{field}"]
    named = re.search(_NAMES.format(field), about)
    if named:
        return named[1].rstrip(".")
    return FIELDS[field]


def unit_of(field: str) -> str:
    return next((unit for end, unit in UNITS.items() if field.endswith(end)), "")


def _type(said: Schema, found: Iterable[str]) -> str:
    if "$ref" in said:
        name = said["$ref"].split("/")[-1]
        return f"[{name}](#{name.lower()})" if name in found else name
    if "anyOf" in said:
        return " or ".join(_type(each, found) for each in said["anyOf"])
    if "enum" in said:
        return ", ".join(f"`{each}`" if each != "" else "empty" for each in said["enum"])
    if "prefixItems" in said:
        return f"[{', '.join(_type(each, found) for each in said['prefixItems'])}]"
    if "items" in said:
        return f"list of {_type(said['items'], found)}"
    kinds = said["type"]
    return kinds if isinstance(kinds, str) else " or ".join(kinds)
