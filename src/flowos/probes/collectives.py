"""Collectives between ranks: by torch.distributed, NCCL on GPUs or Gloo on cores, on this node or
over 1, 2, 4 .. nodes of a pool; on this node by nccl-tests too, where they are in PATH.

After figure 10 of seed 001; times and bandwidths as nccl-tests defines them.
"""

from collections.abc import Iterator

from flowos._dataclasses import replace
from flowos.model import (
    Case,
    Chart,
    Facts,
    MeasurementRequest,
    Outcome,
    Reading,
    Tool,
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
    with_details,
)
from flowos.probes._cores import doubled, options_of
from flowos.probes._env_charts import env_curve
from flowos.probes._gpu import NO_TORCH, START_SECONDS
from flowos.probes._nccl_tests import PROGRAMS, nccl_tests_words, read_nccl_tests
from flowos.probes._storage import NO_MPI

SECONDS = {"quick": 2.0, "normal": 5.0, "full": 30.0}
SIZES = {
    "quick": (8, 1 << 20, 16 << 20),
    "normal": tuple(1 << bits for bits in (3, 10, 13, 16, 18, 20, 22, 24, 26)),
    "full": tuple(1 << bits for bits in range(3, 31)),
}
HOST_MAX_BYTES = 16 << 20
HOST_MAX_RANKS = 8
HOST_RANKS_OF_NODE = 2
"""Of each of several nodes."""
LARGE = "16777216"
NCCL_TESTS = "nccl-tests"


class Collectives(Probe):
    """Metrics time (second), algorithm_bandwidth and bus_bandwidth (byte/s), per backend and ranks.

    The program sweeps collective (allreduce, allgather, reducescatter) and bytes itself. Gloo only
    if the probe is asked for by name, NCCL where there are two GPUs, and nccl-tests too. Between
    nodes, which the axis nodes counts, NCCL where nodes have GPUs, else Gloo.
    """

    info = ProbeInfo(
        name="collectives",
        title="Collectives of PyTorch and of nccl-tests",
        charts=tuple(
            Chart(
                title=title,
                kind="curve",
                x="bytes",
                metrics=(metric,),
                series=("collective",),
                facets=("backend", "nodes", "ranks"),
                x_label="bytes of the larger buffer of a rank",
                y_label=unit,
                log_x=True,
                log_y=True,
                ceilings=False,
            )
            for title, metric, unit in (
                ("Bus bandwidth of collectives", "bus_bandwidth", "byte/s"),
                ("Time of collectives", "time", "second"),
            )
        ),
        headlines=(
            Headline(
                "Allreduce, 16 MiB, bus bandwidth",
                "bus_bandwidth",
                (("collective", "allreduce"), ("bytes", LARGE)),
            ),
        ),
        deciding=("bus_bandwidth",),
        env_charts=(
            env_curve(
                "Bus bandwidth of collectives",
                "bytes",
                "bus_bandwidth",
                "collective",
                "PyTorch of each environment.",
                "byte/s",
            ),
        ),
        own_python=True,
        between_nodes="named",
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        asked = self.name in request.probes
        if request.nodes > 1:
            return _over_nodes(facts, request) if asked else ()
        backends = (("nccl", len(facts.cuda)), ("gloo", _host_ranks(facts) if asked else 0))
        there = [(backend, ranks) for backend, ranks in backends if ranks > 1]
        python, by_theirs = facts.tool("torch"), tuple(_by_nccl_tests(facts, request))
        if there and python is None:
            return by_theirs or NO_TORCH
        by_torch = (_by_torch(python, *each, request) for each in there if python)
        return (*by_torch, *by_theirs)

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """Quick sizes between all ranks, by the PyTorch of each environment."""
        cases = self.cases(facts, replace(request, effort="quick"))
        if isinstance(cases, Unmeasured):
            return cases
        by_torch = [case for case in cases if case.level("backend") != NCCL_TESTS]
        if cases and not by_torch:
            return NO_TORCH
        first = by_torch[:1] if request.nodes == 1 else by_torch[-1:]
        axes = ("backend", "ranks", "nodes")
        return tuple(
            compared_case(self, case, axes, f"PyTorch {case.detail('torch')}") for case in first
        )

    def seconds(self, case: Case) -> float:
        return 2 * START_SECONDS + 2 * float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        if case.level("backend") == NCCL_TESTS:
            return Program(
                argv=nccl_tests_words(
                    case.detail("program"), case.detail("effort"), int(case.level("ranks"))
                ),
                on_gpu=True,
                limit_seconds=180 + 10 * float(case.detail("seconds")),
            )
        options = options_of(case, "ranks", "backend", "seconds", "sizes")
        is_host = case.level("backend") == "gloo"
        nodes = int(case.level("nodes", "1"))
        return Program(
            argv=(
                case.detail("python"),
                *options,
                *(("--nodes", str(nodes)) if nodes > 1 else ()),
            ),
            script="torch_collectives.py",
            variables=(("GLOO_SOCKET_IFNAME", "lo"),) if is_host and nodes == 1 else (),
            cores=int(case.detail("cores", case.detail("ranks"))) if is_host else 1,
            ranks=nodes,
            mpi_family=case.detail("family") if nodes > 1 else "",
            mpirun=case.detail("mpirun") if nodes > 1 else "",
            limit_seconds=180 + 10 * float(case.detail("seconds")),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        if case.level("backend") == NCCL_TESTS:
            return read_nccl_tests(outcome, case.level("collective"), int(case.level("ranks")))
        return read_answer(outcome, "torch_collectives")


def _by_torch(python: Tool, backend: str, ranks: int, request: MeasurementRequest) -> Case:
    return Case(
        "collectives",
        levels=(("backend", backend), ("ranks", str(ranks))),
        details=(
            ("backend", backend),
            ("ranks", str(ranks)),
            ("seconds", str(SECONDS[request.effort])),
            ("sizes", _sizes(backend, request)),
            ("python", str(python.path)),
            ("torch", python.version),
        ),
    )


def _over_nodes(facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
    """One for each count of nodes on which two ranks are; all nodes are taken to be like this."""
    python, backend = facts.tool("torch"), "nccl" if facts.cuda else "gloo"
    if python is None:
        return NO_TORCH
    if not facts.mpis:
        return NO_MPI
    mpi, each = facts.mpis[0], len(facts.cuda) or HOST_RANKS_OF_NODE
    case = with_details(
        _by_torch(python, backend, each, request),
        cores=str(min(each, len(facts.one_per_core))),
        family=mpi.family,
        mpirun=str(mpi.mpirun),
    )
    return tuple(
        case.at(nodes=str(nodes), ranks=str(each * nodes))
        for nodes in doubled(request.nodes)
        if each * nodes > 1
    )


def _by_nccl_tests(facts: Facts, request: MeasurementRequest) -> Iterator[Case]:
    """A program for each collective, between all GPUs."""
    ranks = len(facts.cuda)
    for collective, name in PROGRAMS.items():
        tool = facts.tool(name)
        if tool and ranks > 1:
            yield Case(
                "collectives",
                levels=(("backend", NCCL_TESTS), ("ranks", str(ranks)), ("collective", collective)),
                details=(
                    ("program", str(tool.path)),
                    ("effort", request.effort),
                    ("seconds", str(SECONDS[request.effort] / len(PROGRAMS))),
                ),
            )


def _host_ranks(facts: Facts) -> int:
    """One for each core, two at least: Gloo's ranks sleep while they wait."""
    return max(2, min(HOST_MAX_RANKS, len(facts.one_per_core)))


def _sizes(backend: str, request: MeasurementRequest) -> str:
    most = HOST_MAX_BYTES if backend == "gloo" else SIZES["full"][-1]
    return ",".join(str(size) for size in SIZES[request.effort] if size <= most)
