"""Overlay with the mount points that an image lacks; flowos-init mounts it for a launch.

Tested with Linux 6.18; an ordinary user may mount an overlay since 5.11.
"""

from pathlib import PurePath

from flowos._dataclasses import replace
from flowos.model import Argv, Image

_ROOT = "overlay-root"


def overlaid(image: Image, at: PurePath) -> Image:
    """Image to pass to a runtime if its overlay is described in `at` (see init/overlay.h)."""
    return replace(image, form="folder", source=at / _ROOT)


def in_overlay(argv: Argv, image: Image, init: PurePath) -> Argv:
    """A runtime's command line, run in namespaces with the overlay if the image has one."""
    if image.source.name != _ROOT:
        return argv
    return (str(init), "--overlay", str(image.source.parent), "--", *argv)
