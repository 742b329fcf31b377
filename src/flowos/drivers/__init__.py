"""Runtimes, launchers, allocators: build command lines, read answers; run nothing."""

from flowos.drivers._base import Gang, Launcher, Reason, RunDir, Runtime, SetupStep
from flowos.drivers._ends import Seen, StoppedBy, judge
from flowos.drivers._tables import LAUNCHERS, RUNTIMES, launcher_named, runtime_named

__all__ = [
    "LAUNCHERS",
    "RUNTIMES",
    "Gang",
    "Launcher",
    "Reason",
    "RunDir",
    "Runtime",
    "Seen",
    "SetupStep",
    "StoppedBy",
    "judge",
    "launcher_named",
    "runtime_named",
]
