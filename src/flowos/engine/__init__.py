"""The only room with processes, sockets, sleep and clock."""

from flowos.engine._clock import now, utc, utc_of
from flowos.engine._foreground import run_in_foreground
from flowos.engine._launch_leftovers import await_unused
from flowos.engine._launching import (
    Prepared,
    composed,
    own_variables,
    prepare,
    run,
    start,
)
from flowos.engine._own_folders import ON_DISK, PASSABLE, locked, own_folder, remove_tree
from flowos.engine._run_folder import left_alone, session_folder
from flowos.engine._running import Running
from flowos.engine._state import Look, io_pressure_between, look, state_between
from flowos.engine._turns import run_in_turns
from flowos.engine.environments._devices import gpu_devices
from flowos.engine.environments._images import image_at
from flowos.engine.environments._inside import home_folder, launch_variables
from flowos.engine.environments._mpi import check_mpi, usual_starter
from flowos.engine.environments._ready import Ready, make_ready
from flowos.engine.environments._squashfs import unpack_squashfs
from flowos.engine.environments._unpacked import remove_unpacked
from flowos.engine.environments._usability import runtime_facts, usability

__all__ = [
    "ON_DISK",
    "PASSABLE",
    "Look",
    "Prepared",
    "Ready",
    "Running",
    "await_unused",
    "check_mpi",
    "composed",
    "gpu_devices",
    "home_folder",
    "image_at",
    "io_pressure_between",
    "launch_variables",
    "left_alone",
    "locked",
    "look",
    "make_ready",
    "now",
    "own_folder",
    "own_variables",
    "prepare",
    "remove_tree",
    "remove_unpacked",
    "run",
    "run_in_foreground",
    "run_in_turns",
    "runtime_facts",
    "session_folder",
    "start",
    "state_between",
    "unpack_squashfs",
    "usability",
    "usual_starter",
    "utc",
    "utc_of",
]
