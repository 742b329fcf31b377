"""The only room with processes, sockets, sleep and clock."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_ask": "report_starts which",
    "_alone": "alone_on in_a_task in_on_progress refusing_runs",
    "_clock": "now utc utc_of worked",
    "_flow_slice": "FlowSlice",
    "_folder_room": "FolderRoom SeenRoom room_here room_on_a_node",
    "_growing_slice": "GrowingSlice",
    "_held_slice": "HeldSlice",
    "_leases": "new_slice_id",
    "_look": "EnergyCounter Look io_pressure_between state_between",
    "_metrics_server": "MetricsServer",
    "_node": "Node",
    "_open_slice": "open_slice",
    "_options": "Flowing SliceOptions Workers",
    "_page_guard": "PageAnswer PageRequest",
    "_page_server": "PageServer",
    "_processor": "processor_lines",
    "_provider": "NEVER CancelToken Held HoldEvent OnHoldEvent Provider ignore",
    "_providers": "PROVIDERS provider_of",
    "_ray_slice": "RaySlice",
    "_ready": "Ready",
    "_requests": "RequestHandler RequestListener request",
    "_waiting_tasks": "waiting_tasks",
    "launch._capture": "Capture",
    "launch._detached": "start_detached",
    "devices._device_file": "owner_words",
    "devices._found": "state_of",
    "devices._held_device": "HeldDevice",
    "bodies._bitstream": "bitstream",
    "bodies._compile": "compiler_path",
    "bodies._cuda": "cuda",
    "bodies._cxx": "cxx",
    "bodies._hdl": "hdl hdl_packages",
    "bodies._julia": "julia julia_download",
    "bodies._masks": "masked_words",
    "bodies._nvrtc": "nvrtc_version",
    "bodies._opencl": "opencl",
    "bodies._opencl_engine": "opencl_devices",
    "bodies._r": "r r_package",
    "bodies._xdma_streams": "xdma_cards",
    "cloud._machines": "Machines",
    "cloud._open_cloud": "open_cloud",
    "cluster._shared_folder": "check_shared_folder",
    "environments._disk_cache": "cached keep",
    "flow._failures": "RemoteTraceback remedy_of",
    "flow._progress": "ProgressWatch",
    "flow._runs": "OnStage Event",
    "flow._slice": "Slice",
    "flow._submitted": "SubmittedRun as_completed",
    "flow._usage": "MAX_FAILURES OnUsage SliceUsage",
    "guests._guest": "Guest",
    "launch._interleaved": "run_interleaved",
    "launch._launch_group": "LaunchGroup",
    "launch._prepared": "PreparedLaunch",
    "launch._private_dirs": "ON_DISK PASSABLE locked own_folder remove_tree",
    "launch._running": "RunningProcess",
    "local._fake_provider": "FakeProvider",
    "local._here": "Here here",
    "local._local_provider": "LocalProvider",
    "results._file_digest": "copy_file file_digest",
    "results._journal": "Journal",
    "results._record": "KeptResult",
    "results._slice_results": "results_folder",
    "results._value_digest": "NoDigest",
    "sge._allocation": "cancel_sge_jobs",
    "slurm._deployed": "slurm_deployed",
    "slurm._leased": "slurm_renewed",
    "slurm._pool_users": "slurm_users",
    "slurm._power_saving": "PowerSaving",
    "slurm._slice_jobs": "cancel_slurm_jobs slurm_accounts slurm_job_end",
    "slurm._slice_wait": "slurm_wait",
}

if TYPE_CHECKING:
    from flowos.engine._alone import (
        alone_on as alone_on,
        in_a_task as in_a_task,
        in_on_progress as in_on_progress,
        refusing_runs as refusing_runs,
    )
    from flowos.engine._clock import (
        now as now,
        utc as utc,
        utc_of as utc_of,
        worked as worked,
    )
    from flowos.engine._flow_slice import (
        FlowSlice as FlowSlice,
    )
    from flowos.engine._folder_room import (
        FolderRoom as FolderRoom,
        SeenRoom as SeenRoom,
        room_here as room_here,
        room_on_a_node as room_on_a_node,
    )
    from flowos.engine._growing_slice import (
        GrowingSlice as GrowingSlice,
    )
    from flowos.engine._held_slice import (
        HeldSlice as HeldSlice,
    )
    from flowos.engine._leases import (
        new_slice_id as new_slice_id,
    )
    from flowos.engine._look import (
        EnergyCounter as EnergyCounter,
        Look as Look,
        io_pressure_between as io_pressure_between,
        state_between as state_between,
    )
    from flowos.engine._metrics_server import (
        MetricsServer as MetricsServer,
    )
    from flowos.engine._node import (
        Node as Node,
    )
    from flowos.engine._open_slice import open_slice as open_slice
    from flowos.engine._options import (
        Flowing as Flowing,
        SliceOptions as SliceOptions,
        Workers as Workers,
    )
    from flowos.engine._page_guard import (
        PageAnswer as PageAnswer,
        PageRequest as PageRequest,
    )
    from flowos.engine._page_server import (
        PageServer as PageServer,
    )
    from flowos.engine._processor import (
        processor_lines as processor_lines,
    )
    from flowos.engine._provider import (
        NEVER as NEVER,
        CancelToken as CancelToken,
        Held as Held,
        HoldEvent as HoldEvent,
        OnHoldEvent as OnHoldEvent,
        Provider as Provider,
        ignore as ignore,
    )
    from flowos.engine._providers import (
        PROVIDERS as PROVIDERS,
        provider_of as provider_of,
    )
    from flowos.engine._ray_slice import RaySlice as RaySlice
    from flowos.engine._ready import (
        Ready as Ready,
    )
    from flowos.engine._requests import (
        RequestHandler as RequestHandler,
        RequestListener as RequestListener,
        request as request,
    )
    from flowos.engine._ask import report_starts as report_starts, which as which
    from flowos.engine._waiting_tasks import (
        waiting_tasks as waiting_tasks,
    )
    from flowos.engine.launch._capture import (
        Capture as Capture,
    )
    from flowos.engine.launch._detached import (
        start_detached as start_detached,
    )
    from flowos.engine.devices._device_file import (
        owner_words as owner_words,
    )
    from flowos.engine.devices._found import (
        state_of as state_of,
    )
    from flowos.engine.devices._held_device import (
        HeldDevice as HeldDevice,
    )
    from flowos.engine.bodies._bitstream import bitstream as bitstream
    from flowos.engine.bodies._compile import compiler_path as compiler_path
    from flowos.engine.bodies._cuda import cuda as cuda
    from flowos.engine.bodies._cxx import cxx as cxx
    from flowos.engine.bodies._hdl import hdl as hdl, hdl_packages as hdl_packages
    from flowos.engine.bodies._julia import julia as julia, julia_download as julia_download
    from flowos.engine.bodies._masks import masked_words as masked_words
    from flowos.engine.bodies._nvrtc import nvrtc_version as nvrtc_version
    from flowos.engine.bodies._opencl import opencl as opencl
    from flowos.engine.bodies._r import r as r, r_package as r_package
    from flowos.engine.bodies._opencl_engine import opencl_devices as opencl_devices
    from flowos.engine.bodies._xdma_streams import xdma_cards as xdma_cards
    from flowos.engine.cloud._machines import (
        Machines as Machines,
    )
    from flowos.engine.cloud._open_cloud import (
        open_cloud as open_cloud,
    )
    from flowos.engine.cluster._shared_folder import (
        check_shared_folder as check_shared_folder,
    )
    from flowos.engine.environments._disk_cache import (
        cached as cached,
        keep as keep,
    )
    from flowos.engine.flow._failures import (
        RemoteTraceback as RemoteTraceback,
        remedy_of as remedy_of,
    )
    from flowos.engine.flow._progress import (
        ProgressWatch as ProgressWatch,
    )
    from flowos.engine.flow._runs import (
        OnStage as OnStage,
        Event as Event,
    )
    from flowos.engine.flow._slice import (
        Slice as Slice,
    )
    from flowos.engine.flow._submitted import (
        SubmittedRun as SubmittedRun,
        as_completed as as_completed,
    )
    from flowos.engine.flow._usage import (
        MAX_FAILURES as MAX_FAILURES,
        OnUsage as OnUsage,
        SliceUsage as SliceUsage,
    )
    from flowos.engine.guests._guest import (
        Guest as Guest,
    )
    from flowos.engine.launch._interleaved import (
        run_interleaved as run_interleaved,
    )
    from flowos.engine.launch._launch_group import (
        LaunchGroup as LaunchGroup,
    )
    from flowos.engine.launch._prepared import (
        PreparedLaunch as PreparedLaunch,
    )
    from flowos.engine.launch._private_dirs import (
        ON_DISK as ON_DISK,
        PASSABLE as PASSABLE,
        locked as locked,
        own_folder as own_folder,
        remove_tree as remove_tree,
    )
    from flowos.engine.launch._running import (
        RunningProcess as RunningProcess,
    )
    from flowos.engine.local._fake_provider import (
        FakeProvider as FakeProvider,
    )
    from flowos.engine.local._here import (
        Here as Here,
        here as here,
    )
    from flowos.engine.local._local_provider import (
        LocalProvider as LocalProvider,
    )
    from flowos.engine.results._file_digest import (
        copy_file as copy_file,
        file_digest as file_digest,
    )
    from flowos.engine.results._journal import (
        Journal as Journal,
    )
    from flowos.engine.results._record import (
        KeptResult as KeptResult,
    )
    from flowos.engine.results._slice_results import (
        results_folder as results_folder,
    )
    from flowos.engine.results._value_digest import (
        NoDigest as NoDigest,
    )
    from flowos.engine.sge._allocation import (
        cancel_sge_jobs as cancel_sge_jobs,
    )
    from flowos.engine.slurm._deployed import (
        slurm_deployed as slurm_deployed,
    )
    from flowos.engine.slurm._leased import (
        slurm_renewed as slurm_renewed,
    )
    from flowos.engine.slurm._pool_users import (
        slurm_users as slurm_users,
    )
    from flowos.engine.slurm._power_saving import (
        PowerSaving as PowerSaving,
    )
    from flowos.engine.slurm._slice_jobs import (
        cancel_slurm_jobs as cancel_slurm_jobs,
        slurm_accounts as slurm_accounts,
        slurm_job_end as slurm_job_end,
    )
    from flowos.engine.slurm._slice_wait import (
        slurm_wait as slurm_wait,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
