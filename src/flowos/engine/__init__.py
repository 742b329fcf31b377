"""The only room with processes, sockets, sleep and clock."""

from flowos.engine._launching import Prepared, own_variables, prepare, run, start
from flowos.engine._running import Running

__all__ = [
    "Prepared",
    "Running",
    "own_variables",
    "prepare",
    "run",
    "start",
]
