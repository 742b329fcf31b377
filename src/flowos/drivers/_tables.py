"""The drivers by name. A new one needs a file, and a line here."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from flowos.drivers._base import Launcher, Runtime
from flowos.drivers.launchers.direct import Direct
from flowos.model import Argv, LaunchFailed, SliceRefused

if TYPE_CHECKING:  # commands that need neither guest nor device load none of it
    from flowos.drivers._devices import DeviceDriver
    from flowos.drivers._guests import GuestDriver


class _Loaded(Mapping[str, Runtime]):
    """Creates a driver and imports its module on first access."""

    def __init__(self, places: Mapping[str, tuple[str, ...]]) -> None:
        self._places = places
        self._made: dict[str, Runtime] = {}

    def __getitem__(self, name: str) -> Runtime:
        if name not in self._made:
            module, kind, *_ = self._places[name]
            self._made[name] = getattr(import_module(f"flowos.drivers.runtimes.{module}"), kind)()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


_RUNTIMES: Mapping[str, tuple[str, ...]] = {
    "bare": ("bare", "Bare"),
    "ch-run": ("charliecloud", "Charliecloud", "ch-run"),
    "bwrap": ("bubblewrap", "Bubblewrap", "bwrap"),
    "apptainer": ("apptainer", "Apptainer", "apptainer", "singularity"),
    "podman": ("podman", "Podman", "podman", "crun", "runc", "newuidmap", "newgidmap"),
    "qemu": ("qemu", "Qemu", "qemu-system-x86_64"),
}
"""Name -> module, class, and the programs that a node is searched for: its own, and its helpers."""

RUNTIMES: Mapping[str, Runtime] = _Loaded(_RUNTIMES)
"""Runtimes by name, the fastest to start first; "auto" takes the first that can enter the image."""

RUNTIME_PROGRAMS = tuple(name for _, _, *names in _RUNTIMES.values() for name in names)
"""Those of all runtimes; no driver is loaded for it."""

BOOTING = frozenset({"qemu"})
"""Those with another kernel than the node's: "auto" takes none of them."""

_BIND_TO_CORE = ("-bind-to", "core:{cores}")


def _openmpi(**given: Any) -> Launcher:
    from flowos.drivers.launchers.openmpi import OpenMpi

    return OpenMpi(**given)


def _hydra(name: str, binding: Argv = (), more: tuple[str, ...] = (), **given: Any) -> Launcher:
    """more: prefixes that it forwards in addition to those of every Hydra."""
    from flowos.drivers.launchers.mpich import Hydra

    return Hydra(name, binding, (*Hydra(name).env_forwarded, *more), **given)


def _srun(mpi: str, **given: Any) -> Launcher:
    from flowos.drivers.launchers.srun import Srun

    return Srun(mpi=mpi, **given)


LAUNCHERS: Mapping[str, Callable[..., Launcher]] = {
    "direct": Direct,
    "openmpi": _openmpi,
    "mpich": partial(_hydra, "mpich", _BIND_TO_CORE),
    "mvapich": partial(_hydra, "mvapich", _BIND_TO_CORE, ("MV2_", "MVP_")),
    "intel": partial(
        _hydra, "intel", ("-genv", "I_MPI_PIN_DOMAIN", "{cores}:compact"), ("I_MPI_",)
    ),
    "other": partial(_hydra, "other", guards=(), family=None),
    "srun": partial(_srun, ""),
    "srun-openmpi": partial(_srun, "openmpi"),
    "srun-mpich": partial(_srun, "mpich"),
}
"""Name -> factory of a launcher; keywords `mpirun` (its path), `oversubscribe`; of srun `job`."""


def runtime_named(name: str) -> Runtime:
    if name not in RUNTIMES:
        raise LaunchFailed(f"unknown runtime {name!r}; known are {_listed(RUNTIMES)}")
    return RUNTIMES[name]


def bind_for_us(runtime: str, source: str, target: str) -> tuple[str, str]:
    """A bind that FlowOS adds by itself; read-only if the runtime supports it."""
    return source, target + ":ro" * RUNTIMES[runtime].traits.binds_read_only


def launcher_named(
    name: str, mpirun: str = "", *, oversubscribe: bool = False, job: str = ""
) -> Launcher:
    """The launcher. Without `mpirun`, the default name of its program is looked up in PATH.

    job: of which srun starts a step.
    """
    if name not in LAUNCHERS:
        raise LaunchFailed(f"unknown launcher {name!r}; known are {_listed(LAUNCHERS)}")
    if name == "direct":
        return Direct()
    given = {"mpirun": mpirun, "job": job}
    return LAUNCHERS[name](oversubscribe=oversubscribe, **{n: v for n, v in given.items() if v})


GUESTS = ("dask", "jupyter", "ray", "spark")


def guest_named(name: str) -> "GuestDriver":
    if name not in GUESTS:
        raise SliceRefused(f"guest {name!r}: expected one of {', '.join(GUESTS)}")
    driver: GuestDriver = getattr(
        import_module(f"flowos.drivers.guests.{name}"), name.capitalize()
    )()
    return driver


DEVICES = {
    "cpu": ("cpu", "Cpu"),
    "opencl": ("opencl", "OpenCl"),
    "cuda": ("cuda", "Cuda"),
    "openfpgaloader": ("openfpgaloader", "OpenFpgaLoader"),
    "fpga-manager": ("fpga_manager", "FpgaManager"),
    "xrt": ("xrt", "Xrt"),
}
"""Drivers of devices: name -> module and class."""


def device_driver_named(name: str) -> "DeviceDriver":
    module, kind = DEVICES[name]
    driver: DeviceDriver = getattr(import_module(f"flowos.drivers.devices.{module}"), kind)()
    return driver


def _listed(table: Mapping[str, object]) -> str:
    return ", ".join(sorted(table))
