"""Jobs of fio: which are run, for how long, on a file of which size, and by which engine."""

from typing import NamedTuple

from flowos.model import Argv, Case, Facts, MeasurementRequest, Outcome, Pairs, Reading, Unmeasured
from flowos.probes._fio_answer import read_answer_of_fio
from flowos.probes._storage import MORE_ROOM, direct_io, room_bytes


class Setting(NamedTuple):
    """How long a command measures after its ramp time; the rate of each window is one value."""

    file_bytes: int
    seconds: float
    window_seconds: float

    @property
    def ramp_seconds(self) -> float:
        """fio counts from before it starts; the rest is more than a window."""
        return 2 * self.window_seconds


SETTINGS = {
    "quick": Setting(512 << 20, 0.2, 0.05),
    "normal": Setting(2 << 30, 0.6, 0.1),
    "full": Setting(8 << 30, 4.0, 0.5),
}

STARTUP_SECONDS = 0.3
"""fio waits a fixed time for its threads, whatever the job."""
MIN_BYTES = 256 << 20
SHARE_OF_ROOM = 2
SLOWEST_LAYOUT, USUAL_LAYOUT = 50e6, 1e9

PATTERNS = {
    "sequential read": ("read", 128 << 10),
    "sequential write": ("write", 128 << 10),
    "random read": ("randread", 4 << 10),
    "random write": ("randwrite", 4 << 10),
    "": ("randrw", 4 << 10),
}
"""Level of the axis workload -> fio's --rw, bytes of a request; a mix has two workloads in one."""


def details_of(facts: Facts, request: MeasurementRequest) -> Pairs | Unmeasured:
    """Of a case: the fio that was found, and the file that fits."""
    fio = facts.tool("fio")
    if fio is None:
        return Unmeasured(reason="fio was not found", remedy="apt install fio")
    if ":" in str(request.scratch):
        return Unmeasured(
            reason=f"fio takes the colon in {request.scratch} for the end of a name",
            remedy="choose another folder with --scratch",
        )
    size = room_bytes(facts, SETTINGS[request.effort].file_bytes, SHARE_OF_ROOM)
    if size < MIN_BYTES:
        return Unmeasured(
            reason=f"{request.scratch} has room for a file of {size >> 20} MiB; "
            f"{MIN_BYTES >> 20} MiB are needed",
            remedy=MORE_ROOM,
        )
    return (
        ("fio", str(fio.path)),
        ("effort", request.effort),
        ("file_bytes", str(size)),
        ("file_system", facts.storage.file_system),
    )


def way_of(facts: Facts) -> Pairs:
    """Engine and direct I/O, chosen before the first run, equally for all sides of a comparison.

    Defaults if not tried: libaio, which is older than io_uring, and direct I/O, which most file
    systems have. If both engines are blocked, the C library's threads (posixaio) keep the depth.
    """
    works = {"io_uring": False, "libaio": True, **{t.name: t.works for t in facts.tried}}
    engine = next((e for e in ("io_uring", "libaio") if works[e]), "posixaio")
    return ("engine", engine), ("direct", direct_io(facts))


def fio_seconds(case: Case, *, with_layout: bool) -> float:
    setting = SETTINGS[case.detail("effort")]
    layout = int(case.detail("file_bytes")) / USUAL_LAYOUT if with_layout else 0.0
    return STARTUP_SECONDS + setting.ramp_seconds + setting.seconds + layout


def limit_seconds(case: Case, seconds: float) -> float:
    """After which it is stopped, if it was to take so long: the layout may be slow."""
    return 60 + 2 * seconds + int(case.detail("file_bytes")) / SLOWEST_LAYOUT


def fio_words(case: Case, engine: str, *, direct: bool, **target: str | int) -> Argv:
    """The command line of a case. target: options that say what is read and written, and how.

    fio lays out a missing or short file, fully written and synced, before it starts.
    --end_fsync: a case must not leave dirty caches to the next.
    """
    setting = SETTINGS[case.detail("effort")]
    rw, block_bytes = PATTERNS[case.level("workload")]
    options = {
        "name": "flowos",
        **target,
        "size": case.detail("file_bytes"),
        "overwrite": 1,
        "fallocate": "none",
        "ioengine": engine,
        "direct": int(direct),
        "rw": rw,
        "rwmixread": 70,
        "bs": block_bytes,
        "iodepth": case.level("iodepth"),
        "randrepeat": 0,
        "end_fsync": 1,
        "runtime": _milliseconds(setting.seconds),
        "ramp_time": _milliseconds(setting.ramp_seconds),
        "status-interval": _milliseconds(setting.window_seconds),
        "lat_percentiles": 1,
        "clat_percentiles": 0,
        "percentile_list": "50:99",
        "output-format": "json",
    }
    words = (f"--{name}={value}" for name, value in options.items())
    return case.detail("fio"), *words, "--thread", "--time_based"


def read_fio(case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
    _, block_bytes = PATTERNS[case.level("workload")]
    window = SETTINGS[case.detail("effort")].window_seconds
    return read_answer_of_fio(case, outcome, block_bytes, window)


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
