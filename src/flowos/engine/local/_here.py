"""This machine, as a node."""

import os
import threading
from functools import cache, partial
from pathlib import Path
from typing import Unpack

from flowos.engine._ledger import ResourceLedger, Resources
from flowos.engine._look import Look
from flowos.engine._ready import Ready
from flowos.engine.environments import _start
from flowos.engine.environments._devices import gpu_devices
from flowos.engine.environments._inside import launch_variables
from flowos.engine.environments._mpi import check_mpi
from flowos.engine.environments._ready import make_ready
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, Stdin
from flowos.engine.launch._run_folders import session_folder
from flowos.engine.launch._running import RunningProcess
from flowos.engine.local import _state
from flowos.engine.local._processors import gpu_count, memory_bytes, usable_cpus
from flowos.model import Environment, Facts, Launch, Pairs


class Here:
    """The machine that this process runs on. See `Node` for what its methods promise.

    name, ledger: of another node that this machine stands in for, as a fake one.
    """

    def __init__(self, name: str = "", ledger: ResourceLedger | None = None) -> None:
        self.name = name or os.uname().nodename
        self.ledger = ledger or ResourceLedger(self.resources())

    def resources(self) -> Resources:
        return Resources(tuple(usable_cpus()), memory_bytes(), gpu_count())

    def facts(self) -> Facts:
        from flowos.engine.environments._usability import runtime_facts  # slow to import

        return runtime_facts()

    def has(self, path: str) -> bool:
        return Path(path).exists()

    def gpu_devices(self) -> tuple[str, ...]:
        return gpu_devices()

    def ready(self, env: Environment) -> Ready:
        return make_ready(env)

    def variables(self, env: Environment, task: Pairs = (), *, inherit: bool = True) -> Pairs:
        return launch_variables(env, task, inherit=inherit)

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        launcher, starter = options.get("launcher", "direct"), options.get("starter", "")
        check_mpi(launch.env, launcher, starter, launch.variables)
        return _start.prepare(launch, **options)

    def start(
        self, launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]
    ) -> RunningProcess:
        return self.prepare(launch, **options).start(stdin=stdin)

    def folder(self) -> Path:
        return session_folder()

    def look(self, storage: Path | None = None) -> Look:
        return _state.look(storage=storage)


_first = threading.Lock()


def here() -> Here:
    """This machine, the same for all slices of this process."""
    with _first:  # two threads that open their first slices at once share one ledger
        return _here()


@cache
def _here() -> Here:
    node = Here()
    os.register_at_fork(after_in_child=partial(_begin_in_child, node))
    return node


def _begin_in_child(node: Here) -> None:
    global _first
    _first = threading.Lock()
    node.ledger.reset()
