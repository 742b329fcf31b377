"""Mounts a squashfs as a folder with squashfuse, once for all launches that enter it.

Tested with squashfuse 0.1.105 (Debian 12). It exits and unmounts on TERM; after a KILL the engine
must unmount.
"""

from pathlib import PurePath

from flowos._dataclasses import replace
from flowos.drivers._base import SetupStep
from flowos.drivers._entering import works
from flowos.model import Facts, Image, Launch

_SERVERS = ("squashfuse_ll", "squashfuse")
"""The `_ll` variant is faster."""

_MOUNTERS = ("fusermount3", "fusermount")


def server_of(facts: Facts) -> str:
    return _first(facts, _SERVERS)


def can_mount(facts: Facts) -> bool:
    return all((server_of(facts), _first(facts, _MOUNTERS), works(facts, "fuse")))


def mount_step(server: str, image: Image, at: PurePath) -> SetupStep:
    return SetupStep(launch=Launch(argv=(server, "-f", str(image.source), str(at))), stays=True)


def mounted(image: Image, at: PurePath) -> Image:
    return replace(image, form="folder", source=at)


def _first(facts: Facts, names: tuple[str, ...]) -> str:
    return next((str(tool.path) for name in names if (tool := facts.tool(name))), "")
