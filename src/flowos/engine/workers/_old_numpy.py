"""Arrays between a NumPy of version 1 in an image and ours. A worker there is sent this file.

NumPy 2 gave its inner modules new names, by which pickled arrays ask for what makes them again.
"""

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Sequence

_OLD, _NEW = "numpy.core", "numpy._core"
_KNOWS_BOTH = (1, 26)


def meet_new_names() -> None:
    """In the worker: what is asked for by its new name is what goes by the old one there."""
    sys.meta_path.insert(0, _NewNames())


def meet_old_names() -> None:
    """In this process: NumPy knows the old names, yet warns of each use."""
    try:
        old = importlib.import_module(f"{_OLD}.numeric")
        new = importlib.import_module(f"{_NEW}.numeric")
    except ImportError:  # no NumPy, or a very old or new one
        return
    vars(old).setdefault("_frombuffer", new._frombuffer)


class _NewNames:
    """A finder and loader; their base classes take 4 ms to be imported."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _NEW and not fullname.startswith(f"{_NEW}."):
            return None
        version = getattr(sys.modules["numpy"], "__version__", "")
        if tuple(map(int, version.split(".")[:2])) >= _KNOWS_BOTH:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return importlib.import_module(_OLD + spec.name.removeprefix(_NEW))

    def exec_module(self, module: types.ModuleType) -> None:
        """It has run under its old name."""
