"""The only room with processes, sockets, sleep and clock."""

from flowos.engine._clock import now, utc
from flowos.engine._launching import Prepared, own_variables, prepare, run, start
from flowos.engine._running import Running
from flowos.engine._state import Look, look, state_between

__all__ = [
    "Look",
    "Prepared",
    "Running",
    "look",
    "now",
    "own_variables",
    "prepare",
    "run",
    "start",
    "state_between",
    "utc",
]
