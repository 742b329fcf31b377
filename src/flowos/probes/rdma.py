"""RDMA over message sizes by perftest: from a node to another, or through a port of one and back.

The fastest port that is active. Without a pool its server and its client are on this node: the
adapter then turns the messages itself, so that the link's rate is no ceiling. Never run by us on
such hardware. After figure 4 of seed 004.
"""

from flowos._dataclasses import replace
from flowos.model import (
    Case,
    Chart,
    Facts,
    MeasurementRequest,
    Mpi,
    Outcome,
    Pairs,
    RdmaPort,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program
from flowos.probes._facts_rdma import port_words
from flowos.probes._perftest import METRICS, SCRIPT, SWEPT_BYTES, perftest_words, read_perftest
from flowos.probes._storage import NO_MPI

SECONDS = {"quick": 1.0, "normal": 4.0, "full": 10.0}
MIN_ITERATIONS, MAX_ITERATIONS = 100, 5000
"""The most is perftest's own number."""
START_SECONDS = 3.0
"""Server and client each wait for a second."""
SLOW = 1e8
"""byte/s of a link whose rate is not known."""
LARGE_BYTES = 1 << 16
"""From here on bandwidth is set against the link's rate."""

NO_RDMA = Unmeasured(
    reason="no RDMA device was found (/sys/class/infiniband)",
    remedy="load its driver; in a container let it see /dev/infiniband",
)
NO_PERFTEST = Unmeasured(
    reason="perftest, by which RDMA is measured, was not found", remedy="apt install perftest"
)


def _link_rate(case: Case, unit: str, _facts: Facts) -> tuple[str, float] | None:
    """Of what goes over a link, and is large."""
    rate = float(case.detail("rate", "0"))
    over_link = case.detail("nodes") and int(case.level("bytes", "0")) >= LARGE_BYTES
    return (case.detail("port_of"), rate) if unit == "byte/s" and rate and over_link else None


def _curve(title: str, metric: str, unit: str, about: str) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x="bytes",
        metrics=(metric,),
        series=("program",),
        x_label="message, bytes",
        y_label=unit,
        log_x=True,
        log_y=True,
        ceilings=False,
        about=about,
    )


class Rdma(Probe):
    """Metrics bandwidth (byte/s) and latency (second), per program of perftest.

    The program sweeps bytes.
    """

    info = ProbeInfo(
        name="rdma",
        title="RDMA by perftest",
        charts=(
            _curve("RDMA bandwidth", "bandwidth", "byte/s", "One queue pair, one way."),
            _curve("RDMA latency", "latency", "second", "Half a ping-pong round trip, median."),
        ),
        headlines=(
            *(
                Headline(
                    f"RDMA {verb}, 1 MiB",
                    "bandwidth",
                    (("program", f"ib_{verb}_bw"), ("bytes", "1048576")),
                )
                for verb in ("write", "read")
            ),
            Headline("RDMA latency, 8 B", "latency", (("bytes", "8"),)),
        ),
        nominal=_link_rate,
        between_nodes=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """None where there is no device, unless the probe is asked for by name."""
        port = max(
            (port for port in facts.rdma if port.is_active),
            key=lambda port: port.bytes_per_second,
            default=None,
        )
        if port is None:
            return _no_port(facts) if self.name in request.probes else ()
        tools = [tool for name in METRICS if (tool := facts.tool(name))]
        if not tools:
            return NO_PERFTEST
        if request.nodes == 1:
            details: Pairs = (("cores", str(min(2, len(facts.one_per_core)))),)
        elif facts.mpis:
            details = _between(facts.mpis[0])
        else:
            return NO_MPI
        return tuple(_case(tool, port, SECONDS[request.effort], details) for tool in tools)

    def seconds(self, case: Case) -> float:
        return START_SECONDS + float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        nodes = int(case.detail("nodes", "1"))
        options = (case.detail("device"), case.detail("port"), int(case.detail("iterations")))
        return Program(
            argv=(
                "python3",
                *(("--nodes", str(nodes)) if nodes > 1 else ()),
                *perftest_words(case.detail("path"), *options),
            ),
            script=SCRIPT,
            cores=int(case.detail("cores", "1")),
            ranks=nodes,
            mpi_family=case.detail("family"),
            mpirun=case.detail("mpirun"),
            limit_seconds=60 + 20 * self.seconds(case),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        found = read_perftest(outcome, case.level("program"))
        if isinstance(found, Unmeasured):
            return found
        notes = (("port", case.detail("port_of")),)
        return tuple(replace(reading, notes=notes) for reading in found)


def _no_port(facts: Facts) -> Unmeasured:
    if not facts.rdma:
        return NO_RDMA
    states = ", ".join(f"{port_words(port)} is {port.state}" for port in facts.rdma)
    return Unmeasured(
        reason=f"no port of an RDMA device is ACTIVE: {states}",
        remedy="connect it; InfiniBand needs a subnet manager (opensm) too",
    )


def _between(mpi: Mpi) -> Pairs:
    """A rank on each of two nodes, which that MPI or Slurm starts."""
    return (("nodes", "2"), ("family", mpi.family), ("mpirun", str(mpi.mpirun)))


def _case(tool: Tool, port: RdmaPort, seconds: float, details: Pairs) -> Case:
    """With as many messages of each size as take about so long."""
    ways = 2 if METRICS[tool.name] == "latency" else 1
    each = ways * SWEPT_BYTES / (port.bytes_per_second or SLOW)
    iterations = max(MIN_ITERATIONS, min(MAX_ITERATIONS, int(seconds / each)))
    return Case(
        "rdma",
        levels=(("program", tool.name),),
        details=(
            ("path", str(tool.path)),
            ("device", port.device),
            ("port", str(port.number)),
            ("port_of", port_words(port)),
            ("rate", f"{port.bytes_per_second:g}"),
            ("iterations", str(iterations)),
            ("seconds", f"{iterations * each:g}"),
            *details,
        ),
    )
