"""What the function of a native body has to take, and what its source says that it takes.

A library says nothing of that, but compilers do: in a complaint that quotes the type of the
function, Fortran's as a prototype for C. What they say otherwise, or not at all, is not refused.
"""

import re
from collections.abc import Iterator

from flowos._dataclasses import dataclass
from flowos.model._names import counted
from flowos.model._native_ports import NativePorts, dtype_of
from flowos.model._ports import Array, PortType

_TYPES = {
    **{"bool": "bool", "float32": "float", "float64": "double"},
    **{"complex64": "float _Complex", "complex128": "double _Complex"},
}
_ALIKE = {
    "bool": {"uint8", "int8", "char"},
    "int8": {"char"},
    "uint8": {"char"},
    "complex64": {"float32"},
    "complex128": {"float64"},
}
"""Other types in which the same memory is the same values; in Fortran, which has no unsigned
integers, those with a sign, too."""
_PROBES = {
    "c": "void flowos_probe_(void) {{ (void)(({entry}) * 1.0); }}",
    "c++": "template <class flowos_T_> struct flowos_Has_;\n"
    "static_assert(sizeof(flowos_Has_<decltype(::{entry})>) > 0);",
}
_SAYS = {
    "c": re.compile(r"invalid operands to binary .*?'(?P<type>[^']*)'( [{(]aka '(?P<aka>[^']*)')?"),
    "c++": re.compile(r"flowos_Has_<(?P<type>[^']*)>'(?P<aka>)"),
}
_COMPLEX = re.compile(r"__GFORTRAN_(FLOAT|DOUBLE|LONG_DOUBLE)_COMPLEX")
_AFTER = re.compile(r"(\s*(noexcept|__attribute__\(\(.*\)\)))+$")
_QUALIFIERS = re.compile(r"\b(const|volatile|restrict|__restrict(__)?)\b")
_OF_ARRAYS = re.compile(r"\(\s*[*&]\s*\)(\[[^\]]*\])+$")
_PLAIN = re.compile(r"(?P<base>[^*&()\[\]]+?)\s*(?P<stars>[*&\s]*)")
_CONSTANT = re.compile(r"\bconst\b[^*&]*[*&]|^[^*&]*\bconst\s*[*&]")
_NUMBER_WORDS = frozenset(
    ("signed", "unsigned", "char", "short", "int", "long", "float", "double", "bool", "_Bool")
)
_STD_COMPLEX = re.compile(r"(std::(\w+::)*)?complex<([\w ]+)>")
_BITS = {"short": 16, "int": 32, "long": 64}


@dataclass(frozen=True)
class _Argument:
    name: str
    type: PortType | None
    """Of its port; None of an extent."""
    out: bool = False
    counts: bool = False
    """Whether it is an extent, which is never below 0."""
    signed: bool = False
    """Whether the language has no unsigned integers."""

    @property
    def dtype(self) -> str:
        return dtype_of(self.type) if self.type else "int64"

    @property
    def pointer(self) -> bool:
        return self.out or isinstance(self.type, Array)

    @property
    def words(self) -> str:
        type_ = _TYPES.get(self.dtype, f"{self.dtype}_t")
        if not self.pointer:
            return f"{type_} {self.name}"
        return f"{'' if self.out else 'const '}{type_} *{self.name}"


@dataclass(frozen=True)
class NativeEntry:
    """A function in a source in C, C++ or Fortran. language: as `SourceCode` has it."""

    name: str
    language: str

    @property
    def probe(self) -> str:
        """Follows the source: a compiler complains of it, and says the type of the function."""
        probe = _PROBES.get(self.language)
        return f"\n\n#undef {self.name}\n{probe.format(entry=self.name)}\n" if probe else ""

    def type_in(self, said: str) -> str:
        """The type that the compiler says, as "int(const float*, long)"; "" if it says none."""
        if pattern := _SAYS.get(self.language):
            found = pattern.search(said)
            return (found["aka"] or found["type"]) if found else ""
        prototype = re.search(rf"^(.*?)\b{self.name} \((.*)\);$", said, re.MULTILINE)
        return _from_fortran(prototype[1], prototype[2]) if prototype else ""

    def misfit(self, ports: NativePorts, has: str) -> str:
        """Why it cannot be called, if it is of the type that `type_in` gave; "" if it can, or if
        the type does not say it."""
        parts = _parts(has, self.language)
        if parts is None:
            return ""
        result, parameters = parts
        arguments = list(_arguments(ports, signed=self.language == "fortran"))
        why = _misfit(result, parameters, arguments)
        if not why:
            return ""
        called = f"int {self.name}({', '.join(each.words for each in arguments)})"
        source = f"{result} {self.name}({', '.join(parameters)})"
        return f"{self.name} {why}: by its ports it is {called}, in the source {source}"


def _from_fortran(result: str, parameters: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", parameters)
    text = _COMPLEX.sub(lambda m: f"{m[1].lower().replace('_', ' ')} _Complex", text)
    nameless = (re.sub(r"\b\w+\s*$", "", each).strip() for each in _split(text))
    return f"{result.strip()}({'void' if text == 'void' else ', '.join(nameless)})"


def _misfit(result: str, parameters: list[str], arguments: list[_Argument]) -> str:
    if len(parameters) != len(arguments):
        takes = counted(len(parameters), "argument")
        return f"takes {takes}, and is called with {len(arguments)}"
    for number, (text, argument) in enumerate(zip(parameters, arguments, strict=True), 1):
        if not _fits(text, argument):
            return f"takes {text} as argument {number}, and is called with {argument.words}"
    base, stars, _ = _read(result)
    if stars or base == "void" or _dtype(base) not in ("", "int32", "uint32"):
        return f"returns {result}, not an int (0, or the task fails)"
    return ""


def _arguments(ports: NativePorts, *, signed: bool) -> Iterator[_Argument]:
    extents = {name for name, _, _ in ports.extents}
    for port in ports.inputs:
        yield _Argument(port.name, port.type, counts=port.name in extents, signed=signed)
    for name in ports.lengths:
        yield _Argument(name, None, counts=True)
    for port in ports.outputs:
        yield _Argument(port.name, port.type, out=True, signed=signed)


def _parts(has: str, language: str) -> tuple[str, list[str]] | None:
    """Its result and parameters; None if they are not known, as by empty brackets in C."""
    text = _AFTER.sub("", " ".join(has.split()))
    begin = _opening(text) if text.endswith(")") else 0
    result, inside = text[:begin].strip().removesuffix("(*)").strip(), text[begin + 1 : -1].strip()
    unknown = "..." in inside or (not inside and language == "c")
    if not result or "(" in result or unknown:
        return None
    return result, _split("" if inside == "void" else inside)


def _opening(text: str) -> int:
    """Where the bracket is that the last one closes."""
    depth = 0
    for place in range(len(text) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if not depth:
            return place
    return 0


def _split(text: str) -> list[str]:
    """At its commas, but for those within brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "([<") - (character in ")]>")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found if each.strip()]


def _fits(text: str, argument: _Argument) -> bool:
    """Whether a parameter of this type reads what is passed, as far as the type says it."""
    base, stars, constant = _read(text)
    if not base:
        return True
    dtype = _dtype(base)
    if not argument.pointer:
        also = {"uint64"} if argument.counts else set()
        return not stars and (not dtype or dtype in {argument.dtype, *_alike(argument), *also})
    if not stars:
        return not (dtype or base == "void")
    written = not (argument.out and constant)
    known = not dtype or dtype in {argument.dtype, *_alike(argument)}
    return stars == 1 and written and known


def _alike(argument: _Argument) -> set[str]:
    with_sign = {argument.dtype.removeprefix("u")} if argument.signed else set()
    return _ALIKE.get(argument.dtype, set()) | with_sign


def _read(text: str) -> tuple[str, int, bool]:
    """What it is or points to, through how many pointers, and whether that is constant; "" for
    what is something else."""
    flat = _OF_ARRAYS.sub("*", text)
    plain = _PLAIN.fullmatch(_QUALIFIERS.sub(" ", flat).strip())
    if plain is None:
        return "", 0, False
    stars = sum(plain["stars"].count(mark) for mark in "*&")
    return " ".join(plain["base"].split()), stars, bool(_CONSTANT.search(flat))


def _dtype(base: str) -> str:
    """NumPy's name of a type of numbers; "" for any other type."""
    text = _STD_COMPLEX.sub(r"\3 _Complex", base)
    words = [word for word in text.split() if word != "_Complex"]
    if not words or not _NUMBER_WORDS.issuperset(words):
        return ""
    real = _real(words)
    if "_Complex" not in text:
        return real
    return {"float32": "complex64", "float64": "complex128"}.get(real, f"complex {real}")


def _real(words: list[str]) -> str:
    if "bool" in words or "_Bool" in words:
        return "bool"
    if "float" in words:
        return "float32"
    if "double" in words:
        return "long double" if "long" in words else "float64"
    unsigned = "u" if "unsigned" in words else ""
    if "char" in words:
        return f"{unsigned}int8" if len(words) > 1 else "char"
    longest = next((word for word in ("short", "long") if word in words), "int")
    return f"{unsigned}int{_BITS[longest]}"
