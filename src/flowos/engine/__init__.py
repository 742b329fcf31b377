"""The only room with processes, sockets, sleep and clock."""

from flowos.engine._clock import now, utc
from flowos.engine._environment import Ready, make_ready
from flowos.engine._images import image_at
from flowos.engine._launching import Prepared, own_variables, prepare, run, start
from flowos.engine._running import Running
from flowos.engine._state import Look, look, state_between
from flowos.engine._usability import runtime_facts, usability

__all__ = [
    "Look",
    "Prepared",
    "Ready",
    "Running",
    "image_at",
    "look",
    "make_ready",
    "now",
    "own_variables",
    "prepare",
    "run",
    "runtime_facts",
    "start",
    "state_between",
    "usability",
    "utc",
]
