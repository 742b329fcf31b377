"""Starts launches by the runtime that their environment names, as it was tried on this node."""

from flowos.drivers import Runtime, runtime_named
from flowos.engine import _launching
from flowos.engine._launch_output import Capture
from flowos.engine._launching import MOST_OUTPUT_BYTES, PreparedLaunch, Stdin
from flowos.engine._running import RunningProcess
from flowos.engine.environments._variants import variant_found
from flowos.model import Environment, Launch, Outcome


def runtime_for(env: Environment) -> Runtime:
    """What enters this environment. Raises LaunchFailed if there is no such runtime."""
    if env.image is None:
        return runtime_named(env.runtime)
    if not variant_found(env.runtime, env.image.form):
        from flowos.engine.environments._usability import runtime_facts  # slow to import

        runtime_facts(only=(env.runtime,))
    return variant_found(env.runtime, env.image.form) or runtime_named(env.runtime)


def prepare(
    launch: Launch,
    *,
    launcher: str = "direct",
    starter: str = "",
    oversubscribe: bool = False,
    most_output_bytes: int = MOST_OUTPUT_BYTES,
    captures: tuple[Capture, Capture] | None = None,
) -> PreparedLaunch:
    """Check the launch and make its run folder. Arguments as for `_launching.prepare`."""
    return _launching.prepare(
        launch,
        runtime_for(launch.env),
        launcher=launcher,
        starter=starter,
        oversubscribe=oversubscribe,
        most_output_bytes=most_output_bytes,
        captures=captures,
    )


def start(
    launch: Launch,
    *,
    launcher: str = "direct",
    starter: str = "",
    oversubscribe: bool = False,
    most_output_bytes: int = MOST_OUTPUT_BYTES,
    captures: tuple[Capture, Capture] | None = None,
    stdin: Stdin = None,
) -> RunningProcess:
    """Start a launch and return at once. Arguments as for `prepare`."""
    return prepare(
        launch,
        launcher=launcher,
        starter=starter,
        oversubscribe=oversubscribe,
        most_output_bytes=most_output_bytes,
        captures=captures,
    ).start(stdin=stdin)


def run(
    launch: Launch,
    *,
    launcher: str = "direct",
    starter: str = "",
    oversubscribe: bool = False,
    most_output_bytes: int = MOST_OUTPUT_BYTES,
    stdin: Stdin = None,
) -> Outcome:
    """Start a launch and wait for its end; an interrupt ends it too."""
    return prepare(
        launch,
        launcher=launcher,
        starter=starter,
        oversubscribe=oversubscribe,
        most_output_bytes=most_output_bytes,
    ).run(stdin=stdin)
