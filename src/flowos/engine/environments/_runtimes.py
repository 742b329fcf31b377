"""The runtime that enters an environment, as it was tried on this node."""

from flowos.drivers import Runtime, runtime_named
from flowos.engine.environments._variants import variant_found
from flowos.model import Environment


def runtime_for(env: Environment) -> Runtime:
    """What enters this environment. Raises LaunchFailed if there is no such runtime."""
    if env.image is None:
        return runtime_named(env.runtime)
    if not variant_found(env.runtime, env.image.form):
        from flowos.engine.environments._usability import runtime_facts  # slow to import

        runtime_facts(only=(env.runtime,))
    return variant_found(env.runtime, env.image.form) or runtime_named(env.runtime)
