"""Making an environment with an image ready: the right image, a runtime, a place for each bind."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath

from flowos._dataclasses import replace
from flowos.drivers import RUNTIMES, SHARED
from flowos.engine.environments._choice import choose_runtime
from flowos.engine.environments._devices import devices_of
from flowos.engine.environments._images import image_at
from flowos.engine.environments._kernels import booting
from flowos.engine.environments._points import (
    MountPoint,
    binds_inside,
    is_shared,
    missing_points,
    with_points,
)
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.environments._setup import set_up
from flowos.engine.environments._squashfs import found_in_squashfs
from flowos.engine.launch._session import LaunchSession
from flowos.model import Environment, EnvironmentRefused, Facts, Form, Image


def image_ready(
    env: Environment, requested: Image, runtimes: Runtimes, *, seen: bool = False
) -> tuple[Environment, tuple[str, ...], Callable[[], None], Facts]:
    """What `Ready` is made of. EnvironmentRefused.

    seen: the image is as `image_at` has just given it, or was verified.
    """
    with ExitStack() as undo:
        devices = undo.enter_context(devices_of(env, runtimes.session))
        binds = [_checked_bind(*bind) for bind in (*env.binds, *devices.bound)]
        image = requested if seen else _verified(requested)
        name, form, facts = choose_runtime(runtimes, env, image, devices)
        points = [*_needed_by(name), *binds]
        laid = _can_be_overlaid(runtimes, facts, name, replace(image, form=form))
        missing = () if laid else points
        image, notes = _entered_form(name, form, image, missing, runtimes.session, undo)
        way = runtimes.entering(Environment(image=image, runtime=name))
        env = booting(env, name, way.traits.accelerator, runtimes.session)
        entered, tear_down = set_up(way, image, runtimes.session)
        undo.callback(tear_down)
        ready = devices.given_to(replace(env, image=entered, runtime=name), runtimes)
        ready = _with_places(ready, entered, points if laid else (), runtimes.session, undo)
        _remember(ready.image, requested, runtimes.session, undo)
        return ready, notes, undo.pop_all().close, facts


def _remember(
    entered: Image | None, requested: Image, session: LaunchSession, undo: ExitStack
) -> None:
    """Messages name it so."""
    if entered is not None and entered.source != requested.source:
        session.sources[entered.source] = requested.source
        undo.callback(session.sources.pop, entered.source, None)


def _can_be_overlaid(runtimes: Runtimes, facts: Facts, name: str, image: Image) -> bool:
    """Whether this runtime enters it as a folder that we can see, and needs our help with binds."""
    if RUNTIMES[name].traits.makes_targets:
        return False
    way = runtimes.entering(Environment(image=image, runtime=name))
    overlay = next(each for each in facts.tried if each.name == "overlay")
    return overlay.works and way.entered(image, PurePath("/")).form == "folder"


def _with_places(
    env: Environment,
    image: Image,
    points: Sequence[MountPoint],
    session: LaunchSession,
    undo: ExitStack,
) -> Environment:
    """The same, where each bind has the place that the image's links make of it."""
    if image.form != "folder":
        return env
    binds = binds_inside(Path(image.source), env.binds)
    return replace(env, image=with_points(image, _own(points), session, undo), binds=binds)


def _needed_by(runtime: str) -> tuple[MountPoint, ...]:
    """What is bound whatever the environment says."""
    files = (MountPoint(file, file=True) for file in RUNTIMES[runtime].traits.files)
    return (*(MountPoint(PurePath(folder)) for folder in SHARED), *files)


def _checked_bind(source: str, target: str) -> MountPoint:
    inside = PurePath(target.removesuffix(":ro"))
    where = f"bind {source} at {inside}"
    for path in (PurePath(source), inside):
        if not path.is_absolute() or "\0" in str(path):
            raise EnvironmentRefused(f"{where}: {str(path)!r} is no absolute path")
    if not Path(source).exists():
        raise EnvironmentRefused(f"{where}: there is no {source}; make it, or leave out the bind")
    if is_shared(inside) and not Path(inside).exists():
        raise EnvironmentRefused(
            f"{where}: this machine's own {inside} is seen there and does not exist; make it, "
            "or bind elsewhere"
        )
    return MountPoint(inside, file=not Path(source).is_dir())


def _verified(image: Image) -> Image:
    """The image as it is now. Raises EnvironmentRefused if it has another digest than stated."""
    found = image_at(Path(image.source), digest=bool(image.digest))
    if image.digest and image.digest != found.digest:
        raise EnvironmentRefused(
            f"image {image.source}: it is another one than requested: its digest is "
            f"{found.digest}, expected was {image.digest}"
        )
    return replace(found, config=image.config)


def _entered_form(
    name: str,
    form: Form,
    image: Image,
    points: Sequence[MountPoint],
    session: LaunchSession,
    undo: ExitStack,
) -> tuple[Image, tuple[str, ...]]:
    """The image itself, or a folder made of it where it cannot be entered as it is; and why."""
    missing = [] if RUNTIMES[name].traits.makes_targets else _missing(image, points)
    if form == image.form and not missing:
        return image, ()
    why = f"{name} cannot enter a {image.form} here"
    if form == image.form:
        why = f"it has no place for {missing[0].target}"
    from flowos.engine.environments._unpacked import unpacked  # most images are entered as they are

    whole = image if image.digest else image_at(Path(image.source))
    made = unpacked(whole, session, points)
    undo.callback(made.let_go)
    note = f"image {image.source} is unpacked once (to {made.folder}), as {why}"
    return replace(image, form="folder", source=made.folder), (note,)


def _own(points: Sequence[MountPoint]) -> list[MountPoint]:
    """Without those that lie in what is the node's own."""
    return [p for p in points if str(p.target) in SHARED or not is_shared(p.target)]


def _missing(image: Image, points: Sequence[MountPoint]) -> list[MountPoint]:
    points = _own(points)
    if not points or image.form not in ("folder", "squashfs"):
        return []
    if image.form == "folder":
        return missing_points(Path(image.source), points)
    found = found_in_squashfs(Path(image.source), [point.target for point in points])
    return [point for point in points if point.target not in found]
