"""Making an environment ready: once before its launches, so that each costs only its own start.

What is promised: the image is the one that was meant (digest), a runtime that works here enters it,
what is to be bound is there and has a place inside. If any of that cannot be had, the refusal is
one line that says which and how to mend it. `close` undoes it all, and so does our end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from types import TracebackType
from typing import Self

from flowos.drivers import RUNTIMES, path_inside
from flowos.engine._devices import devices_of
from flowos.engine._image_squashfs import found_in_squashfs
from flowos.engine._image_unpacked import MountPoint, missing_points, unpacked
from flowos.engine._images import image_at
from flowos.engine._runtime_setup import set_up
from flowos.engine._runtime_ways import runtime_for
from flowos.engine._usability import runtime_facts
from flowos.model import Environment, EnvironmentRefused, Facts, Image


class Ready:
    """An environment to launch in, until `close`. `notes`: what a person should know of it."""

    def __init__(self, env: Environment, notes: tuple[str, ...], undo: Callable[[], None]) -> None:
        self.env = env
        self.notes = notes
        self._undo: list[Callable[[], None]] = [undo]

    def close(self) -> None:
        """Give back what was mounted. No launch in it may run any more. Twice is once."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def make_ready(
    env: Environment, *, expected: str = "", mount_points: tuple[PurePath, ...] = ()
) -> Ready:
    """See to it that launches in `env` can start. EnvironmentRefused: one clear line.

    expected: the digest that the image must have. mount_points: folders that must be there inside
    beside the targets of the binds.
    """
    if env.image is None:
        return _ready_without_image(env)
    points = [MountPoint(point) for point in mount_points]
    devices = devices_of(env)
    points += [_checked_bind(*bind) for bind in (*env.binds, *devices.bound)]
    image = _verified(env.image, expected)
    name, facts = _runtime(env.runtime, image)
    chosen = _entered_form(name, image, facts, points)
    way = runtime_for(Environment(image=chosen.image, runtime=name))
    entered, undo = set_up(way, chosen.image)
    entered_env = devices.given_to(replace(env, image=entered, runtime=name))
    return Ready(entered_env, chosen.notes, undo)


_ALWAYS_BOUND = (
    *(MountPoint(PurePath(folder)) for folder in ("/dev", "/proc", "/sys", "/tmp")),
    *(MountPoint(PurePath("/etc", name), file=True) for name in ("group", "hosts", "passwd")),
    MountPoint(PurePath("/etc/resolv.conf"), file=True),
)
_BIND_OVER_THE_IMAGE = frozenset({"apptainer", "podman"})
"""They lay a folder of their own over the image, where they make what is missing."""


def _needed_by(runtime: str) -> tuple[MountPoint, ...]:
    return () if runtime in _BIND_OVER_THE_IMAGE else _ALWAYS_BOUND


@dataclass(frozen=True, slots=True)
class _Chosen:
    image: Image
    notes: tuple[str, ...] = ()


def _ready_without_image(env: Environment) -> Ready:
    runtime = "bare" if env.runtime == "auto" else env.runtime
    if runtime != "bare":
        raise EnvironmentRefused(f"runtime {runtime}: it enters images; name one, or use bare")
    return Ready(replace(env, runtime=runtime), (), lambda: None)


def _checked_bind(source: str, target: str) -> MountPoint:
    inside = PurePath(target.removesuffix(":ro"))
    where = f"bind {source} at {inside}"
    for path in (PurePath(source), inside):
        if not path.is_absolute() or "\0" in str(path):
            raise EnvironmentRefused(f"{where}: {str(path)!r} is no absolute path")
    if not Path(source).exists():
        raise EnvironmentRefused(f"{where}: there is no {source}; make it, or leave out the bind")
    if _is_shared(inside) and not Path(inside).exists():
        raise EnvironmentRefused(
            f"{where}: this machine's own {inside} is seen there and does not exist; make it, "
            "or bind elsewhere"
        )
    return MountPoint(inside, file=not Path(source).is_dir())


def _verified(image: Image, expected: str) -> Image:
    """The image as it is there now, if it is the one that was meant."""
    found = image_at(Path(image.source))
    for wanted in (image.digest, expected):
        if wanted and wanted != found.digest:
            raise EnvironmentRefused(
                f"image {image.source}: it is not the one that was meant: its digest is "
                f"{found.digest}, expected was {wanted}"
            )
    return replace(found, config=image.config)


def _runtime(wished: str, image: Image) -> tuple[str, Facts]:
    """The runtime's name and what is known of it here."""
    if wished == "auto":
        return _first_usable(image)
    if wished not in RUNTIMES:
        known = ", ".join(["auto", *RUNTIMES])
        raise EnvironmentRefused(f"unknown runtime {wished!r}; known are {known}")
    if wished == "bare":
        raise EnvironmentRefused(
            f"image {image.source}: the bare runtime enters no image; leave it out, or name another"
        )
    facts = runtime_facts(only=(wished,))
    complaint = _complaint(wished, image, facts)
    if complaint:
        others = _others(wished, image)
        raise EnvironmentRefused(f"{complaint}; {others}")
    return wished, facts


def _first_usable(image: Image) -> tuple[str, Facts]:
    complaints = []
    for name in RUNTIMES:
        if name != "bare":
            facts = runtime_facts(only=(name,))
            complaint = _complaint(name, image, facts)
            if not complaint:
                return name, facts
            complaints.append(complaint)
    raise EnvironmentRefused(
        f"image {image.source}: no runtime here can enter it: {'; '.join(complaints)}"
    )


def _complaint(name: str, image: Image, facts: Facts) -> str:
    """Why this runtime cannot enter the image here; empty if it can."""
    runtime = RUNTIMES[name]
    for reason in runtime.usable(facts):
        return f"runtime {name}: {reason.text}" + (f" ({reason.remedy})" if reason.remedy else "")
    forms = runtime.forms(facts)
    if image.form in forms or (image.form == "squashfs" and "folder" in forms):
        return ""
    return f"runtime {name}: enters no {image.form} here, only {' and '.join(forms) or 'nothing'}"


def _others(but: str, image: Image) -> str:
    facts = runtime_facts()
    able = [n for n in RUNTIMES if n not in ("bare", but) and not _complaint(n, image, facts)]
    return f"usable here: {', '.join(able)}" if able else "no other runtime is usable here"


def _entered_form(name: str, image: Image, facts: Facts, points: Sequence[MountPoint]) -> _Chosen:
    """The image itself, or a folder made of it where it cannot be entered as it is."""
    if image.form not in RUNTIMES[name].forms(facts):
        return _as_folder(image, points, f"{name} cannot enter a squashfs here")
    missing = [] if name in _BIND_OVER_THE_IMAGE else _missing(image, points)
    if not missing:
        return _Chosen(image)
    return _as_folder(image, points, f"it has no {missing[0].target} to bind to")


def _as_folder(image: Image, points: Sequence[MountPoint], why: str) -> _Chosen:
    folder = unpacked(image, points)
    note = f"image {image.source}: unpacked to {folder}, as {why}"
    return _Chosen(replace(image, form="folder", source=folder), (note,))


def _is_shared(inside: PurePath) -> bool:
    return path_inside(inside, ()) is not None


def _missing(image: Image, points: Sequence[MountPoint]) -> list[MountPoint]:
    points = [point for point in points if not _is_shared(point.target)]
    if not points or image.form not in ("folder", "squashfs"):
        return []
    if image.form == "folder":
        return missing_points(Path(image.source), points)
    found = found_in_squashfs(Path(image.source), [point.target for point in points])
    return [point for point in points if point.target not in found]
