"""ch-image: a Dockerfile (most of the language) built without any right, by Charliecloud."""

import json
import re
from collections.abc import Sequence
from pathlib import PurePath

from flowos.model import Argv, ImageConfig

METADATA = "ch/metadata.json"
"""In an image of its storage: what the recipe said, as far as ch-image knows it."""


def build(
    interpreter: Argv,
    recipe: PurePath,
    context: PurePath,
    *,
    storage: PurePath,
    name: str,
    arguments: Sequence[str] = (),
) -> Argv:
    """interpreter: how to start ch-image; its own `env python3` may be one without its modules.

    No cache: that is kept by git, which wants a name and an address of the user.
    """
    given = (word for argument in arguments for word in ("--build-arg", argument))
    return (
        *(*interpreter, "build", "--no-cache", "--storage", str(storage), "--tag", name),
        *("--force", *given, "--file", str(recipe), str(context)),
    )


def load(interpreter: Argv, archive: PurePath, *, storage: PurePath, name: str) -> Argv:
    """Takes a tar of a root file system in, as a base."""
    return (*interpreter, "import", "--no-cache", "--storage", str(storage), str(archive), name)


def place(storage: PurePath, name: str) -> PurePath:
    """Where in the storage an image's root file system lies."""
    return storage / "img" / re.sub(r"/", "%", name.replace(":", "+"))


def version(interpreter: Argv) -> Argv:
    return (*interpreter, "--version")


def read_version(stdout: str) -> str:
    return stdout.strip() or "unknown"


def read_metadata(text: bytes) -> ImageConfig:
    """Variables and folder; entry point and command it does not know. ValueError: no such JSON."""
    raw = json.loads(text)
    if not isinstance(raw, dict) or not isinstance(raw.get("env", {}), dict):
        raise ValueError("its metadata cannot be read")
    cwd = raw.get("cwd") or ""
    return ImageConfig(
        variables=tuple((str(name), str(value)) for name, value in raw.get("env", {}).items()),
        cwd=PurePath(str(cwd)) if cwd else None,
    )
