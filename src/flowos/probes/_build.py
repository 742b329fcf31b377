"""How the programs of probes are compiled, and keys of what comes of it."""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.model import Argv, Compiler

SOURCE_SECONDS = 120.0
"""Limit for the compiler and a source, on a busy machine too."""


@dataclass(frozen=True, kw_only=True)
class ObjectFile:
    """A source compiled by itself. key: a hash of all that can change the code."""

    source: str
    path: Traversable
    compiler: Argv
    key: str


@dataclass(frozen=True, kw_only=True)
class Build:
    """How a program is compiled: sources, compiler, flags, libraries.

    source: the one that names the program. also: its other sources. folder: of the package, where
    they are data, with the headers next to each. include_folder: headers are named from there on.
    also_compiler: compiles the other sources, if it is not `compiler`: with the one beneath an
    MPI's wrapper, sources that use no MPI are compiled once for all MPIs. processor: that this is
    for, as flags such as -march=native mean another one on each machine that shares a cache.
    """

    source: str
    also: Argv = ()
    folder: str = "probes/programs"
    include_folder: bool = False
    compiler: str
    compiler_version: str = ""
    also_compiler: Argv = ()
    also_version: str = ""
    flags: Argv = ("-O2",)
    libraries: Argv = ()
    processor: str = ""

    @property
    def sources(self) -> tuple[Traversable, ...]:
        within = package_data(self.folder)
        return tuple(within.joinpath(name) for name in (self.source, *self.also))

    @property
    def limit_seconds(self) -> float:
        """For a compiler that is given all sources at once."""
        return SOURCE_SECONDS * (1 + len(self.also))

    @property
    def include_flags(self) -> Argv:
        return (f"-I{package_data(self.folder)}",) if self.include_folder else ()

    @property
    def objects(self) -> tuple[ObjectFile, ...]:
        """One of each source, the program's own first."""
        headers, flags = _digest(*self._headers), (*self.flags, self.processor)
        own = ((self.compiler,), self.compiler_version)
        others = (self.also_compiler, self.also_version) if self.also_compiler else own
        names, by = (self.source, *self.also), (own, *(others for _ in self.also))
        return tuple(
            ObjectFile(
                source=name,
                path=path,
                compiler=words,
                key=_key(name, headers, _digest((name, path)), *words, version, "--", *flags),
            )
            for name, path, (words, version) in zip(names, self.sources, by, strict=True)
        )

    @property
    def key(self) -> str:
        """A hash of all that can change the binary's speed."""
        by = (self.compiler, self.compiler_version, *self.flags, "--", *self.libraries)
        return _key(self.source, *(each.key for each in self.objects), *by)

    @property
    def _headers(self) -> Iterator[tuple[str, Traversable]]:
        """All that its sources may include of the package."""
        if self.include_folder:
            return _headers(PurePath(self.folder), below=True)
        names = (PurePath(self.folder, name) for name in (self.source, *self.also))
        folders = dict.fromkeys(name.parent for name in names)
        return (header for folder in folders for header in _headers(folder))


def package_data(folder: str) -> Traversable:
    """A folder of this package, read as data: none of its code is imported."""
    return files("flowos").joinpath(*PurePath(folder).parts)


def built_by(source: str, compiler: Compiler, flags: Argv, libraries: Argv = ()) -> Build:
    return Build(
        source=source,
        compiler=str(compiler.path),
        compiler_version=compiler.version,
        flags=flags,
        libraries=libraries,
    )


def _headers(folder: PurePath, *, below: bool = False) -> Iterator[tuple[str, Traversable]]:
    """Those of a folder by name, and of the folders below it."""
    for file in sorted(package_data(str(folder)).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".h"):
            yield str(folder / file.name), file
        elif below and file.is_dir():
            yield from _headers(folder / file.name, below=True)


def _digest(*named: tuple[str, Traversable]) -> str:
    digest = hashlib.sha256()
    for name, file in named:
        text = file.read_bytes()
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def _key(source: str, *words: str) -> str:
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return f"{PurePath(source).stem}-{digest[:16]}"
