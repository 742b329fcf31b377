"""This machine, as a node."""

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Unpack

from flowos.engine._ready import Ready, bare_ready, refuse_kernel
from flowos.engine.environments._inside import home_folder, launch_variables
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.launch._session import LaunchSession

if TYPE_CHECKING:  # `flowos exec` begins here: what it does not need is loaded when it is asked for
    from flowos.engine._device_hold import BoardHold, DeviceHold, WantedBoard
    from flowos.engine._ledger import ResourceLedger, Resources
    from flowos.engine._look import Look
    from flowos.engine.devices._slice_devices import SliceDevices
    from flowos.engine.environments._mpi import MpiCheck
    from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, Stdin
    from flowos.engine.launch._running import RunningProcess
    from flowos.model import (
        Environment,
        Facts,
        Fpga,
        Image,
        Launch,
        LinuxKernel,
        NodeDevice,
        Outcome,
        Pairs,
        Usage,
    )


class Here:
    """The machine that this process runs on. See `Node` for what its methods promise.

    Two of them share nothing. name: of another node that this machine stands in for.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name or os.uname().nodename
        self._ledger: ResourceLedger | None = None
        self._first = threading.Lock()
        self._session = LaunchSession()
        self._runtimes = Runtimes(self._session)
        self._checked: MpiCheck | None = None
        self._fpgas: SliceDevices | None = None
        _nodes.add(self)

    @property
    def is_here(self) -> bool:
        return True

    @property
    def our_address(self) -> str:
        return "127.0.0.1"

    @property
    def job(self) -> str:
        return ""

    @property
    def switch(self) -> str:
        return ""

    def steps(self) -> tuple[str, ...]:
        return ()

    def used(self) -> "Usage | None":
        return None

    def why_unreachable(self, ending_seconds: float = 0.0) -> str:  # noqa: ARG002
        return ""

    def neighbours(self) -> tuple["Here", ...]:
        return ()

    @property
    def ledger(self) -> "ResourceLedger":
        from flowos.engine._ledger import ResourceLedger

        with self._first:  # two threads that open their first slices at once share one
            if self._ledger is None:
                self._ledger = ResourceLedger(self.resources())
            return self._ledger

    def resources(self) -> "Resources":
        from flowos.engine._ledger import Resources
        from flowos.engine.local._processors import memory_bytes, usable_cpus, usable_gpus

        gpus = usable_gpus()
        devices = (("gpu", gpus),) if gpus else ()
        held = self._fpgas.numbers() if self._fpgas else ()
        return Resources(tuple(usable_cpus()), memory_bytes(), (*devices, *held))

    def architecture(self) -> str:
        return os.uname().machine

    def compile_target(self) -> str:
        return ""

    def command_file_digests(self, argv: Sequence[str], path: str | None) -> tuple[bytes, ...]:
        from flowos.engine.cluster.files_there import files_of, path_of_programs
        from flowos.engine.results._file_digest import file_digest

        return tuple(file_digest(Path(name)) for name in files_of(argv, path_of_programs(path)))

    def hold_devices(self, needed: Mapping[str, int]) -> "DeviceHold":
        from flowos.engine._device_hold import NO_DEVICES

        return self._fpgas.hold(needed, self.ledger) if self._fpgas else NO_DEVICES

    def hold_boards(self, wanted: "Sequence[WantedBoard]") -> "BoardHold":
        from flowos.engine.devices._slice_devices import SliceDevices

        return (self._fpgas or SliceDevices()).hold_boards(wanted)

    def facts(self) -> "Facts":
        return self._runtimes.facts()

    def gpu_devices(self) -> tuple[str, ...]:
        from flowos.engine.environments._devices import gpu_devices

        return gpu_devices()

    def ready(self, env: "Environment", *, seen: bool = False) -> Ready:
        """seen: the image is as `image_at` has just given it, and is not looked at again."""
        refuse_kernel(env)
        if env.image is None:
            return bare_ready(env)
        from flowos.engine.environments._image_ready import image_ready

        return Ready(*image_ready(env, env.image, self._runtimes, seen=seen))

    def variables(self, env: "Environment", task: "Pairs" = (), *, inherit: bool = True) -> "Pairs":
        return launch_variables(self._session, env, task, inherit=inherit)

    def prepare(self, launch: "Launch", **options: "Unpack[LaunchKeywords]") -> "PreparedLaunch":
        launcher, mpirun = options.get("launcher", "direct"), options.get("mpirun", "")
        self.check_mpi(launch.env, launcher, mpirun, launch.variables)
        return self._runtimes.prepare(launch, **options)

    def start(
        self, launch: "Launch", *, stdin: "Stdin" = None, **options: "Unpack[LaunchKeywords]"
    ) -> "RunningProcess":
        return self.prepare(launch, **options).start(stdin=stdin)

    def run(
        self, launch: "Launch", *, stdin: "Stdin" = None, **options: "Unpack[LaunchKeywords]"
    ) -> "Outcome":
        return self.prepare(launch, **options).run(stdin=stdin)

    def check_mpi(
        self, env: "Environment", launcher: str, mpirun: str = "", variables: "Pairs" = ()
    ) -> None:
        if env.image is not None and launcher != "direct":
            if env.boot:
                from flowos.engine.launch._bootable import refuse_ranks

                refuse_ranks(env)
            self._mpi.check(env, launcher, mpirun, variables)

    def folder(self) -> Path:
        return self._session.folder()

    def stage_in(self, path: Path, *, everywhere: bool = False) -> Path:  # noqa: ARG002
        return path

    def stage_out(self, path: Path) -> Path | None:
        return path if path.exists() else None

    def stage_notes(self) -> tuple[str, ...]:
        return ()

    def look(self, storage: Path | None = None) -> "Look":
        from flowos.engine.local._state import look

        return look(storage=storage)

    # ---- from here on, what a pool's nodes are not asked ----

    def know_fpgas(self, fpgas: "Sequence[Fpga]") -> None:
        """What flowos.toml names: slices may need it from now on, and what the kernel names."""
        from flowos.engine.devices._slice_devices import SliceDevices

        with self._first:
            if self._fpgas is None:
                self._fpgas = SliceDevices()
        self._fpgas.know(self.devices(fpgas, ("openfpgaloader", "fpga-manager"), ask=False))

    def fpga_names(self) -> tuple[str, ...]:
        """Those that slices may need, whatever program uses them now."""
        return tuple(device.name for device in self._fpgas.known) if self._fpgas else ()

    def devices(
        self, fpgas: "Sequence[Fpga]", drivers: Sequence[str] = (), *, ask: bool = True
    ) -> "tuple[NodeDevice, ...]":
        """What these drivers find, all by default. ask: tools too, not the kernel alone."""
        from flowos.drivers import DEVICES, DeviceFacts, known_devices
        from flowos.engine.devices._found import find_devices
        from flowos.engine.environments._devices import cdi_specs

        has = self.resources()
        facts = DeviceFacts(
            cores=len(has.cpus),
            gpus=tuple(map(str, dict(has.devices).get("gpu", ()))),
            cdi=known_devices(cdi_specs()) if ask else (),
            fpgas=tuple(fpgas),
        )
        return find_devices(facts, drivers or tuple(DEVICES), ask=ask)

    def run_in_foreground(self, prepared: "PreparedLaunch") -> "Outcome":
        """Start it with our streams and terminal and wait for its end. In the main thread only.

        Raises LaunchFailed if it cannot be started.
        """
        from flowos.engine.launch._foreground import run_in_foreground

        return run_in_foreground(prepared)

    def usual_mpirun(self, launcher: str) -> str:
        """The program that starts ranks of this launcher's MPI; "": as the launcher names it."""
        return self._mpi.usual_mpirun(launcher)

    def wrong_mpirun(self, launcher: str, mpirun: str = "") -> str:
        """That it is of another MPI than the launcher's name says, and what to do; or "".

        Raises LaunchFailed if there is no such mpirun.
        """
        return self._mpi.wrong_mpirun(launcher, mpirun)

    def image_at(self, path: Path, *, digest: bool = True) -> "Image":
        """The image at a path, read whole where it was not read before.

        digest: if it is to be read. Raises EnvironmentRefused if it is none.
        """
        from flowos.engine.environments._images import image_at

        return image_at(path, digest=digest)

    def unpack_squashfs(self, image: Path, to: Path) -> None:
        """Make the folder `to` of it, without owners. Raises ValueError if it cannot be."""
        from flowos.engine.environments._squashfs import unpack_squashfs

        unpack_squashfs(image, to, self._session)

    def remove_unpacked(self, digest: str) -> str:
        """Remove what was unpacked of an image; what was done, "" where there was nothing."""
        from flowos.engine.environments._unpacked import remove_unpacked

        return remove_unpacked(digest)

    def kernels(self) -> "tuple[LinuxKernel, ...]":
        """Those with which an image can be booted, by name."""
        from flowos.engine.environments._kernels import kernels

        return kernels()

    def kernels_folder(self) -> Path:
        """The library of kernels, which need not be there."""
        from flowos.engine.environments._kernels import kernels_folder

        return kernels_folder()

    def write_node_initrd(self, modules: Path, image: Path, to: IO[bytes]) -> None:
        """With which a node boots into the image. modules: those of a kernel of the library."""
        from flowos.engine.environments._kernels import write_node_initrd

        write_node_initrd(modules, image, self._session.init_program(), to)

    def home(self) -> Path | None:
        """The home folder of this user; None where it is unknown."""
        return home_folder()

    def await_unused(self, folder: Path, seconds: float) -> None:
        """Wait until no process here names this folder, but `seconds` at most."""
        from flowos.engine.launch._orphans import await_unused

        await_unused(folder, seconds)

    def left_alone(self) -> tuple[Path, ...]:
        """Folders of processes that are gone, which cannot be judged from here."""
        from flowos.engine.launch._run_folders import left_alone

        return left_alone(self._session.folder())

    @property
    def _mpi(self) -> "MpiCheck":
        from flowos.engine.environments._mpi import MpiCheck

        if self._checked is None:
            self._checked = MpiCheck(self._runtimes)
        return self._checked

    def _begin_in_child(self) -> None:
        """Nothing of what the parent runs is running."""
        self._first = threading.Lock()
        self._fpgas = None
        if self._ledger is not None:
            self._ledger.reset()


_nodes: "weakref.WeakSet[Here]" = weakref.WeakSet()  # for the fork hooks, which get no node


_this = Here()


def here() -> Here:
    """This machine, the same for all slices of this process."""
    return _this


def _begin_in_child() -> None:
    for node in tuple(_nodes):
        node._begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)
