"""Runtimes, launchers, allocators: build command lines, read answers; run nothing."""

from flowos.drivers._base import Launcher, Reason, RunDir, Runtime, SetupStep
from flowos.drivers._cdi import (
    CdiSpec,
    Placed,
    device_edits,
    draws,
    every_gpu,
    place_devices,
    read_cdi_spec,
    specs_of,
)
from flowos.drivers._complaints import explain
from flowos.drivers._ends import Seen, StoppedBy, judge
from flowos.drivers._inside import SHARED, path_inside, path_outside, variables_inside, with_devices
from flowos.drivers._mpi_versions import (
    ASKS_INSIDE,
    MpiFamily,
    MpiSaid,
    family_of,
    misfit,
    mpi_said,
    mpis_in_files,
    wrong_starter,
)
from flowos.drivers._overlay import OVERLAY_ROOT, in_overlay, overlaid, overlay_folder
from flowos.drivers._tables import LAUNCHERS, RUNTIMES, launcher_named, runtime_named

__all__ = [
    "ASKS_INSIDE",
    "LAUNCHERS",
    "OVERLAY_ROOT",
    "RUNTIMES",
    "SHARED",
    "CdiSpec",
    "Launcher",
    "MpiFamily",
    "MpiSaid",
    "Placed",
    "Reason",
    "RunDir",
    "Runtime",
    "Seen",
    "SetupStep",
    "StoppedBy",
    "device_edits",
    "draws",
    "every_gpu",
    "explain",
    "family_of",
    "in_overlay",
    "judge",
    "launcher_named",
    "misfit",
    "mpi_said",
    "mpis_in_files",
    "overlaid",
    "overlay_folder",
    "path_inside",
    "path_outside",
    "place_devices",
    "read_cdi_spec",
    "runtime_named",
    "specs_of",
    "variables_inside",
    "with_devices",
    "wrong_starter",
]
