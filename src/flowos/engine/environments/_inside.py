"""The variables of a command, bare or in an image."""

import os
from pathlib import Path

from flowos.drivers import path_inside, variables_inside
from flowos.engine.launch._prepared import own_variables
from flowos.engine.launch._session import LaunchSession
from flowos.model import Environment, Pairs


def launch_variables(
    session: LaunchSession, env: Environment, task: Pairs = (), *, inherit: bool = True
) -> Pairs:
    """All variables of a launch in `env`; of two of one name the later one counts.

    Bare: this process's, if the command inherits them, the environment's, the task's. In an image:
    as `variables_inside` says.
    """
    if env.image is None:
        host = own_variables() if inherit else ()
        return tuple((dict(host) | dict(env.variables) | dict(task)).items())
    own = _own_inside(session, env)
    return variables_inside(env, own=own, host=os.environ, task=task, inherit=inherit)


def _own_inside(session: LaunchSession, env: Environment) -> Pairs:
    home = home_folder()
    seen = home and path_inside(home, env.binds)
    return (
        ("HOME", str(seen or _private_home(session))),
        ("TMPDIR", "/tmp"),
        ("PYTHONNOUSERSITE", "1"),
    )


def home_folder() -> Path | None:
    """The home folder of this user; None where it is unknown."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _private_home(session: LaunchSession) -> Path:
    """A person's own is not to be seen unless it is bound: what lies there changes programs."""
    home = session.folder() / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    return home
