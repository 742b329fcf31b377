"""The FUSE servers of images in use. A command whose server ends is left without its root."""

from pathlib import Path, PurePath

from flowos.engine.launch._running import RunningProcess
from flowos.model import Image

_serving: dict[PurePath, RunningProcess] = {}


def serves(root: PurePath, server: RunningProcess) -> None:
    """Until `forget`, launches that enter `root` end where this server does."""
    _serving[root] = server


def forget(root: PurePath) -> None:
    _serving.pop(root, None)


def server_for(image: Image | None) -> RunningProcess | None:
    """What shows this image as a folder; an overlay names the folder that it lies over."""
    if image is None or not _serving:
        return None
    beside = Path(image.source).with_name("image")
    return _serving.get(image.source) or (
        _serving.get(beside.readlink()) if beside.is_symlink() else None
    )
