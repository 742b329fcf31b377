"""Where a worker in an image, or on another node, finds its file and the modules of ours."""

import importlib
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from flowos.engine._node import Node
from flowos.engine.flow._folders import why_of
from flowos.engine.flow._inside import Surroundings
from flowos.engine.workers import stream_worker, worker
from flowos.model import LaunchFailed

_making = threading.Lock()


def worker_file(node: Node) -> Path:
    """The worker's file under a name that is seen in every environment; made once per session.

    Next to it lies cloudpickle, by which functions without a name cross: images seldom have it.
    Raises LaunchFailed if it cannot be written.
    """
    folder = node.folder() / "python"
    try:
        with _making:
            if not folder.exists():
                with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                    made = Path(temporary) / "python"
                    _fill(made)
                    made.rename(folder)
    except (OSError, shutil.Error) as error:
        raise LaunchFailed(
            f"cannot write into {folder.parent}, which node {node.name} sees: {why_of(error)}"
        ) from error
    return folder / Path(worker.__file__).name


def path_there(around: Surroundings) -> list[str | None]:
    """For sys.path there: ours for the worker, its own, and our folders of a person's code."""
    return [str(worker_file(around.node).parent), None, *_shared(around)]


def _fill(folder: Path) -> None:
    folder.mkdir()
    for module in (worker, stream_worker):
        shutil.copy(str(module.__file__), folder)
    package = Path(str(importlib.import_module("cloudpickle").__file__)).parent
    (folder / package.name).mkdir()
    for file in package.glob("*.py"):
        shutil.copy(file, folder / package.name)


def _shared(around: Surroundings) -> list[str]:
    """What lies with our own Python is for our C library, and stays out."""
    ours = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    folders = [Path(word).absolute() for word in sys.path if os.path.isdir(word or ".")]  # noqa: PTH112
    found = [around.inside(f) for f in folders if not any(f.is_relative_to(o) for o in ours)]
    return [str(path) for path in found if path is not None]
