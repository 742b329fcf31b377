"""Storage, by fio: the set of figures 9 and 10 of Sato and Ogawa, Linux containers on AI clouds.

128 KiB sequential read and write; 4 KiB random read, write and 70:30 at depths 1 and 16. Each case
is one plain fio command on the session's single file, so that it runs with any fio.
"""

from collections.abc import Mapping

from flowos._dataclasses import replace
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
from flowos.probes._fio_answer import MIX
from flowos.probes._fio_cache import cache_answers
from flowos.probes._fio_job import (
    details_of,
    fio_seconds,
    fio_words,
    limit_seconds,
    read_fio,
    way_of,
)

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
        on_storage=True,
        rates_storage=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        details = details_of(facts, request)
        if isinstance(details, Unmeasured):
            return details
        way = way_of(facts)
        first, *others = (Case(self.name, (*levels, *way), details) for levels in LEVELS)
        return (Case(self.name, first.levels, (*details, ("lays_out", "yes"))), *others)

    def seconds(self, case: Case) -> float:
        """The first case includes the layout of the file."""
        return fio_seconds(case, with_layout=bool(case.detail("lays_out")))

    def program(self, case: Case) -> Program:
        argv = fio_words(
            case,
            case.level("engine"),
            direct=case.level("direct") == "yes",
            filename="{scratch}/flowos-data",
        )
        return Program(argv=argv, limit_seconds=limit_seconds(case, self.seconds(case)))

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return read_fio(case, outcome)

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
