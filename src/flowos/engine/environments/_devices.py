"""The devices of an environment: found in this node's CDI specs, checked, given to its runtime."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers import (
    BOOTING,
    CdiSpec,
    Placed,
    bind_for_us,
    device_edits,
    draws,
    every_gpu,
    path_inside,
    place_devices,
    read_cdi_spec,
    specs_of,
    with_devices,
)
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.launch._session import LaunchSession
from flowos.model import Environment, EnvironmentRefused, Pairs

USUAL_FOLDERS = ("/etc/cdi", "/var/run/cdi")
"""Where the CDI has specs, by rising priority. FLOWOS_CDI_DIRS (folders, a colon between) names
others instead."""


@dataclass(frozen=True, kw_only=True)
class Devices:
    """What an environment's devices need, whatever its runtime turns out to be."""

    placed: Placed
    at: PurePath
    usual: bool

    @property
    def bound(self) -> Pairs:
        """The binds whose targets the image must have."""
        return tuple(b for b in self.placed.binds if path_inside(_target(b), ()) is None)

    def given_to(self, env: Environment, runtimes: Runtimes) -> Environment:
        """For a runtime that was chosen: by name where it reads specs itself, else as binds."""
        if not env.devices or env.runtime in BOOTING:  # which refuses them by name
            return env
        if self.usual and runtimes.entering(env).traits.reads_cdi:
            # it sets variables, flowos-init others
            variables = dict(self.placed.variables) | dict(env.variables)
            return replace(env, variables=tuple(variables.items()))
        binds = tuple(
            bind_for_us(env.runtime, source, target[:-3])
            if target.endswith(":ro")
            else (source, target)
            for source, target in self.placed.binds
        )
        return with_devices(env, replace(self.placed, binds=binds), self.at)


@contextmanager
def devices_of(env: Environment, session: LaunchSession) -> Iterator[Devices]:
    """What they need, until launches in the environment are over.

    EnvironmentRefused for a device that no spec names, or of which something is not there.
    """
    if not env.devices:
        yield Devices(placed=Placed(), at=PurePath("/"), usual=False)
        return
    specs = cdi_specs()
    chosen = tuple(spec for _, spec in specs_of(env.devices, specs))
    edits = device_edits(env.devices, specs)
    config = env.image.config.variables if env.image else ()
    graphics = draws(dict(config) | dict(env.variables))
    names = {host: _other_names(Path(host)) for host, _, _ in edits.mounts}
    import tempfile  # takes long, and most environments ask for no device

    with tempfile.TemporaryDirectory(prefix="devices-", dir=session.folder()) as folder:
        at = Path(folder)
        placed = place_devices(edits, at, names, graphics=graphics)
        _check(env, placed, chosen)
        _make_mount_points(at, placed)
        yield Devices(placed=placed, at=at, usual=all(map(_is_usual, chosen)))


def gpu_devices() -> tuple[str, ...]:
    """The CDI names of all GPUs here; none where no spec lists them."""
    return every_gpu(cdi_specs())


def cdi_specs() -> tuple[CdiSpec, ...]:
    """All specs of this node. Raises EnvironmentRefused for one that cannot be read."""
    found = []
    for priority, folder in enumerate(_folders()):
        for file in _files(folder):
            found.append(read_cdi_spec(_parsed(file), file, priority))
    return tuple(found)


def _folders() -> Sequence[str]:
    named = os.environ.get("FLOWOS_CDI_DIRS", "")
    return [f for f in named.split(":") if f] or USUAL_FOLDERS


def _files(folder: str) -> Iterator[Path]:
    try:
        entries = sorted(Path(folder).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise EnvironmentRefused(f"CDI specs in {folder}: {error.strerror}") from error
    yield from (e for e in entries if e.suffix in (".json", ".yaml", ".yml"))


def _parsed(file: Path) -> object:
    import yaml  # loads what a launch without devices never needs

    try:
        text = file.read_text()
        return json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise EnvironmentRefused(f"CDI spec {file}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise EnvironmentRefused(f"CDI spec {file}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _other_names(file: Path) -> tuple[str, ...]:
    """The links next to a library that lead to it: its soname, and its name for the linker."""
    try:
        links = [e for e in file.parent.iterdir() if e.is_symlink() and e.name != file.name]
    except OSError:
        return ()
    return tuple(sorted(e.name for e in links if e.resolve() == file.resolve()))


def _check(env: Environment, placed: Placed, chosen: Sequence[CdiSpec]) -> None:
    for path in placed.needed:
        if not Path(path).exists():
            raise EnvironmentRefused(
                f"device {', '.join(env.devices)}: {path} is not there, which "
                f"{chosen[0].source} names; is the driver loaded, and the spec of this driver?"
            )


def _make_mount_points(at: Path, placed: Placed) -> None:
    for folder, names in (("lib", placed.libraries), ("bin", placed.programs)):
        (at / folder).mkdir()
        for name in names:
            (at / folder / name).touch()


def _is_usual(spec: CdiSpec) -> bool:
    return str(spec.source.parent) in USUAL_FOLDERS


def _target(bind: tuple[str, str]) -> PurePath:
    return PurePath(bind[1].removesuffix(":ro"))
