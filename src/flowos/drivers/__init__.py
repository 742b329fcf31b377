"""Runtimes, launchers, allocators, devices: build command lines, read answers; run nothing."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_base": "Launcher LinkStep MpiFamily Reason RunDir Runtime SetupStep",
    "_bitstreams": "bitstream_incompatibility read_bitstream",
    "_cdi": (
        "CdiSpec Placed device_edits draws every_gpu known_devices place_devices read_cdi_spec "
        "specs_of"
    ),
    "_error_translation": "explain",
    "_devices": (
        "StepAnswers CopyStep DeviceDriver DeviceFacts DeviceStep DeviceWork FilesStep MISSING "
        "NOT_ALLOWED ScanStep StepAnswer TOO_LATE ToolStep WriteStep"
    ),
    "_elf": "needed_libraries",
    "_exit_status": "Seen StoppedBy classify_end read_progress",
    "_guests": "Connection GuestDriver GuestPlan GuestWords",
    "_inside": "SHARED path_inside path_outside variables_inside with_devices",
    "_mpi_versions": (
        "ASKS_INSIDE MpiSaid family_of incompatibility mpi_said mpis_in_files"
        " other_mpi wrong_mpirun"
    ),
    "_overlay": "in_overlay overlaid",
    "_tables": (
        "BOOTING DEVICES GUESTS LAUNCHERS RUNTIMES RUNTIME_PROGRAMS bind_for_us "
        "device_driver_named guest_named launcher_named runtime_named"
    ),
    "runtimes.qemu": "kernel_line",
}

if TYPE_CHECKING:
    from flowos.drivers._base import (
        Launcher as Launcher,
        LinkStep as LinkStep,
        MpiFamily as MpiFamily,
        Reason as Reason,
        RunDir as RunDir,
        Runtime as Runtime,
        SetupStep as SetupStep,
    )
    from flowos.drivers._bitstreams import (
        bitstream_incompatibility as bitstream_incompatibility,
        read_bitstream as read_bitstream,
    )
    from flowos.drivers._cdi import (
        CdiSpec as CdiSpec,
        Placed as Placed,
        device_edits as device_edits,
        draws as draws,
        every_gpu as every_gpu,
        known_devices as known_devices,
        place_devices as place_devices,
        read_cdi_spec as read_cdi_spec,
        specs_of as specs_of,
    )
    from flowos.drivers._error_translation import (
        explain as explain,
    )
    from flowos.drivers._devices import (
        MISSING as MISSING,
        NOT_ALLOWED as NOT_ALLOWED,
        TOO_LATE as TOO_LATE,
        StepAnswers as StepAnswers,
        CopyStep as CopyStep,
        DeviceDriver as DeviceDriver,
        DeviceFacts as DeviceFacts,
        DeviceStep as DeviceStep,
        DeviceWork as DeviceWork,
        FilesStep as FilesStep,
        ScanStep as ScanStep,
        StepAnswer as StepAnswer,
        ToolStep as ToolStep,
        WriteStep as WriteStep,
    )
    from flowos.drivers._elf import (
        needed_libraries as needed_libraries,
    )
    from flowos.drivers._exit_status import (
        Seen as Seen,
        StoppedBy as StoppedBy,
        classify_end as classify_end,
        read_progress as read_progress,
    )
    from flowos.drivers._guests import (
        Connection as Connection,
        GuestDriver as GuestDriver,
        GuestPlan as GuestPlan,
        GuestWords as GuestWords,
    )
    from flowos.drivers._inside import (
        SHARED as SHARED,
        path_inside as path_inside,
        path_outside as path_outside,
        variables_inside as variables_inside,
        with_devices as with_devices,
    )
    from flowos.drivers._mpi_versions import (
        ASKS_INSIDE as ASKS_INSIDE,
        MpiSaid as MpiSaid,
        family_of as family_of,
        incompatibility as incompatibility,
        mpi_said as mpi_said,
        mpis_in_files as mpis_in_files,
        other_mpi as other_mpi,
        wrong_mpirun as wrong_mpirun,
    )
    from flowos.drivers._overlay import (
        in_overlay as in_overlay,
        overlaid as overlaid,
    )
    from flowos.drivers._tables import (
        BOOTING as BOOTING,
        DEVICES as DEVICES,
        GUESTS as GUESTS,
        LAUNCHERS as LAUNCHERS,
        RUNTIME_PROGRAMS as RUNTIME_PROGRAMS,
        RUNTIMES as RUNTIMES,
        bind_for_us as bind_for_us,
        device_driver_named as device_driver_named,
        guest_named as guest_named,
        launcher_named as launcher_named,
        runtime_named as runtime_named,
    )
    from flowos.drivers.runtimes.qemu import (
        kernel_line as kernel_line,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
