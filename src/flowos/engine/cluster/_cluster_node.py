"""A node that a job holds: what is started there is ended and accounted with the job."""

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Unpack

from flowos.drivers._allocators import KeptNode
from flowos.engine._device_hold import NO_DEVICES, BoardHold, DeviceHold, WantedBoard
from flowos.engine._ledger import ResourceLedger, Resources
from flowos.engine._look import Look, Traffic
from flowos.engine._ready import Ready, bare_ready, refuse_kernel
from flowos.engine.cluster._held_job import HeldJob
from flowos.engine.cluster._node_files import NodeFiles, StagedFiles
from flowos.engine.cluster._node_watch import Echo, NodeWatch
from flowos.engine.cluster._shared_folder import made, remove_if_empty
from flowos.engine.environments._elsewhere import EnvironmentsElsewhere
from flowos.engine.environments._inside import launch_variables
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.launch._orphans import answers_in
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, Stdin
from flowos.engine.launch._run_folders import RunFolders
from flowos.engine.launch._running import RunningProcess, all_running
from flowos.engine.launch._session import Elsewhere, LaunchSession, Starter
from flowos.model import DeviceNumbers, Environment, Facts, Launch, Outcome, Pairs, Usage

_ANSWER_SECONDS, _REPORT_SECONDS = 1.0, 0.2
_GANG_SECONDS = 0.5


class ClusterNode:
    """See `Node`; `prepare` and `check_mpi` are those of a resource manager.

    daemon: gives name, address and port of what starts processes there. job: the nodes that a
    launch may span, this one too. hidden: prefixes of variables that a process of the job has of
    its own. starter: starts launches there, where no command does.
    """

    is_here = False

    def __init__(
        self,
        kept: KeptNode,
        allocation: HeldJob,
        daemon: Callable[[], tuple[str, str, int]],
        job: "JobNodes",
        hidden: tuple[str, ...],
        starter: Starter | None = None,
    ) -> None:
        self.allocation, self._daemon, self._hidden = allocation, daemon, hidden
        self._kept, self._nodes = kept, job
        self._lost_steps: tuple[str, ...] = ()
        base = partial(made, job.base)
        on_launch = partial(job.watch.launched, self)
        elsewhere = Elsewhere(base, len(kept.cpus), starter, on_launch)
        self._session = LaunchSession(elsewhere)
        self._environments = EnvironmentsElsewhere(self, base, job.copies, job.scratch)
        self.folders.lost_image = self._environments.lost_image
        self.ledger = ResourceLedger(self.resources())
        self.files = NodeFiles(self, job.staged)
        job.add(self)

    @cached_property
    def echo(self) -> Echo:
        return Echo(*self._daemon()[1:])

    @property
    def name(self) -> str:
        return self._kept.name

    @property
    def our_address(self) -> str:
        return self._kept.our_address

    @property
    def job(self) -> str:
        return self.allocation.held_job

    @property
    def switch(self) -> str:
        return self._kept.switch

    def steps(self) -> tuple[str, ...]:
        return self._lost_steps or self._nodes.steps(self)

    def used(self) -> Usage | None:
        return self.folders.used

    @property
    def folders(self) -> RunFolders:
        """Of its launches."""
        return self._session.folders

    def neighbours(self) -> "tuple[ClusterNode, ...]":
        return self._nodes.after(self.name)

    def why_unreachable(self, ending_seconds: float = 0.0) -> str:
        """It is lost if its daemon does not answer: nothing starts there any more."""
        if self.folders.lost:
            return f"; node {self.name} is lost"
        if (why := self.allocation.ended(ending_seconds)) is not None:
            self._nodes.said_over.wait(_REPORT_SECONDS)
            return f"; {why}"
        if why := self._silence():
            self._lose(f"no way to its {self._daemon()[0]}: {why}")
            return f"; node {self.name} is lost: {why}"
        return ""

    def answers(self) -> bool:
        """Whether its daemon does."""
        return not self._silence()

    def _silence(self) -> str:
        """Why its daemon does not answer, or ""."""
        try:
            socket.create_connection(self._daemon()[1:], _ANSWER_SECONDS).close()
        except OSError as error:
            silent = isinstance(error, TimeoutError)
            return "it does not answer" if silent else error.strerror or str(error)
        return ""

    def _lose(self, why: str) -> None:
        """What learns of it may wait for the run that found it out."""
        report = threading.Thread(target=self.allocation.lose, args=(self.name, why), daemon=True)
        report.start()
        report.join(_REPORT_SECONDS)

    def say_over(self) -> None:
        """Its job is, and the provider has said so."""
        self._nodes.said_over.set()

    def close(self) -> None:
        """It was given back."""
        self.files.close()
        self._nodes.remove(self.name)
        self.folders.remove()
        self._nodes.copies.close(self.name)
        remove_if_empty(self._nodes.base)

    def give_up(self) -> None:
        """It is lost: what was started there is over."""
        self._lost_steps = self._nodes.steps(self)
        self._nodes.lose(self)

    def resources(self) -> Resources:
        has = self._kept
        gpus: DeviceNumbers = (("gpu", has.gpus),) if has.gpus else ()
        return Resources(has.cpus, has.memory_bytes, (*gpus, *has.devices))

    def architecture(self) -> str:
        return self.files.processor()[0]

    def compile_target(self) -> str:
        return self.files.processor()[1]

    def command_file_digests(self, argv: Sequence[str], path: str | None) -> tuple[bytes, ...]:
        return self.files.command_file_digests(argv, path)

    def hold_devices(self, needed: Mapping[str, int]) -> DeviceHold:  # noqa: ARG002
        """Its cluster holds them."""
        return NO_DEVICES

    def hold_boards(self, wanted: Sequence[WantedBoard]) -> BoardHold:
        """They are loaded by hand."""
        lacks = next((each.label for each in wanted if not each.port), "")
        why = f"task {lacks!r} has no port=, and slices load boards of this machine alone"
        return BoardHold(why * bool(lacks), ports=tuple(each.port for each in wanted))

    def facts(self) -> Facts:
        return self._environments.facts()

    def gpu_devices(self) -> tuple[str, ...]:
        return self._environments.gpu_devices()

    def ready(self, env: Environment) -> Ready:
        refuse_kernel(env)
        return bare_ready(env) if env.image is None else self._environments.ready(env)

    def variables(self, env: Environment, task: Pairs = (), *, inherit: bool = True) -> Pairs:
        """Ours, but for those of a job around us: what starts there has its own."""
        found = launch_variables(self._session, env, task, inherit=inherit)
        return tuple((name, value) for name, value in found if not name.startswith(self._hidden))

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        raise NotImplementedError

    def check_mpi(
        self, env: Environment, launcher: str, mpirun: str = "", variables: Pairs = ()
    ) -> None:
        raise NotImplementedError

    def start(
        self, launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]
    ) -> RunningProcess:
        return self.prepare(launch, **options).start(stdin=stdin)

    def run(
        self, launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]
    ) -> Outcome:
        return self.prepare(launch, **options).run(stdin=stdin)

    def folder(self) -> Path:
        return self._session.folder()

    def stage_in(self, path: Path, *, everywhere: bool = False) -> Path:
        others = self.neighbours() if everywhere else ()
        return self.files.stage_in(path, [other.files for other in others])

    def stage_out(self, path: Path) -> Path | None:
        return self.files.stage_out(path)

    def stage_notes(self) -> tuple[str, ...]:
        return self._nodes.staged.notes

    def look(self, storage: Path | None = None) -> Look:
        """What launches that have ended saw there, each from its start to its end. For storage all
        disks of the node count, as which of them it lies on is not known here."""
        seen = self.folders.seen
        at, ours, cpus = seen.wall_seconds, seen.user_seconds + seen.system_seconds, seen.cpus
        busy, idle, steal = (cpus.busy, cpus.idle, cpus.steal) if cpus else (None, None, None)
        return Look(
            at=at,
            ours=ours,
            busy=busy,
            idle=idle,
            steal=steal,
            throttled=None,
            load=None,
            io_stalled=seen.io_stalled_seconds,
            memory_stalled=seen.memory_stalled_seconds,
            disk=_traffic(seen) if storage else None,
        )


def _traffic(seen: Usage) -> Traffic | None:
    if seen.disk_bytes is None or seen.own_disk_bytes is None:
        return None
    return Traffic(all_bytes=seen.disk_bytes, our_bytes=seen.own_disk_bytes)


class JobNodes:
    """What the nodes of one job share: launches may span them, files are copied for them once.

    base: where their run folders lie. scratch: a folder of each node's own storage, or "".
    Methods may be called from any thread.
    """

    def __init__(self, base: Path, scratch: str = "") -> None:
        self.base, self.scratch = base, scratch
        self.copies = SharedCopies(partial(made, base))
        self.watch = NodeWatch(self.busy)
        self.staged = StagedFiles(base.parents[1], self.copies)
        self.said_over = threading.Event()
        """The provider has said that the job is over: it does before what ran there does."""
        self._lock = threading.Lock()
        self._nodes: dict[str, ClusterNode] = {}

    def busy(self) -> "list[ClusterNode]":
        """Those on which launches run."""
        running = tuple(all_running)
        folders = {each.folders for each in running}
        ranks = {name for each in running for name in each.launch.nodes}
        with self._lock:
            nodes = tuple(self._nodes.values())
        return [node for node in nodes if node.folders in folders or node.name in ranks]

    def add(self, node: ClusterNode) -> None:
        with self._lock:
            self._nodes[node.name] = node

    def remove(self, name: str) -> None:
        """It was given back, or is lost."""
        with self._lock:
            self._nodes.pop(name, None)

    def steps(self, node: ClusterNode) -> tuple[str, ...]:
        """That launches there are, as far as they have said so."""
        there = (
            each
            for each in tuple(all_running)
            if each.folders is node.folders or node.name in each.launch.nodes
        )
        return tuple(step for each in there if (step := answers_in(each.folder).step))

    def lose(self, node: ClusterNode) -> None:
        """What runs there is over; ranks on other nodes would wait for it for ever."""
        node.folders.lost = True
        self.remove(node.name)
        with self._lock:
            others = [each.folders for each in self._nodes.values()]
        for running in tuple(all_running):
            if running.folders is node.folders:
                running.lose(0.0)
            elif node.name in running.launch.nodes and running.folders in others:
                running.lose(_GANG_SECONDS)

    def named(self, name: str) -> ClusterNode | None:
        with self._lock:
            return self._nodes.get(name)

    def after(self, name: str) -> tuple[ClusterNode, ...]:
        """The other nodes that are left, by name, from this one on."""
        with self._lock:
            names = sorted(self._nodes)
            turned = [n for n in names if n > name] + [n for n in names if n < name]
            return tuple(self._nodes[each] for each in turned)
