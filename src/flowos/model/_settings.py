"""Reads `flowos.toml` into frozen data; error messages include the line."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar, get_args

from flowos._dataclasses import Field, dataclass, field, fields
from flowos.model._cloud import Cloud, CloudDriver
from flowos.model._codec import from_plain
from flowos.model._device import Fpga
from flowos.model._errors import SettingsError
from flowos.model._names import did_you_mean
from flowos.model._pool import LOCAL, Pool, PoolKind
from flowos.model._schema import schema_of
from flowos.model._settings_layers import (
    NESTED,
    TABLES,
    SettingsLayer,
    file_layer,
    merged,
)
from flowos.model._vm_size import VmSize

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
    return read_layers((file_layer(text, file),))


def read_layers(layers: Sequence[SettingsLayer]) -> Settings:
    """Of several, each over those before it. Raises SettingsError if one has a mistake."""
    try:
        return _read(merged(layers))
    except SettingsError as error:
        _refuse_alone([each for each in layers if not each.given], str(error))
        raise


def _refuse_alone(files: Sequence[SettingsLayer], complaint: str) -> None:
    """Raises SettingsError if files have the mistake without variables and options too."""
    try:
        _read(merged(files))
    except SettingsError as alone:
        if complaint.startswith(str(alone)):
            raise


def _read(layer: SettingsLayer) -> Settings:
    raw, reader = layer.raw, _Reader(layer)
    reader.refuse_unknown(raw, [f.name for f in fields(Settings)], ())
    reader.refuse_misspelt_pool()
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
    parts = {
        name: part for noun in TABLES.values() for name, part in schema_of(noun)["$defs"].items()
    }
    for noun in TABLES.values():
        del parts[noun.__name__]["properties"]["name"]
    for part in parts.values():
        part["additionalProperties"] = False
        del part["required"]
    top = {
        f.name: {
            "type": "object",
            "additionalProperties": {"$ref": f"#/$defs/{TABLES[f.name].__name__}"},
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
    """Reader of tables that knows where each key is said."""

    def __init__(self, layer: SettingsLayer) -> None:
        self._layer = layer

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
        for key, part in NESTED.get(noun, {}).items():
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
        if key in table and (given := table[key]) not in known:
            said = f"{_short(given)}: one of {', '.join(known)}{did_you_mean(str(given), known)}"
            raise self._layer.mistake((*at, key), said)

    def refuse_no_table(self, raw: Any, at: tuple[str, ...]) -> None:
        if not isinstance(raw, dict):
            raise self._layer.no_table(at, raw)

    def refuse_unknown(
        self, raw: Mapping[str, Any], known: Collection[str], at: tuple[str, ...]
    ) -> None:
        for key in raw:
            if key not in known:
                near = did_you_mean(key, known) or f"; known are {', '.join(known)}"
                raise self._layer.mistake((*at, key), f"no such key{near}")

    def refuse_misspelt_pool(self) -> None:
        """One that an option alone has, without its kind, and with nearly the name of another."""
        pools = self._layer.raw.get("pools", {})
        for name, table in pools.items() if isinstance(pools, dict) else ():
            is_named = name == LOCAL.name or not isinstance(table, dict) or "kind" in table
            if is_named or not self._layer.is_new(("pools", name)):
                continue
            if near := did_you_mean(name, sorted({LOCAL.name, *pools} - {name})):
                raise self._layer.mistake(
                    ("pools", name), f"no such pool{near} A new one needs its kind"
                )

    def _refused(self, complaint: str, at: tuple[str, ...]) -> SettingsError:
        """Converts an error message that starts with a path, or a part of it."""
        where, _, what = complaint.partition(": ")
        inside = where.removeprefix(".".join(at)).removeprefix(".")
        path = tuple(key.partition("[")[0] for key in inside.split(".")) if inside else ()
        of_its_type = where.startswith(".".join(at))  # else it was with the others of its table
        refused = self._layer.mistake if of_its_type else self._layer.mistake_together
        return refused((*at, *path), what)


def _short(value: object) -> str:
    return f"{value!r:.80}"
