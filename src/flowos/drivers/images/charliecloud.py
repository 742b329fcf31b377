"""ch-image of Charliecloud: builds a Dockerfile (most of the language) without privileges."""

import json
import re
from collections.abc import Sequence
from pathlib import PurePath

from flowos.model import Argv, ImageConfig

METADATA = "ch/metadata.json"
"""File of an image in its storage: settings of the recipe, as far as ch-image supports them."""


def build(
    interpreter: Argv,
    recipe: PurePath,
    context: PurePath,
    *,
    storage: PurePath,
    name: str,
    arguments: Sequence[str] = (),
) -> Argv:
    """interpreter: command that starts ch-image; its own `env python3` may lack its modules.

    No cache: ch-image stores it in git, which requires the user's name and address.
    """
    given = (word for argument in arguments for word in ("--build-arg", argument))
    return (
        *(*interpreter, "build", "--no-cache", "--storage", str(storage), "--tag", name),
        *("--force", *given, "--file", str(recipe), str(context)),
    )


def load(interpreter: Argv, archive: PurePath, *, storage: PurePath, name: str) -> Argv:
    """Import a tar of a root file system as a base image."""
    return (*interpreter, "import", "--no-cache", "--storage", str(storage), str(archive), name)


def place(storage: PurePath, name: str) -> PurePath:
    """Root file system of an image in the storage."""
    return storage / "img" / re.sub(r"/", "%", name.replace(":", "+"))


def version(interpreter: Argv) -> Argv:
    return (*interpreter, "--version")


def read_version(stdout: str) -> str:
    return stdout.strip() or "unknown"


def read_metadata(text: bytes) -> ImageConfig:
    """Variables and working folder; ch-image has no entry point or command.

    Raises ValueError if the text is not such JSON.
    """
    raw = json.loads(text)
    if not isinstance(raw, dict) or not isinstance(raw.get("env", {}), dict):
        raise ValueError("its metadata cannot be read")
    cwd = raw.get("cwd") or ""
    return ImageConfig(
        variables=tuple((str(name), str(value)) for name, value in raw.get("env", {}).items()),
        cwd=PurePath(str(cwd)) if cwd else None,
    )
