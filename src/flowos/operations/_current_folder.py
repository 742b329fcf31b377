"""The person's current folder, as an image sees it."""

from pathlib import Path, PurePath

from flowos._dataclasses import replace
from flowos.drivers import path_inside
from flowos.engine import here
from flowos.model import Environment

_SYSTEM = tuple(map(PurePath, ("/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/usr")))
_TOO_WIDE = frozenset(map(PurePath, ("/", "/home", "/opt", "/run", "/var")))


def with_current_folder(env: Environment, folder: Path) -> tuple[Environment, PurePath, str]:
    """The environment that shows it, the folder to start in, and why it is another; "".

    It is bound under the same path, if that hides nothing of the image.
    """
    if env.image is None:
        return env, folder, ""
    inside = path_inside(folder, env.binds)
    if inside is not None:
        return env, inside, ""
    why = _why_not_bound(folder)
    if why:
        return env, PurePath("/"), f"{folder} is not to be seen inside: {why}"
    bind = (str(folder), str(folder))
    return replace(env, binds=(*env.binds, bind)), folder, ""


def _why_not_bound(folder: PurePath) -> str:
    home = here().home()
    if folder in _TOO_WIDE or any(map(folder.is_relative_to, _SYSTEM)):
        return "it would hide the image's own"
    if home and home.is_relative_to(folder):
        return "your home is bound only when asked for"
    return ""
