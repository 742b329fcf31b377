"""What a probe is, and how its programs become tasks and their answers readings."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath
from typing import Any, Literal, Protocol

from flowos.model import (
    Argv,
    Case,
    Chart,
    Compiler,
    Exited,
    Facts,
    MeasureError,
    Outcome,
    Reading,
    Unmeasured,
    Wanted,
)

CANNOT_MEASURE_HERE = 77


class Probe(Protocol):
    """One kind of measurement: its cases, the flow of a case, the reader, ceiling and chart."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def charts(self) -> tuple[Chart, ...]: ...
    @property
    def build(self) -> Literal["once", "each"]: ...
    @property
    def rounds(self) -> int:
        """How many rounds its conclusions need; four, where levels are compared."""
        ...

    def cases(self, facts: Facts, wanted: Wanted) -> tuple[Case, ...] | Unmeasured:
        """The points of the sweep for this node, or why there is none."""
        ...

    def seconds(self, case: Case) -> float:
        """About how long one measurement of the case takes, building aside."""
        ...

    def program(self, case: Case) -> "Program":
        """What is to be compiled and run to measure the case."""
        ...

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        """The program's answer as readings."""
        ...

    def ceiling(self, case: Case) -> Case | None:
        """The case whose best value bounds this one's; its probe, levels and metric by `at`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How a program is compiled: sources, compiler, flags, libraries.

    source: the one that it is named after. also: its other sources. folder: of the package, where
    they are data, with the headers beside each. include_folder: headers are named from there on.
    """

    source: str
    also: Argv = ()
    folder: str = "probes/programs"
    include_folder: bool = False
    compiler: str
    compiler_version: str = ""
    flags: Argv = ("-O2",)
    libraries: Argv = ()

    @property
    def sources(self) -> tuple[Traversable, ...]:
        within = package_data(self.folder)
        return tuple(within.joinpath(name) for name in (self.source, *self.also))

    @property
    def include_flags(self) -> Argv:
        return (f"-I{package_data(self.folder)}",) if self.include_folder else ()

    @property
    def key(self) -> str:
        """Changes with all that can change the binary's speed."""
        names = (self.source, *self.also)
        folders = dict.fromkeys(str(PurePath(self.folder, name).parent) for name in names)
        digest = hashlib.sha256()
        for file in (*self.sources, *(h for folder in folders for h in _headers(folder))):
            digest.update(file.read_bytes())
        words = (self.compiler, self.compiler_version, *self.flags, "--", *self.libraries)
        digest.update("\0".join(words).encode())
        return f"{PurePath(self.source).stem}-{digest.hexdigest()[:16]}"


def package_data(folder: str) -> Traversable:
    """A folder of this package, which is read as data: none of its code is imported."""
    return files("flowos").joinpath(*PurePath(folder).parts)


def _headers(folder: str) -> list[Traversable]:
    found = (file for file in package_data(folder).iterdir() if file.name.endswith(".h"))
    return sorted(found, key=lambda file: file.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What measures one case: an optional build, then a command line.

    argv: without `build` the whole command line, else the arguments of the built binary; a word
    "{scratch}" stands for a fresh folder on the file system to be measured.
    ranks/mpi_family/starter: for an MPI program, how many and by whom.
    starts: how often it is started where starting it is what is timed, else 0.
    takes_turns: can it run beside others of which one works at a time (flowos_turns.h)?
    memory_bytes: what it keeps while others have their turns, where that is much.
    """

    argv: Argv
    build: Build | None = None
    variables: tuple[tuple[str, str], ...] = ()
    cores: int = 1
    ranks: int = 1
    mpi_family: str = ""
    starter: str = ""
    limit_seconds: float = 120.0
    starts: int = 0
    takes_turns: bool = False
    memory_bytes: int = 0

    @property
    def on_storage(self) -> bool:
        """Does it measure the storage that was asked for?"""
        return any("{scratch}" in word for word in self.argv)


def built_by(source: str, compiler: Compiler, flags: Argv, libraries: Argv = ()) -> Build:
    return Build(
        source=source,
        compiler=str(compiler.path),
        compiler_version=compiler.version,
        flags=flags,
        libraries=libraries,
    )


def best_compiler(facts: Facts) -> Compiler | None:
    """The C compiler for programs whose compiler is not what is measured: gcc first."""
    order = ("gcc", "clang", "icx", "nvc", "other")
    found = [c for c in facts.compilers if c.language == "c"]
    return min(found, key=lambda c: order.index(c.family), default=None)


def read_answer(outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
    """Read what a measuring program of ours printed.

    Format: one JSON object {"readings": [{"metric", "unit", "values", "levels"?, "notes"?}, ...]}
    where levels and notes are objects of strings; on exit 77 {"cannot": reason, "remedy"?}.
    """
    if not isinstance(outcome.end, Exited):
        return Unmeasured(reason=f"the program ended by {outcome.end}", remedy=_tail(outcome))
    if outcome.end.code not in (0, CANNOT_MEASURE_HERE):
        return Unmeasured(reason=f"the program's own check failed: {_tail(outcome)}")
    try:
        answer = json.loads(outcome.stdout or b"{}")
        if outcome.end.code == CANNOT_MEASURE_HERE:
            return Unmeasured(
                reason=answer.get("cannot", _tail(outcome)), remedy=answer.get("remedy", "")
            )
        return tuple(_reading(r) for r in answer["readings"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MeasureError(
            f"the program's answer cannot be read: {outcome.stdout[:200]!r}"
        ) from error


def _reading(raw: dict[str, Any]) -> Reading:
    return Reading(
        metric=raw["metric"],
        unit=raw["unit"],
        values=tuple(float(v) for v in raw["values"]),
        levels=_pairs(raw.get("levels", {})),
        notes=_pairs(raw.get("notes", {})),
    )


def _pairs(raw: dict[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in raw.items())


def _tail(outcome: Outcome, lines: int = 3) -> str:
    words: Sequence[str] = outcome.stderr.decode(errors="replace").strip().splitlines()
    return " / ".join(words[-lines:])
