"""Making an environment ready: once before its launches, so that each costs only its own start.

What is promised: the image is the one that was meant (digest), a runtime that works here enters it,
what is to be bound is there and has a place inside. If any of that cannot be had, the refusal is
one line that says which and how to mend it. `close` undoes it all, and so does our end.
"""

from dataclasses import replace

from flowos.engine._ready import Ready
from flowos.model import Environment, EnvironmentRefused


def make_ready(env: Environment) -> Ready:
    """See to it that launches in `env` can start. EnvironmentRefused: one clear line."""
    if env.image is None:
        return _ready_without_image(env)
    from flowos.engine.environments._image_ready import image_ready  # loads what bare needs not

    return Ready(*image_ready(env, env.image))


def _ready_without_image(env: Environment) -> Ready:
    runtime = "bare" if env.runtime == "auto" else env.runtime
    if runtime != "bare":
        raise EnvironmentRefused(f"runtime {runtime}: it enters images; name one, or use bare")
    return Ready(replace(env, runtime=runtime), (), lambda: None)
