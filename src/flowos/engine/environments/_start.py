"""Starts launches by the runtime that their environment names, as it was tried on this node."""

from typing import Unpack

from flowos.drivers import Runtime, runtime_named
from flowos.engine.environments._variants import variant_found
from flowos.engine.launch import _prepared
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, Stdin
from flowos.engine.launch._running import RunningProcess
from flowos.model import Environment, Launch, Outcome


def runtime_for(env: Environment) -> Runtime:
    """What enters this environment. Raises LaunchFailed if there is no such runtime."""
    if env.image is None:
        return runtime_named(env.runtime)
    if not variant_found(env.runtime, env.image.form):
        from flowos.engine.environments._usability import runtime_facts  # slow to import

        runtime_facts(only=(env.runtime,))
    return variant_found(env.runtime, env.image.form) or runtime_named(env.runtime)


def prepare(launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
    """Check the launch and make its run folder. Options as for `_prepared.prepare`."""
    return _prepared.prepare(launch, runtime_for(launch.env), **options)


def start(
    launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]
) -> RunningProcess:
    """Start a launch and return at once. Options as for `prepare`."""
    return prepare(launch, **options).start(stdin=stdin)


def run(launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]) -> Outcome:
    """Start a launch and wait for its end; an interrupt ends it too. Options as for `prepare`."""
    return prepare(launch, **options).run(stdin=stdin)
