"""What files, variables and options say of the settings, and where; one over the other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from functools import reduce
from itertools import accumulate
from typing import Any, Literal, get_origin, get_type_hints

from flowos.model._cloud import Cloud
from flowos.model._device import Fpga
from flowos.model._errors import SettingsError
from flowos.model._pool import LOCAL, Pool, Price, StorageTier
from flowos.model._vm_size import VmSize

KeyPath = tuple[str, ...]
"""The keys that lead to a value."""

TABLES: Mapping[str, type] = {"pools": Pool, "cloud": Cloud, "sizes": VmSize, "fpgas": Fpga}
NESTED: Mapping[type, Mapping[str, type]] = {
    Pool: {"price": Price, "shared_tier": StorageTier, "scratch_tier": StorageTier}
}

_SYNTAX = re.compile(r"(?P<what>.*?) \(at (?:line (?P<line>\d+), column \d+|end of document)\)")
_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=")
_PART = re.compile(r"""\s*(?:"[^"]*"|'[^']*'|[^."']+)""")
_PREFIXES = tuple(f"FLOWOS_{top.upper()}_" for top in TABLES)


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """Tables and values. said_at: of each where it is said: FILE:LINE, a variable, an option."""

    raw: Mapping[str, Any]
    said_at: Mapping[KeyPath, str]


@dataclass(frozen=True, slots=True)
class SaidSetting:
    """A value that counts. said_at: "" of a default."""

    key: str
    value: object
    said_at: str


def file_layer(text: str, file: str) -> SettingsLayer:
    """Raises SettingsError for text that is no TOML."""
    import tomllib  # most programs read no settings

    try:
        raw = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise SettingsError(_syntax(str(error), text, file)) from None
    except RecursionError:
        raise SettingsError(f"{file}: values are nested too deeply in each other") from None
    lines = _lines_of_keys(text)
    return SettingsLayer(raw, {path: _at(path, lines, file) for path, _ in _walk(raw)})


def variables_layer(variables: Mapping[str, str], below: SettingsLayer) -> SettingsLayer:
    """FLOWOS_POOLS_HPC_NODES is pools.hpc.nodes, of a table that is there below.

    Raises SettingsError for one that is of two settings.
    """
    found = [(path, name) for name, path in _of_variables(variables, below).items() if path]
    return _layer([(path, _value(path, variables[name]), name) for path, name in found])


def unused_variables(variables: Mapping[str, str], below: SettingsLayer) -> tuple[str, ...]:
    """Those that are named as a setting is, of no table and key that there are.

    Raises SettingsError for one that is of two settings.
    """
    return tuple(name for name, path in _of_variables(variables, below).items() if not path)


def options_layer(given: Sequence[str]) -> SettingsLayer:
    """Words such as `pools.hpc.nodes=4`. Raises SettingsError for others."""
    said = []
    for option in given:
        key, equals, word = option.partition("=")
        path = _parts(key)
        if not equals or not path:
            raise SettingsError(f"--set {option}: expected KEY=VALUE, as pools.local.cores=2")
        said.append((path, _value(path, word), f"--set {option}"))
    return _layer(said)


def merged(layers: Sequence[SettingsLayer]) -> SettingsLayer:
    """Each over those before it, key by key."""
    said_at: dict[KeyPath, str] = {}
    for layer in layers:
        said_at.update(layer.said_at)
    return SettingsLayer(reduce(_over, (layer.raw for layer in layers), {}), said_at)


def said_settings(layer: SettingsLayer, *, defaults: bool = False) -> Iterator[SaidSetting]:
    """The values of a layer. defaults: with those that its tables leave out."""
    for path, value in _walk(layer.raw):
        if not isinstance(value, dict) or not value:
            yield SaidSetting(dotted(path), value, layer.said_at[path])
    if defaults:
        for path, field in _known(layer.raw):
            if path not in layer.said_at:
                yield SaidSetting(dotted(path), field.default, "")


def dotted(keys: KeyPath) -> str:
    """As TOML writes them."""
    return ".".join(key if _BARE.fullmatch(key) else repr(key) for key in keys)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    found = {**below}
    for key, value in above.items():
        under = below.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            value = _over(under, value)
        found[key] = value
    return found


def _layer(said: Sequence[tuple[KeyPath, object, str]]) -> SettingsLayer:
    raw: dict[str, Any] = {}
    said_at: dict[KeyPath, str] = {}
    for path, value, at in said:
        raw = _over(raw, reduce(lambda inner, key: {key: inner}, reversed(path), value))  # type: ignore[arg-type]
        said_at.update(dict.fromkeys(accumulate((key,) for key in path), at))
    return SettingsLayer(raw, said_at)


def _walk(raw: Mapping[str, Any], within: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """All tables and values, outer ones first."""
    for key, value in raw.items():
        yield (*within, key), value
        if isinstance(value, dict):
            yield from _walk(value, (*within, key))


def _of_variables(variables: Mapping[str, str], below: SettingsLayer) -> dict[str, KeyPath]:
    """Variables that are named as settings; () for those of none that is known.

    Raises SettingsError for one that is of two.
    """
    found: dict[str, KeyPath] = {n: () for n in sorted(variables) if n.startswith(_PREFIXES)}
    for path, _ in _known(below.raw) if found else ():
        name = _variable(path)
        if found.get(name):
            both = f"{dotted(found[name])} and of {dotted(path)}"
            raise SettingsError(f"{name}: it is the name of {both}: unset it and use --set")
        if name in found:
            found[name] = path
    return found


def _variable(path: KeyPath) -> str:
    return "_".join(("FLOWOS", *(re.sub(r"\W", "_", key) for key in path))).upper()


def _known(raw: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Field[Any]]]:
    """Every key that tables which are there may have, and those of the pool that always is."""
    with_local = _over({"pools": {LOCAL.name: {}}}, raw)
    for top, noun in TABLES.items():
        tables = with_local.get(top)
        for name in tables if isinstance(tables, dict) else ():
            yield from (((top, name, *path), field) for path, field in keys_of(noun))


def keys_of(noun: Any) -> Iterator[tuple[KeyPath, Field[Any]]]:
    """The keys of a table, with default and description (`doc`)."""
    parts = NESTED.get(noun, {})
    for field in fields(noun):
        if field.name in parts:
            yield from (((field.name, part.name), part) for part in fields(parts[field.name]))
        elif field.name != "name":
            yield (field.name,), field


def _value(path: KeyPath, word: str) -> object:
    """Of a variable or an option: as it is where text is expected, else as TOML has it."""
    import tomllib

    if _takes_text(path):
        return word
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except (ValueError, RecursionError):
        return word  # refused where something else is expected


def _takes_text(path: KeyPath) -> bool:
    noun: Any = TABLES.get(path[0])
    for key in path[2:-1]:
        noun = NESTED.get(noun, {}).get(key)
    hint = get_type_hints(noun).get(path[-1]) if noun else None
    return hint is str or get_origin(hint) is Literal


def _at(path: KeyPath, lines: Mapping[KeyPath, int], file: str) -> str:
    found = [lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines]
    return f"{file}:{found[0]}" if found else file


def _syntax(complaint: str, text: str, file: str) -> str:
    found = _SYNTAX.fullmatch(complaint)
    if found is None:
        return f"{file}: {complaint}"
    line = found["line"] or len(text.splitlines())
    return f"{file}:{line}: {found['what']}"


def _lines_of_keys(text: str) -> dict[KeyPath, int]:
    """First line of each table and key, as far as a line-by-line scan can find it."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _parts(header[1])
            for path in accumulate((part,) for part in table):
                lines.setdefault(path, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in _PART.findall(dotted))
