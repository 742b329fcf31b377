"""Overlay with the mount points that an image lacks; flowos-init mounts it for a launch.

Tested with Linux 6.18; an ordinary user may mount an overlay since 5.11.
"""

from pathlib import PurePath

from flowos._dataclasses import replace
from flowos.model import Argv, Image

OVERLAY_ROOT = "root"
_FOLDER = "overlay"


def overlay_folder(at: PurePath) -> PurePath:
    """Folder below `at` for the parts of an overlay (see init/overlay.h)."""
    return at / _FOLDER


def overlaid(image: Image, at: PurePath) -> Image:
    """Image to pass to a runtime if its overlay lies below `at`."""
    return replace(image, form="folder", source=overlay_folder(at) / OVERLAY_ROOT)


def in_overlay(argv: Argv, image: Image, init: PurePath) -> Argv:
    """A runtime's command line, run in namespaces with the overlay if the image has one."""
    folder = image.source.parent
    if (folder.name, image.source.name) != (_FOLDER, OVERLAY_ROOT):
        return argv
    return (str(init), "--overlay", str(folder), "--", *argv)
