"""Bodies of tasks in other languages: made where they run, and called with arrays."""

from flowos.engine.bodies._cxx import cxx

__all__ = ["cxx"]
