"""Host devices in an environment, from Container Device Interface specs.

A CDI spec (tags.cncf.io/container-device-interface, versions 0.3 to 1.0) lists the device nodes,
mounts and variables that a device needs. Runtimes that support CDI get the device's name; for the
others this module translates it to binds, which require nothing from the image: programs and
libraries appear in two folders of ours, whose path is the same inside and outside.

This replaces the hooks of NVIDIA's specs: the linker finds the libraries by LD_LIBRARY_PATH
instead of a cache, under all the names that they have on the host.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from flowos._dataclasses import dataclass
from flowos.model import EnvironmentRefused, Pairs

_KIND = r"(?a:[A-Za-z0-9][\w.-]*/[A-Za-z][\w-]*)"
_DEVICE = r"(?a:[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?)"
_LIBRARY = r"(?a:lib.+\.so(\.[\w.]+)?)"
_DRAWING = (
    r"/lib(GL|EGL|OpenGL|nvidia-(egl|gl|gbm|eglcore|glcore|glsi|glvkspirv|rtcore|vksc))[^/]*$"
    r"|/(egl|egl_external_platform\.d|glvnd|gbm|vdpau|vulkan|vulkansc|xorg|X11)/"
)
_OF_THE_HOST = ("/lib/firmware/", "/usr/lib/firmware/", "/run/", "/var/run/")
"""Firmware and sockets of daemons: used by the host, not by programs inside."""
_DRAWS = frozenset({"all", "graphics", "display"})


@dataclass(frozen=True, kw_only=True)
class Edits:
    """Needs of one device, or of a whole spec. Mounts and nodes are (on the host, inside)."""

    variables: Pairs = ()
    nodes: Pairs = ()
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """The third item: read-only."""
    links: Pairs = ()
    """(target, link) pairs that a hook would create."""

    def __add__(self, other: "Edits") -> "Edits":
        return Edits(
            variables=(*self.variables, *other.variables),
            nodes=(*self.nodes, *other.nodes),
            mounts=(*self.mounts, *other.mounts),
            links=(*self.links, *other.links),
        )


@dataclass(frozen=True, kw_only=True)
class CdiSpec:
    """One spec file. If two specs define the same device, the higher priority counts."""

    source: PurePath
    priority: int
    kind: str
    devices: Mapping[str, Edits]
    common: Edits


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Devices translated to files of the host, each with its path inside."""

    binds: Pairs = ()
    variables: Pairs = ()
    libraries: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    """Paths that must exist on the host."""


def read_cdi_spec(said: object, source: PurePath, priority: int = 0) -> CdiSpec:
    """Check a parsed spec file. Raises EnvironmentRefused if it is invalid."""
    try:
        spec = _mapping(said, "the file")
        kind = _text(spec, "kind")
        if not re.fullmatch(_KIND, kind):
            raise _WrongError(f"kind {kind!r} is not like vendor.com/class")
        _text(spec, "cdiVersion")
        devices = {}
        for device in _list(spec, "devices"):
            name = _text(_mapping(device, "a device"), "name")
            if not re.fullmatch(_DEVICE, name) or name in devices:
                raise _WrongError(f"device {name!r} is twice there or no device's name")
            devices[name] = _edits(device)
        common = _edits(spec)
    except _WrongError as error:
        raise EnvironmentRefused(f"CDI spec {source}: {error}") from None
    return CdiSpec(source=source, priority=priority, kind=kind, devices=devices, common=common)


def specs_of(names: Iterable[str], specs: Sequence[CdiSpec]) -> tuple[tuple[str, CdiSpec], ...]:
    """Device name within its spec, and the spec. Raises EnvironmentRefused if it is unknown."""
    return tuple((name.partition("=")[2], _spec_of(name, specs)) for name in names)


def known_devices(specs: Iterable[CdiSpec]) -> tuple[str, ...]:
    return tuple(sorted({f"{s.kind}={device}" for s in specs for device in s.devices}))


def every_gpu(specs: Sequence[CdiSpec]) -> tuple[str, ...]:
    """Names of all GPUs of the node; () if no spec describes GPUs."""
    found: list[str] = []
    for kind in sorted({s.kind for s in specs if s.kind.endswith("/gpu")}):
        names = sorted({d for s in specs if s.kind == kind for d in s.devices})
        found += [f"{kind}={name}" for name in (["all"] if "all" in names else names)]
    return tuple(found)


def device_edits(names: Iterable[str], specs: Sequence[CdiSpec]) -> Edits:
    """Combined needs of these devices; the common part of each spec is added once."""
    found = Edits()
    seen: set[PurePath] = set()
    for device, spec in specs_of(names, specs):
        if spec.source not in seen:
            seen.add(spec.source)
            found += spec.common
        found += spec.devices[device]
    return found


def draws(variables: Mapping[str, str]) -> bool:
    """Whether graphics are requested too, by NVIDIA's own variable."""
    asked = variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    return not _DRAWS.isdisjoint(asked.split(","))


def place_devices(
    edits: Edits,
    at: PurePath,
    names_of: Mapping[str, Sequence[str]],
    *,
    graphics: bool = False,
) -> Placed:
    """Binds for a runtime without CDI support.

    at: a folder with the same path inside and outside; its `lib` and `bin` hold a file as mount
    point for each of `libraries` and `programs`. names_of: further names of a library on the host
    (libx.so.1 for libx.so.1.2). graphics: include the graphics libraries. They are left out by
    default because they often need a newer C library than the image has.
    """
    binds: list[tuple[str, str]] = []
    libraries: dict[str, str] = {}
    programs: dict[str, str] = {}
    needed = [host for host, _ in edits.nodes]
    for host, inside, read_only in edits.mounts:
        if not _wanted(inside, graphics):
            continue
        needed.append(host)
        name = PurePath(inside).name
        if re.fullmatch(_LIBRARY, name):
            for known in (name, *names_of.get(host, ())):
                libraries.setdefault(known, host)  # of 32-bit and 64-bit versions the first
        elif PurePath(inside).parent.name in ("bin", "sbin"):
            programs[name] = host
        else:
            binds.append((host, inside + ":ro" * read_only))
    binds += [(host, inside) for host, inside in edits.nodes if host != inside]
    libraries |= _linked(edits.links, libraries)
    binds += [(host, f"{at / 'lib' / name}:ro") for name, host in libraries.items()]
    binds += [(host, f"{at / 'bin' / name}:ro") for name, host in programs.items()]
    return Placed(
        binds=tuple(dict.fromkeys(binds)),
        variables=tuple(dict(edits.variables).items()),
        libraries=tuple(libraries),
        programs=tuple(programs),
        needed=tuple(dict.fromkeys(needed)),
    )


def _wanted(inside: str, graphics: bool) -> bool:
    if inside.startswith(_OF_THE_HOST):
        return False
    return graphics or not re.search(_DRAWING, inside)


def _linked(links: Pairs, libraries: Mapping[str, str]) -> dict[str, str]:
    """Names that a hook would create, if they lead to an existing library."""
    found: dict[str, str] = {}
    for target, link in links:
        host = libraries.get(PurePath(target).name) or found.get(PurePath(target).name)
        name = PurePath(link).name
        if host and name not in libraries:
            found[name] = host
    return found


def _spec_of(name: str, specs: Sequence[CdiSpec]) -> CdiSpec:
    kind, equals, device = name.partition("=")
    if not equals or not re.fullmatch(_KIND, kind) or not re.fullmatch(_DEVICE, device):
        raise EnvironmentRefused(f"device {name!r}: a CDI name is like nvidia.com/gpu=0")
    found = [s for s in specs if s.kind == kind and device in s.devices]
    if not found:
        known = ", ".join(known_devices(specs))
        raise EnvironmentRefused(
            f"device {name}: no CDI spec of this node names it; "
            + (
                f"named are {known}"
                if known
                else "there is no spec at all (/etc/cdi, /var/run/cdi)"
            )
        )
    best = max(s.priority for s in found)
    first, *others = [s for s in found if s.priority == best]
    if others:
        both = f"{first.source} and {others[0].source}"
        raise EnvironmentRefused(f"device {name}: {both} both name it; remove one")
    return first


# ---- the file ----


class _WrongError(ValueError):
    """An error in a spec."""


def _edits(holder: Mapping[str, Any]) -> Edits:
    said = _mapping(holder.get("containerEdits") or {}, "containerEdits")
    return Edits(
        variables=tuple(_variable(v) for v in _list(said, "env")),
        nodes=tuple(_node(_mapping(n, "a device node")) for n in _list(said, "deviceNodes")),
        mounts=tuple(_mount(_mapping(m, "a mount")) for m in _list(said, "mounts")),
        links=tuple(link for h in _list(said, "hooks") for link in _links(_mapping(h, "a hook"))),
    )


def _variable(said: object) -> tuple[str, str]:
    name, equals, value = str(said).partition("=")
    if not name or not equals:
        raise _WrongError(f"env {said!r} is not like NAME=VALUE")
    return name, value


def _node(said: Mapping[str, Any]) -> tuple[str, str]:
    inside = _path(said, "path")
    return (_path(said, "hostPath") if said.get("hostPath") else inside), inside


def _mount(said: Mapping[str, Any]) -> tuple[str, str, bool]:
    options = _list(said, "options")
    return _path(said, "hostPath"), _path(said, "containerPath"), "ro" in options


def _links(hook: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Links of NVIDIA's hook `create-symlinks --link TARGET::LINK ...`."""
    words = [str(word) for word in _list(hook, "args")]
    for flag, word in pairwise(words):
        target, colons, link = word.partition("::")
        if flag == "--link" and colons:
            yield target, link


def _mapping(said: object, what: str) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise _WrongError(f"{what} is no mapping")
    return said


def _list(said: Mapping[str, Any], name: str) -> list[Any]:
    found = said.get(name) or []
    if not isinstance(found, list):
        raise _WrongError(f"{name} is no list")
    return found


def _text(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    if not isinstance(found, str) or not found or "\0" in found:
        raise _WrongError(f"{name} is missing or no text")
    return found


def _path(said: Mapping[str, Any], name: str) -> str:
    found = _text(said, name)
    if not PurePath(found).is_absolute() or ".." in PurePath(found).parts or ":" in found:
        raise _WrongError(f"{name} {found!r} is no plain absolute path")
    return found
