"""Storage, by fio: the set of figures 9 and 10 of Sato and Ogawa, Linux containers on AI clouds.

128 KiB sequential read and write; 4 KiB random read, write and 70:30 at depths 1 and 16. Each case
is one plain fio command on the session's single file, so that it runs with any fio.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from flowos.model import (
    Case,
    Chart,
    Effort,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Sample,
    Unmeasured,
)
from flowos.probes._base import (
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    Trial,
    compared_case,
)
from flowos.probes._env_charts import env_bars
from flowos.probes._fio_answer import MIX, read_answer_of_fio
from flowos.probes._fio_cache import cache_answers
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

LEVELS: tuple[Pairs, ...] = (
    (("workload", "sequential read"), ("iodepth", "16")),
    (("workload", "sequential write"), ("iodepth", "16")),
    *(
        (what, ("iodepth", depth))
        for depth in ("1", "16")
        for what in (("workload", "random read"), ("workload", "random write"), MIX)
    ),
)


TRIED = ("--name=try", "--filename={scratch}/flowos-try", "--size=64k", "--rw=randread")
"""A short job that shows whether an engine works."""


def _headline(label: str, metric: str, workload: str, depth: str) -> Headline:
    return Headline(label, metric, (("workload", workload), ("iodepth", depth)))


class Fio(Probe):
    """Metrics bandwidth (byte/s), iops (1/s), latency_p50, latency_p99 (second).

    Numbers of different engines are different cases, and never compared. The program of a mix
    sweeps the axis workload itself: mixed read, mixed write.
    """

    info = ProbeInfo(
        name="fio",
        title="Storage",
        charts=(
            Chart(
                title="Storage throughput, 128 KiB sequential",
                kind="bars",
                x="workload",
                metrics=("bandwidth",),
                series=("engine", "direct"),
                y_label="byte/s",
                ceilings=False,
            ),
            Chart(
                title="Storage operations, 4 KiB random",
                kind="bars",
                x="workload",
                metrics=("iops",),
                series=("iodepth", "engine", "direct"),
                y_label="1/s",
                ceilings=False,
                about="Mixed is 70 % reads and 30 % writes at the same time.",
            ),
            Chart(
                title="Storage latency",
                kind="bars",
                x="workload",
                metrics=("latency_p50", "latency_p99"),
                series=("iodepth", "engine", "direct"),
                y_label="second",
                log_y=True,
                ceilings=False,
                about="From asking to completion: half of the requests, and all but one in a"
                " hundred.",
            ),
        ),
        headlines=(
            _headline("Sequential read", "bandwidth", "sequential read", "16"),
            _headline("Sequential write", "bandwidth", "sequential write", "16"),
            _headline("Random 4 KiB read, depth 1", "iops", "random read", "1"),
            _headline("Random 4 KiB read, depth 16", "iops", "random read", "16"),
            _headline("Random 4 KiB write, depth 16", "iops", "random write", "16"),
        ),
        deciding=("bandwidth", "iops"),
        margin=0.06,
        env_charts=(
            env_bars("Storage throughput", "workload", "bandwidth", (), "byte/s"),
            env_bars("Storage operations", "workload", "iops", ("iodepth",), "1/s"),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
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
        details = (
            ("fio", str(fio.path)),
            ("effort", request.effort),
            ("file_bytes", str(size)),
            ("file_system", facts.storage.file_system),
        )
        way = tuple(_way(facts))
        first, *others = (Case(self.name, (*levels, *way), details) for levels in LEVELS)
        return (Case(self.name, first.levels, (*details, ("lays_out", "yes"))), *others)

    def seconds(self, case: Case) -> float:
        """The first case includes the layout of the file."""
        setting = SETTINGS[case.detail("effort")]
        layout = int(case.detail("file_bytes")) / USUAL_LAYOUT if case.detail("lays_out") else 0.0
        return STARTUP_SECONDS + setting.ramp_seconds + setting.seconds + layout

    def program(self, case: Case) -> Program:
        """fio lays out a missing or short file, fully written and synced, before it starts.

        --end_fsync: a case must not leave dirty caches to the next.
        """
        setting, size = SETTINGS[case.detail("effort")], int(case.detail("file_bytes"))
        rw, block_bytes = PATTERNS[case.level("workload")]
        options = {
            "name": "flowos",
            "filename": "{scratch}/flowos-data",
            "size": size,
            "overwrite": 1,
            "fallocate": "none",
            "ioengine": case.level("engine"),
            "direct": int(case.level("direct") == "yes"),
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
        return Program(
            argv=(case.detail("fio"), *words, "--thread", "--time_based"),
            limit_seconds=60 + 2 * self.seconds(case) + size / SLOWEST_LAYOUT,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        _, block_bytes = PATTERNS[case.level("workload")]
        window = SETTINGS[case.detail("effort")].window_seconds
        return read_answer_of_fio(case, outcome, block_bytes, window)

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """Each workload, for a short time: in equal time many short turns decide more."""
        effort: Effort = "normal" if request.effort == "full" else "quick"
        cases = self.cases(facts, replace(request, effort=effort))
        if isinstance(cases, Unmeasured):
            return cases
        tool = facts.tool("fio")
        stack = f"fio {tool.version if tool else ''}"
        return tuple(compared_case(self, case, tuple(dict(case.levels)), stack) for case in cases)

    def decides(self, sample: Sample) -> bool:
        sequential = sample.case.level("workload").startswith("sequential")
        return sample.metric == ("bandwidth" if sequential else "iops")

    def trial(self, facts: Facts, works: Mapping[str, bool]) -> Trial | None:
        """Does each environment's fio work with libaio, if io_uring is blocked in one?

        The system calls of a libaio depend on its version, and some containers allow only its older
        ones: so it is not the system call that is tried, but the fio that will measure.
        """
        tool = facts.tool("fio")
        if tool is None or works.get("io_uring", False):
            return None
        argv = (str(tool.path), *TRIED, "--ioengine=libaio", "--unlink=1")
        return Trial(
            name="libaio", program=Program(argv=argv, limit_seconds=30.0), complaint=_complaint
        )

    def checked(self, measured: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        return cache_answers(measured, self.name)


def _complaint(outcome: Outcome) -> str:
    said = (outcome.stdout + outcome.stderr).decode(errors="replace").splitlines()
    found = (line.rpartition("error=")[2] for line in said if line.startswith("fio: "))
    return "" if outcome.ok else f"fio: {next(found, outcome.end)}"


def _way(facts: Facts) -> Iterator[tuple[str, str]]:
    """Engine and direct I/O, chosen before the first run, equally for all sides of a comparison.

    Defaults if not tried: libaio, which is older than io_uring, and direct I/O, which most file
    systems have. If both engines are blocked, the C library's threads (posixaio) keep the depth.
    """
    works = {"io_uring": False, "libaio": True, **{t.name: t.works for t in facts.tried}}
    yield "engine", next((e for e in ("io_uring", "libaio") if works[e]), "posixaio")
    yield "direct", direct_io(facts)


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
