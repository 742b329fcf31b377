"""The runtimes as they are used on this node: each adapted to it once it has been tried."""

from flowos.drivers import Runtime, runtime_named
from flowos.model import Environment, Form

_found: dict[tuple[str, Form], Runtime] = {}


def note_way(runtime: str, form: Form, way: Runtime) -> None:
    _found[runtime, form] = way


def runtime_for(env: Environment) -> Runtime:
    """What enters this environment; LaunchFailed if there is no such runtime."""
    if env.image is None:
        return runtime_named(env.runtime)
    wanted = (env.runtime, env.image.form)
    if wanted not in _found:
        from flowos.engine.environments._usability import runtime_facts  # which launches, by us

        runtime_facts(only=(env.runtime,))
    return _found.get(wanted) or runtime_named(env.runtime)
