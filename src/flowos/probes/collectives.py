"""Collectives between ranks of this node: by torch.distributed, NCCL on its GPUs or Gloo on cores,
and by nccl-tests where they are in PATH.

After figure 10 of seed 001; times and bandwidths as nccl-tests defines them.
"""

from collections.abc import Iterator

from flowos.model import Case, Chart, Facts, MeasurementRequest, Outcome, Reading, Unmeasured
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, read_answer
from flowos.probes._cores import options_of
from flowos.probes._gpu import NO_TORCH, START_SECONDS
from flowos.probes._nccl_tests import PROGRAMS, nccl_tests_words, read_nccl_tests

SECONDS = {"quick": 2.0, "normal": 5.0, "full": 30.0}
SIZES = {
    "quick": (8, 1 << 20, 16 << 20),
    "normal": tuple(1 << bits for bits in (3, 10, 13, 16, 18, 20, 22, 24, 26)),
    "full": tuple(1 << bits for bits in range(3, 31)),
}
HOST_MAX_BYTES = 16 << 20
HOST_MAX_RANKS = 8
LARGE = "16777216"
NCCL_TESTS = "nccl-tests"


class Collectives(Probe):
    """Metrics time (second), algorithm_bandwidth and bus_bandwidth (byte/s), per backend and ranks.

    The program sweeps collective (allreduce, allgather, reducescatter) and bytes itself. Gloo only
    if the probe is asked for by name, NCCL where there are two GPUs, and nccl-tests too.
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
                facets=("backend", "ranks"),
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
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        asked = self.name in request.probes
        backends = (("nccl", len(facts.cuda)), ("gloo", _host_ranks(facts) if asked else 0))
        there = [(backend, ranks) for backend, ranks in backends if ranks > 1]
        python, by_theirs = facts.tool("torch"), tuple(_by_nccl_tests(facts, request))
        if there and python is None:
            return by_theirs or NO_TORCH
        by_torch = (
            Case(
                self.name,
                levels=(("backend", backend), ("ranks", str(ranks))),
                details=(
                    ("backend", backend),
                    ("ranks", str(ranks)),
                    ("seconds", str(SECONDS[request.effort])),
                    ("sizes", _sizes(backend, request)),
                    ("python", str(python.path)),
                ),
            )
            for backend, ranks in there
            if python
        )
        return (*by_torch, *by_theirs)

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
        return Program(
            argv=(case.detail("python"), *options),
            script="torch_collectives.py",
            variables=(("GLOO_SOCKET_IFNAME", "lo"),) if is_host else (),
            cores=int(case.level("ranks")) if is_host else 1,
            limit_seconds=180 + 10 * float(case.detail("seconds")),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        if case.level("backend") == NCCL_TESTS:
            return read_nccl_tests(outcome, case.level("collective"), int(case.level("ranks")))
        return read_answer(outcome, "torch_collectives")


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
