"""What files, variables and options say of the settings, and where; one over the other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate, groupby
from typing import Any, Literal, get_origin, get_type_hints

from flowos._dataclasses import Field, dataclass, fields
from flowos.model._cloud import Cloud
from flowos.model._device import Fpga
from flowos.model._errors import SettingsError
from flowos.model._names import did_you_mean
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
    """Tables and values. said_at: of each where it is said: FILE:LINE, a variable, an option.

    given: values that variables and options say.
    """

    raw: Mapping[str, Any]
    said_at: Mapping[KeyPath, str]
    given: frozenset[KeyPath] = frozenset()

    def mistake(self, at: KeyPath, what: str) -> SettingsError:
        """That this key cannot be, with the place where it, or the table that lacks it, is said."""
        return SettingsError(f"{self._place_of(at)}: {dotted(at)}: {what}")

    def mistake_together(
        self, at: KeyPath, what: str, keys: frozenset[str] = frozenset()
    ) -> SettingsError:
        """As `mistake`, of a key that cannot be with others of its table: what variables and
        options say of those is named too. keys: which these are; all without."""
        beside = (path for path in self.said_at if path in self.given and path[:2] == at[:2])
        said = {self.said_at[path] for path in beside if not keys or keys & {*path[2:]}}
        also = ", ".join(sorted(said - {self._place_of(at)}))
        return self.mistake(at, what + f" (with {also})" * bool(also))

    def is_new(self, table: KeyPath) -> bool:
        """Whether an option alone says that there is this table."""
        return self.said_at[table] in {self.said_at[path] for path in self.given}

    def _place_of(self, at: KeyPath) -> str:
        nearest = max((path for path in self.said_at if at[: len(path)] == path), key=len)
        return self.said_at[nearest]

    def no_table(self, at: KeyPath, found: object) -> SettingsError:
        """That this is said where a table is expected."""
        return self.mistake(at, f"{found!r:.80}: a table is expected, as [{dotted(at)}]")

    def refuse_against(self, below: "SettingsLayer") -> None:
        """Raises SettingsError where one has a value and the other a table, for the wrong one."""
        under = dict(_walk(below.raw))
        for path, value in _walk(self.raw):
            is_table = isinstance(value, dict)
            if path not in under or is_table == isinstance(under[path], dict):
                continue
            if _takes_table(path):
                raise below.no_table(path, under[path]) if is_table else self.no_table(path, value)
            has, other = (self, below) if is_table else (below, self)
            there = other._place_of(path)
            raise has.mistake(path, f"a table here, and a value by {there}: leave one of them out")


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

    Raises SettingsError for one that is of two settings, or whose key is misspelt.
    """
    of_all = _of_variables(variables, below)
    for name in (name for name, path in of_all.items() if not path):
        _refuse_misspelt(name, below)
    found = [(path, name) for name, path in of_all.items() if path]
    return _layer([(path, _value(path, variables[name]), name) for path, name in found])


def unused_variables(variables: Mapping[str, str], below: SettingsLayer) -> tuple[str, ...]:
    """Those that are named as a setting is, of no table and key that there are.

    Raises SettingsError for one that is of two settings.
    """
    return tuple(name for name, path in _of_variables(variables, below).items() if not path)


def options_layer(given: Sequence[str]) -> SettingsLayer:
    """Words such as `pools.hpc.nodes=4`. Raises SettingsError for others, and for those of which
    one makes a table of what another gives a value."""
    said = []
    for option in given:
        key, equals, word = option.partition("=")
        at = f"--set {option or repr(option)}"
        if not equals or not _is_dotted(key):
            raise SettingsError(f"{at}: expected KEY=VALUE, as pools.local.cores=2")
        path = _parts(key)
        said.append((path, _value(path, word), at))
    return _layer(said)


def merged(layers: Sequence[SettingsLayer]) -> SettingsLayer:
    """Each over those before it, key by key. Raises SettingsError where one has a value and another
    a table."""
    return reduce(_laid_over, layers, SettingsLayer({}, {}))


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


def _laid_over(below: SettingsLayer, above: SettingsLayer) -> SettingsLayer:
    """A table of both is said where it was first."""
    above.refuse_against(below)
    both = _tables(below.raw) & _tables(above.raw)
    anew = {path: at for path, at in above.said_at.items() if path not in both}
    raw = _over(below.raw, above.raw)
    return SettingsLayer(raw, {**below.said_at, **anew}, below.given | above.given - both)


def _tables(raw: Mapping[str, Any]) -> set[KeyPath]:
    return {path for path, value in _walk(raw) if isinstance(value, dict)}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    found = {**below}
    for key, value in above.items():
        under = below.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            value = _over(under, value)
        found[key] = value
    return found


def _layer(said: Sequence[tuple[KeyPath, object, str]]) -> SettingsLayer:
    """The last that says a key or a table counts."""
    whole = SettingsLayer({}, {})
    for path, value, at in said:
        raw: Any = reduce(lambda inner, key: {key: inner}, reversed(path), value)
        paths = [each for each, _ in _walk(raw)]
        one = SettingsLayer(raw, dict.fromkeys(paths, at), frozenset(paths[len(path) - 1 :]))
        one.refuse_against(whole)
        whole = SettingsLayer(
            _over(whole.raw, raw), {**whole.said_at, **one.said_at}, whole.given | one.given
        )
    return whole


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


def _refuse_misspelt(name: str, below: SettingsLayer) -> None:
    """Raises SettingsError for a variable of a table that is there, with nearly one of its keys."""
    for table, keys in groupby((path for path, _ in _known(below.raw)), lambda path: path[:2]):
        start = f"{_variable(table)}_"
        given = name.removeprefix(start)
        likely = [key for path in keys if (key := _key_of(path)).count("_") == given.count("_")]
        if given != name and (near := did_you_mean(given, likely)):
            raise SettingsError(f"{name}: {dotted(table)} has no key {given}{near}")


def _key_of(path: KeyPath) -> str:
    return "_".join(path[2:]).upper()


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


def _takes_table(path: KeyPath) -> bool:
    """Also of names: any table of a kind may be there."""
    noun = TABLES.get(path[0])
    return noun is not None and (len(path) < 3 or path[2:] in {(k,) for k in NESTED.get(noun, {})})


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


def _is_dotted(word: str) -> bool:
    """Keys with a dot between each two, and none of them empty."""
    return all(_parts(word)) and ".".join(_PART.findall(word)) == word != ""


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in _PART.findall(dotted))
