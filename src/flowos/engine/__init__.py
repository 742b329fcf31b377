"""The only room with processes, sockets, sleep and clock."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_clock": "now utc utc_of",
    "_foreground": "run_in_foreground",
    "_fake_provider": "FakeProvider",
    "_held_slice": "FlowSlice HeldSlice",
    "_here": "Here here",
    "_local_provider": "LocalProvider",
    "_orphans": "await_unused",
    "_launching": "PreparedLaunch composed own_variables",
    "_node": "Node",
    "_provider": "Held HoldEvent OnHoldEvent Provider ignore",
    "_providers": "PROVIDERS provider_of",
    "_private_dirs": "ON_DISK PASSABLE locked own_folder remove_tree",
    "_run_folder": "left_alone session_folder",
    "_running": "RunningProcess",
    "_start": "prepare run start",
    "_state": "Look io_pressure_between look state_between",
    "_interleaved": "run_interleaved",
    "environments._devices": "gpu_devices",
    "environments._images": "image_at",
    "environments._inside": "home_folder launch_variables",
    "environments._mpi": "check_mpi usual_starter",
    "environments._ready": "Ready make_ready",
    "environments._squashfs": "unpack_squashfs",
    "environments._unpacked": "remove_unpacked",
    "environments._usability": "runtime_facts usability",
}

if TYPE_CHECKING:
    from flowos.engine._clock import (
        now as now,
        utc as utc,
        utc_of as utc_of,
    )
    from flowos.engine._foreground import (
        run_in_foreground as run_in_foreground,
    )
    from flowos.engine._fake_provider import (
        FakeProvider as FakeProvider,
    )
    from flowos.engine._held_slice import (
        FlowSlice as FlowSlice,
        HeldSlice as HeldSlice,
    )
    from flowos.engine._here import (
        Here as Here,
        here as here,
    )
    from flowos.engine._local_provider import (
        LocalProvider as LocalProvider,
    )
    from flowos.engine._provider import (
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
    from flowos.engine._node import (
        Node as Node,
    )
    from flowos.engine._orphans import (
        await_unused as await_unused,
    )
    from flowos.engine._launching import (
        PreparedLaunch as PreparedLaunch,
        composed as composed,
        own_variables as own_variables,
    )
    from flowos.engine._private_dirs import (
        ON_DISK as ON_DISK,
        PASSABLE as PASSABLE,
        locked as locked,
        own_folder as own_folder,
        remove_tree as remove_tree,
    )
    from flowos.engine._run_folder import (
        left_alone as left_alone,
        session_folder as session_folder,
    )
    from flowos.engine._running import (
        RunningProcess as RunningProcess,
    )
    from flowos.engine._start import (
        prepare as prepare,
        run as run,
        start as start,
    )
    from flowos.engine._state import (
        Look as Look,
        io_pressure_between as io_pressure_between,
        look as look,
        state_between as state_between,
    )
    from flowos.engine._interleaved import (
        run_interleaved as run_interleaved,
    )
    from flowos.engine.environments._devices import (
        gpu_devices as gpu_devices,
    )
    from flowos.engine.environments._images import (
        image_at as image_at,
    )
    from flowos.engine.environments._inside import (
        home_folder as home_folder,
        launch_variables as launch_variables,
    )
    from flowos.engine.environments._mpi import (
        check_mpi as check_mpi,
        usual_starter as usual_starter,
    )
    from flowos.engine.environments._ready import (
        Ready as Ready,
        make_ready as make_ready,
    )
    from flowos.engine.environments._squashfs import (
        unpack_squashfs as unpack_squashfs,
    )
    from flowos.engine.environments._unpacked import (
        remove_unpacked as remove_unpacked,
    )
    from flowos.engine.environments._usability import (
        runtime_facts as runtime_facts,
        usability as usability,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
