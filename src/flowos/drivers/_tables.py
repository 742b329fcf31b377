"""The drivers by name. A new one is a file, and a line here."""

from collections.abc import Callable, Mapping
from functools import partial

from flowos.drivers._base import Launcher, Runtime
from flowos.drivers.launchers.direct import Direct
from flowos.drivers.launchers.mpich import Hydra
from flowos.drivers.launchers.openmpi import OpenMpi
from flowos.drivers.runtimes.apptainer import Apptainer
from flowos.drivers.runtimes.bare import Bare
from flowos.drivers.runtimes.bubblewrap import Bubblewrap
from flowos.drivers.runtimes.charliecloud import Charliecloud
from flowos.drivers.runtimes.podman import Podman
from flowos.model import LaunchFailed

RUNTIMES: Mapping[str, Runtime] = {
    "bare": Bare(),
    "ch-run": Charliecloud(),
    "bwrap": Bubblewrap(),
    "apptainer": Apptainer(),
    "podman": Podman(),
}
"""By name; who says "auto" gets the first that can enter the image: the fastest to start."""

_HYDRA_PASSES = Hydra("mpich").passes
_BIND_TO_CORE = ("-bind-to", "core:{cores}")

LAUNCHERS: Mapping[str, Callable[..., Launcher]] = {
    "direct": Direct,
    "openmpi": OpenMpi,
    "mpich": partial(Hydra, "mpich", _BIND_TO_CORE),
    "mvapich": partial(Hydra, "mvapich", _BIND_TO_CORE, (*_HYDRA_PASSES, "MV2_", "MVP_")),
    "intel": partial(
        Hydra,
        "intel",
        ("-genv", "I_MPI_PIN_DOMAIN", "{cores}:compact"),
        (*_HYDRA_PASSES, "I_MPI_"),
    ),
    "other": partial(Hydra, "other", guards=()),
}
"""Name -> what makes a launcher of `starter` (path of its mpirun) and `oversubscribe`."""


def runtime_named(name: str) -> Runtime:
    if name not in RUNTIMES:
        raise LaunchFailed(f"unknown runtime {name!r}; known are {_listed(RUNTIMES)}")
    return RUNTIMES[name]


def launcher_named(name: str, starter: str = "", *, oversubscribe: bool = False) -> Launcher:
    """The launcher; without `starter` the usual name of its program, to be found in PATH."""
    if name not in LAUNCHERS:
        raise LaunchFailed(f"unknown launcher {name!r}; known are {_listed(LAUNCHERS)}")
    if name == "direct":
        return Direct()
    given = {"starter": starter} if starter else {}
    return LAUNCHERS[name](oversubscribe=oversubscribe, **given)


def _listed(table: Mapping[str, object]) -> str:
    return ", ".join(sorted(table))
