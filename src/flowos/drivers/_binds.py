"""Checks and orders the bind mounts of an environment, for all runtimes."""

from collections.abc import Iterator
from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers._base import RunDir
from flowos.drivers._inside import SHARED
from flowos.model import Environment, LaunchFailed

_NAMES = {":": "colon", ",": "comma"}


@dataclass(frozen=True)
class Bind:
    source: str
    target: str
    read_only: bool

    def __str__(self) -> str:
        return f"bind {_shown(self.source)} at {_shown(self.target)}"


def binds_of(env: Environment, at: RunDir) -> tuple[Bind, ...]:
    """Binds to make. Raises LaunchFailed for an invalid or misleading one.

    Omits folders that every environment shares with the node under the same name (/tmp, /dev ...).
    at: the run folder. Its session folder is ours and may hold mount points.
    """
    return tuple(bind for bind in map(_read, env.binds) if _is_needed(bind, at.parent))


def mount_words(binds: tuple[Bind, ...]) -> Iterator[str]:
    """`--mount` options of podman and apptainer, whose fields are a line of CSV (RFC 4180)."""
    for bind in binds:
        fields = ["type=bind", f"source={bind.source}", f"destination={bind.target}"]
        fields += ["ro"] * bind.read_only
        yield from ("--mount", ",".join(map(_csv_field, fields)))


def colon_words(
    runtime: str, option: str, binds: tuple[Bind, ...], *, ends: str = ":,"
) -> Iterator[str]:
    """`SOURCE:TARGET` options. Raises LaunchFailed for separators, as the runtime has no escape."""
    for bind in binds:
        for end in ends:
            if end in bind.source + bind.target:
                raise LaunchFailed(
                    f"{bind}: {runtime} reads a {_NAMES[end]} as an end; "
                    "rename it, or use another runtime"
                )
        yield from (option, f"{bind.source}:{bind.target}" + ":ro" * bind.read_only)


def _read(pair: tuple[str, str]) -> Bind:
    source, target = pair
    bind = Bind(source, target.removesuffix(":ro"), target.endswith(":ro"))
    for path in (bind.source, bind.target):
        if not path.startswith("/"):
            raise LaunchFailed(f"{bind}: {_shown(path)} does not begin with /")
        if not path.isprintable():
            raise LaunchFailed(f"{bind}: it holds characters that cannot be printed; rename it")
    parts = [part for part in bind.target.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise LaunchFailed(f"{bind}: the target holds '..'; say where it really leads")
    if not parts:
        raise LaunchFailed(f"{bind}: that would hide the whole image; name a folder below /")
    return replace(bind, target="/" + "/".join(parts))


def _is_needed(bind: Bind, session: PurePath) -> bool:
    target = PurePath(bind.target)
    shared = next((folder for folder in SHARED if target.is_relative_to(folder)), None)
    if shared is None or (target.is_relative_to(session) and target != session):
        return True
    if target != PurePath(bind.source):
        raise LaunchFailed(
            f"{bind}: {shared} is the node's own in every environment; name a target elsewhere"
        )
    return bind.read_only and str(target) not in SHARED


def _csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text


def _shown(path: str) -> str:
    return path if path.isprintable() and path else ascii(path)
