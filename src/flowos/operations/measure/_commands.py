"""Commands of the user, checked before anything takes time."""

import os
import shutil
from pathlib import Path

from flowos.model import Argv, MeasurementRequest, UsageError


def check_commands(request: MeasurementRequest) -> None:
    """Raises UsageError for what cannot be a command here; of an image that is not known yet."""
    bare = not request.environments or "bare" in request.environments
    for argv in request.commands:
        if not argv or not argv[0]:
            raise UsageError("the command is an empty word: is a variable unset?")
        if why := _why_not_here(argv) if bare else "":
            raise UsageError(why)


def _why_not_here(argv: Argv) -> str:
    """Why it cannot be started on this machine, or ""."""
    named = argv[0]
    if shutil.which(named):
        return ""
    if Path(named).is_dir():
        return f"'{named}' is a folder: name a program in it"
    if "/" not in named:
        path = os.environ.get("PATH", os.defpath)
        return f"no such command '{named}' (looked in PATH={path})"
    if Path(named).exists():
        return f"'{named}' may not be executed; if it is a program, chmod +x mends it"
    return f"no such command '{named}'"
