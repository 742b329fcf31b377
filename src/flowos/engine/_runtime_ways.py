"""The runtimes as they are used on this node: each adapted to it once it has been tried."""

from flowos.drivers import Runtime, runtime_named
from flowos.model import Environment, Form

_found: dict[tuple[str, Form], Runtime] = {}


def note_way(runtime: str, form: Form, way: Runtime) -> None:
    _found[runtime, form] = way


def runtime_for(env: Environment) -> Runtime:
    """What enters this environment; LaunchFailed if there is no such runtime."""
    known = env.image and _found.get((env.runtime, env.image.form))
    return known or runtime_named(env.runtime)
