"""Reads `flowos.toml` into frozen data; error messages include the line."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from itertools import accumulate
from typing import Any, TypeVar, get_args

from flowos.model._cloud import Cloud, CloudDriver
from flowos.model._codec import from_plain
from flowos.model._device import Fpga
from flowos.model._errors import SettingsError
from flowos.model._pool import LOCAL, Pool, PoolKind, Price, StorageTier
from flowos.model._schema import schema_of
from flowos.model._vm_size import VmSize

_SYNTAX = re.compile(r"(?P<what>.*?) \(at (?:line (?P<line>\d+), column \d+|end of document)\)")
_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=")
_PART = re.compile(r"""\s*(?:"[^"]*"|'[^']*'|[^."']+)""")
_NESTED: Mapping[type, Mapping[str, type]] = {
    Pool: {"price": Price, "shared_tier": StorageTier, "scratch_tier": StorageTier}
}
_Kind = tuple[str, tuple[str, ...]]
_Noun = TypeVar("_Noun", Pool, Cloud, VmSize, Fpga)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of `flowos.toml`. pools: those of the file, plus `local` if it is not among them."""

    pools: tuple[Pool, ...] = field(
        default=(LOCAL,), metadata={"doc": "[pools.NAME]: where nodes come from"}
    )
    cloud: tuple[Cloud, ...] = field(
        default=(),
        metadata={"doc": "[cloud.NAME]: where the machines of Slurm's cloud nodes come from"},
    )
    sizes: tuple[VmSize, ...] = field(
        default=(),
        metadata={"doc": "[sizes.NAME]: machines that the catalogue lacks, or has wrong"},
    )
    fpgas: tuple[Fpga, ...] = field(
        default=(),
        metadata={"doc": "[fpgas.NAME]: FPGAs of this machine, and how they are reached"},
    )


def read_settings(text: str, file: str) -> Settings:
    """Raises SettingsError for the first mistake: file, line, key, and the nearest name."""
    import tomllib  # most programs read no settings

    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_syntax(str(error), text, file)) from None
    reader = _Reader(text, file)
    reader.refuse_unknown(raw, [f.name for f in fields(Settings)], ())
    pools = reader.tables(raw, "pools", Pool, ("kind", get_args(PoolKind)))
    clouds = reader.tables(raw, "cloud", Cloud, ("driver", get_args(CloudDriver)))
    sizes = reader.tables(raw, "sizes", VmSize)
    fpgas = reader.tables(raw, "fpgas", Fpga)
    own = () if LOCAL.name in raw.get("pools", {}) else (LOCAL,)
    return Settings(
        pools=(*own, *pools), cloud=tuple(clouds), sizes=tuple(sizes), fpgas=tuple(fpgas)
    )


def pool_fields() -> tuple[Field[Any], ...]:
    """Keys that may appear below [pools.NAME], with default and description (`doc`)."""
    return _keys(Pool)


def cloud_fields() -> tuple[Field[Any], ...]:
    """Keys that may appear below [cloud.NAME]."""
    return _keys(Cloud)


def size_fields() -> tuple[Field[Any], ...]:
    """Keys that may appear below [sizes.NAME]."""
    return _keys(VmSize)


def fpga_fields() -> tuple[Field[Any], ...]:
    """Keys that may appear below [fpgas.NAME]."""
    return _keys(Fpga)


def _keys(noun: Any) -> tuple[Field[Any], ...]:
    return tuple(f for f in fields(noun) if f.name != "name")


def settings_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of flowos.toml."""
    nouns = {"pools": Pool, "cloud": Cloud, "sizes": VmSize, "fpgas": Fpga}
    parts = {
        name: part for noun in nouns.values() for name, part in schema_of(noun)["$defs"].items()
    }
    for noun in nouns.values():
        del parts[noun.__name__]["properties"]["name"]
    for part in parts.values():
        part["additionalProperties"] = False
        del part["required"]
    top = {
        f.name: {
            "type": "object",
            "additionalProperties": {"$ref": f"#/$defs/{nouns[f.name].__name__}"},
            "description": f.metadata["doc"],
        }
        for f in fields(Settings)
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": top,
        "$defs": parts,
    }


class _Reader:
    """Reader of one file that knows the line of each key."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = _lines_of_keys(text)

    def tables(
        self, raw: Mapping[str, Any], top: str, noun: type[_Noun], kind: _Kind | None = None
    ) -> list[_Noun]:
        """What is below [TOP.NAME]. kind: a key, and the words that it may have."""
        tables = raw.get(top, {})
        self.refuse_no_table(tables, (top,))
        return [self._table((top, name), table, noun, kind) for name, table in tables.items()]

    def _table(
        self, at: tuple[str, str], table: Any, noun: type[_Noun], kind: _Kind | None
    ) -> _Noun:
        self.refuse_no_table(table, at)
        self.refuse_unknown(table, [f.name for f in _keys(noun)], at)
        for key, part in _NESTED.get(noun, {}).items():
            if key in table:
                self.refuse_no_table(table[key], (*at, key))
                self.refuse_unknown(table[key], [f.name for f in fields(part)], (*at, key))
        if kind is not None:
            self._refuse_kind(at, table, *kind)
        try:
            return from_plain(noun, {"name": at[1], **table}, ".".join(at))
        except ValueError as error:
            raise self._refused(str(error), at) from None

    def _refuse_kind(
        self, at: tuple[str, str], table: Mapping[str, Any], key: str, known: tuple[str, ...]
    ) -> None:
        given = table.get(key, known[0])
        if given not in known:
            said = f"{_short(given)}: one of {', '.join(known)}{_near(given, known)}"
            raise self._wrong((*at, key), said)

    def refuse_no_table(self, raw: Any, at: tuple[str, ...]) -> None:
        if not isinstance(raw, dict):
            raise self._wrong(at, f"{_short(raw)}: a table is expected, as [{_dotted(at)}]")

    def refuse_unknown(
        self, raw: Mapping[str, Any], known: Collection[str], at: tuple[str, ...]
    ) -> None:
        for key in raw:
            if key not in known:
                near = _near(key, known) or f"; known are {', '.join(known)}"
                raise self._wrong((*at, key), f"no such key{near}")

    def _refused(self, complaint: str, at: tuple[str, ...]) -> SettingsError:
        """Converts an error message that starts with a path, or a part of it."""
        where, _, what = complaint.partition(": ")
        inside = where.removeprefix(".".join(at)).removeprefix(".")
        path = tuple(key.partition("[")[0] for key in inside.split(".")) if inside else ()
        return self._wrong((*at, *path), what)

    def _wrong(self, at: tuple[str, ...], what: str) -> SettingsError:
        found = [self._lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in self._lines]
        line = f":{found[0]}" if found else ""
        return SettingsError(f"{self._file}{line}: {_dotted(at)}: {what}")


def _dotted(keys: tuple[str, ...]) -> str:
    """As TOML writes them."""
    return ".".join(key if _BARE.fullmatch(key) else repr(key) for key in keys)


def _syntax(complaint: str, text: str, file: str) -> str:
    found = _SYNTAX.fullmatch(complaint)
    if found is None:
        return f"{file}: {complaint}"
    line = found["line"] or len(text.splitlines())
    return f"{file}:{line}: {found['what']}"


def _lines_of_keys(text: str) -> dict[tuple[str, ...], int]:
    """First line of each table and key, as far as a line-by-line scan can find it."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _parts(header[1])
            for path in accumulate((part,) for part in table):
                lines.setdefault(path, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in _PART.findall(dotted))


def _near(given: object, known: Collection[str]) -> str:
    found = difflib.get_close_matches(str(given), known, 1)
    return "".join(f"; did you mean {name!r}?" for name in found)


def _short(value: object) -> str:
    return f"{value!r:.80}"
