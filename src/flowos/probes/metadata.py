"""Metadata operations, as mdtest measures them: files and directories made, asked for and removed.

By several processes, in one directory that all share, or in one for each (mdtest -u). Files are
empty; with full effort also of 3901 bytes, as IO500 has them. To read is to open, to read the
bytes there are, and to close (mdtest -e). Every phase after the first takes what another process
made (mdtest -N): between nodes, in a folder that all see, a process of another node. On one node,
which is the first of 1, 2, 4 .. all, the processes share its cache, and stat and read are of that.
Source: figure 12 of Sato et al., SWoPP 2018 (ABCI); mdtest 4 and IO500 of github.com/hpc/ior.
"""

from typing import NamedTuple

from flowos._dataclasses import replace
from flowos.model import (
    Case,
    Chart,
    Effort,
    Facts,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._base import (
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    compared_case,
    read_answer,
)
from flowos.probes._cores import doubled, options_of
from flowos.probes._env_charts import env_bars
from flowos.probes._storage import built_by_of, in_memory, storage_program
from flowos.probes._suspicious import with_suspicion

PROCESSES = 2
"""Of each node, as in the figure."""


class MetadataSetting(NamedTuple):
    """items: files, and directories, of each process at most.

    stonewall: seconds after which no more are made (mdtest -W). seconds: after which no repetition
    begins. layouts: of directories, and the bytes of each file.
    """

    items: int
    repetitions: int
    stonewall: float
    seconds: float
    layouts: tuple[tuple[str, int], ...]


IO500_HARD_BYTES = 3901
SETTINGS = {
    "quick": MetadataSetting(500, 2, 0.5, 1.5, (("unique", 0),)),
    "normal": MetadataSetting(2000, 3, 1.0, 4.0, (("unique", 0), ("shared", 0))),
    "full": MetadataSetting(
        25_000,
        3,
        120.0,
        180.0,
        (("unique", 0), ("shared", 0), ("unique", IO500_HARD_BYTES), ("shared", IO500_HARD_BYTES)),
    ),
}
USUAL_RATE = 10e3
"""Items made, asked for and removed in a second, on a local disk."""


class Metadata(Probe):
    """Metric iops (1/s) by operation: all items / (last end - first start), as of mdtest."""

    info = ProbeInfo(
        name="metadata",
        title="Metadata operations, as of mdtest",
        charts=(
            Chart(
                title="Metadata operations",
                kind="bars",
                x="operation",
                metrics=("iops",),
                series=("directory", "bytes", "processes"),
                facets=("nodes",),
                y_label="1/s",
                log_y=True,
                ceilings=False,
                about="All processes together, in one directory that they share or in one for"
                " each. What was just made is in the cache of its node: there stat and read are"
                " of the kernel, and only making and removing reaches the storage.",
            ),
            Chart(
                title="Metadata operations over nodes",
                kind="curve",
                x="nodes",
                metrics=("iops",),
                series=("operation",),
                facets=("directory", "bytes"),
                x_label="nodes",
                y_label="1/s",
                log_x=True,
                log_y=True,
                ceilings=False,
                about="All processes together, equally many on each node. On several nodes stat"
                " and read are of what another node made.",
            ),
        ),
        headlines=(
            Headline("Files created", "iops", (("operation", "file create"),)),
            Headline("Files removed", "iops", (("operation", "file remove"),)),
        ),
        deciding=("iops",),
        margin=0.06,
        between_nodes=True,
        env_charts=(env_bars("Metadata operations", "operation", "iops", ("directory",), "1/s"),),
        on_storage=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = built_by_of(facts, request.nodes)
        if isinstance(compiler, Unmeasured):
            return compiler
        setting = SETTINGS[request.effort]
        each = min(PROCESSES, len(facts.one_per_core)) if request.nodes > 1 else PROCESSES
        details = (
            *compiler,
            ("items", str(setting.items)),
            ("repetitions", str(setting.repetitions)),
            ("stonewall", f"{setting.stonewall:g}"),
            ("seconds", f"{setting.seconds:g}"),
            ("file_system", facts.storage.file_system),
        )
        return tuple(
            Case(
                self.name,
                levels=(
                    ("directory", directory),
                    ("bytes", str(file_bytes)),
                    *((("nodes", str(nodes)),) if request.nodes > 1 else ()),
                    ("processes", str(each * nodes)),
                ),
                details=(*details, ("stride", str(each if nodes > 1 else 1))),
            )
            for directory, file_bytes in setting.layouts
            for nodes in doubled(request.nodes)
        )

    def seconds(self, case: Case) -> float:
        items = 2 * int(case.detail("items")) * int(case.level("processes"))
        usual = int(case.detail("repetitions")) * items / USUAL_RATE
        return 0.1 + min(usual, float(case.detail("seconds")))

    def program(self, case: Case) -> Program:
        options = options_of(case, "items", "repetitions", "stonewall", "seconds")
        limit = 60.0 + 20 * float(case.detail("stonewall"))
        return storage_program(case, "processes", options, limit)

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome, self.name)
        if isinstance(readings, Unmeasured):
            return readings
        return with_suspicion(readings, [in_memory(case)])

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """On all nodes, for a short time: in equal time many short turns decide more."""
        effort: Effort = "normal" if request.effort == "full" else "quick"
        cases = self.cases(facts, replace(request, effort=effort))
        if isinstance(cases, Unmeasured):
            return cases
        return tuple(
            compared_case(self, case, tuple(dict(case.levels)))
            for case in cases
            if case.level("nodes", "1") == str(request.nodes)
        )
