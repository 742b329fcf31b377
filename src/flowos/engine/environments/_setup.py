"""What must run before an image can be entered, and what undoes it."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path, PurePath

from flowos._dataclasses import replace
from flowos.drivers import LinkStep, Runtime, SetupStep, runtime_named
from flowos.engine.environments._image_server import ImageServer, end
from flowos.engine.launch._orphans import unmount
from flowos.engine.launch._prepared import PreparedLaunch, own_variables, prepare
from flowos.engine.launch._run_folders import remove_run_folder
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._session import LaunchSession
from flowos.engine.launch._stale_sessions import note_undo
from flowos.model import EnvironmentRefused, Image, Launch, Outcome

_STEP_SECONDS = 600.0
_TEAR_DOWN_SECONDS = 60.0
_MOUNT_SECONDS = 5.0
_TICK_SECONDS = 0.001

Undo = Callable[[], None]


def set_up(way: Runtime, image: Image, session: LaunchSession) -> tuple[Image, Undo]:
    """Run the runtime's steps. What `wrap` is to be given, and what ends it all.

    A step that stays is a launch of ours, so that it ends with us, however we end.
    """
    at = session.new_name()
    todo = way.setup(image, at)
    if not todo:
        return way.entered(image, at), lambda: None
    with ExitStack() as undo:
        at.mkdir(mode=0o700)
        undo.callback(remove_run_folder, at)
        undo.callback(unmount, at)
        undo.callback(_tear_down, way, image, at, session)
        if steps := [launch.argv for launch in way.teardown(image, at)]:
            note_undo(at, steps)
        for step in todo:
            if isinstance(step, LinkStep):
                Path(step.link).symlink_to(step.target)
            else:
                _take(step, image, at, session, undo)
        return way.entered(image, at), undo.pop_all().close


def _take(step: SetupStep, image: Image, at: Path, session: LaunchSession, undo: ExitStack) -> None:
    launch = replace(step.launch, variables=(*own_variables(), *step.launch.variables))
    if not step.stays:
        limit = launch.limit_seconds or _STEP_SECONDS
        outcome = _bare(replace(launch, limit_seconds=limit), session).run()
        if not outcome.ok:
            raise _failed(step, image, outcome)
        return

    def mounted() -> RunningProcess:
        return _mounted(step, image, at, _bare(launch, session).start())

    server = ImageServer(at, mounted)
    undo.callback(server.end)
    session.servers[at] = server.running
    undo.callback(session.servers.pop, at, None)


def _mounted(step: SetupStep, image: Image, at: Path, running: RunningProcess) -> RunningProcess:
    """The same, once it shows the image."""
    until = time.monotonic() + _MOUNT_SECONDS
    try:
        while not os.path.ismount(at):
            if running.done:
                raise _failed(step, image, running.wait())
            if time.monotonic() > until:
                raise EnvironmentRefused(
                    f"image {image.source}: {step.launch.argv[0]} mounted nothing in "
                    f"{_MOUNT_SECONDS:.0f} s"
                )
            time.sleep(_TICK_SECONDS)
    except BaseException:
        end(running)
        raise
    return running


def _bare(launch: Launch, session: LaunchSession) -> PreparedLaunch:
    """Steps run on the node itself, so no runtime has to be known yet."""
    return prepare(launch, runtime_named("bare"), session)


def _tear_down(way: Runtime, image: Image, at: Path, session: LaunchSession) -> None:
    for launch in way.teardown(image, at):
        limit = launch.limit_seconds or _TEAR_DOWN_SECONDS
        variables = (*own_variables(), *launch.variables)
        _bare(replace(launch, variables=variables, limit_seconds=limit), session).run()


def _failed(step: SetupStep, image: Image, outcome: Outcome) -> EnvironmentRefused:
    from flowos.drivers import explain  # of what went wrong

    program = PurePath(step.launch.argv[0]).name
    reason = explain(program, outcome.stderr.decode(errors="replace"))
    text = str(outcome.end) if reason.code == "unknown" and not outcome.stderr else reason.text
    remedy = f"; {reason.remedy}" if reason.remedy else ""
    return EnvironmentRefused(f"image {image.source}: {program}: {text}{remedy}")
