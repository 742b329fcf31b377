"""Copies between a process and a device of its own node, and one that a process elsewhere reaches.

After CUDA's bandwidthTest on a GPU of the machine, by ExpEther and by rCUDA, figure 5 of seed 004.
The device elsewhere is behind a process of ours on another node of a pool, by TCP (Gloo); without a
pool behind another process of this node, which is what the protocol costs. Both sides are timed by
the same clock, until the device has all bytes. Never run by us on GPUs.
"""

from collections.abc import Iterable, Sequence

from flowos.model import (
    Argv,
    Case,
    Chart,
    Effort,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Sample,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, read_answer, with_details
from flowos.probes._cores import options_of
from flowos.probes._gpu import HOST, NO_TORCH, START_SECONDS
from flowos.probes._storage import NO_MPI

AXIS = "attachment"
LOCAL, REMOTE = "local", "remote"
SECONDS = {"quick": 1.0, "normal": 3.0, "full": 12.0}
SIZES = {
    "quick": (1 << 12, 1 << 20, 1 << 26),
    "normal": tuple(1 << bits for bits in (12, 16, 18, 20, 22, 24, 26, 28)),
    "full": tuple(1 << bits for bits in range(12, 30)),
}
SHARE_OF_MEMORY = 16
"""Both processes have several buffers of a size."""
LARGE = "67108864"
DECIDING_BYTES = ("1048576", LARGE)


class RemoteCopy(Probe):
    """Metric bandwidth (byte/s), only if the probe is asked for by name.

    The program sweeps attachment (local, remote), to (device, host), bytes, and says which device
    each is: of GPUs the first one, else "cpu". nodes: on how many its two processes are.
    """

    info = ProbeInfo(
        name="remote_copy",
        title="Copies to a device of this node, and to one of another",
        charts=(
            Chart(
                title="Copies to a local and a remote device",
                kind="curve",
                x="bytes",
                metrics=("bandwidth",),
                series=(AXIS, "to"),
                facets=("device", "nodes"),
                x_label="bytes of one copy",
                y_label="byte/s",
                log_x=True,
                log_y=True,
                ceilings=False,
                about="Until the device, or the host, has all bytes. Local: from locked pages;"
                " remote: through a process there, by TCP (Gloo), in parts of 4 MiB.",
            ),
        ),
        rounds=4,
        headlines=tuple(
            Headline(
                f"Host to {attachment} device, 64 MiB",
                "bandwidth",
                ((AXIS, attachment), ("to", "device"), ("bytes", LARGE)),
            )
            for attachment in (LOCAL, REMOTE)
        ),
        compares=AXIS,
        between_nodes="named",
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        if self.name not in request.probes:
            return ()
        python = facts.tool("torch")
        if python is None:
            return NO_TORCH
        case = Case(
            self.name,
            levels=(("nodes", str(min(2, request.nodes))),),
            details=(
                ("python", str(python.path)),
                ("torch", python.version),
                ("effort", request.effort),
                ("seconds", str(SECONDS[request.effort])),
                ("sizes", ",".join(map(str, _sizes(facts, request.effort)))),
                ("cores", str(min(2, len(facts.one_per_core)) if request.nodes == 1 else 1)),
            ),
        )
        if request.nodes == 1:
            return (case,)
        if not facts.mpis:
            return NO_MPI
        mpi = facts.mpis[0]
        return (with_details(case, family=mpi.family, mpirun=str(mpi.mpirun)),)

    def rounds(self, cases: Iterable[Case]) -> int:
        """Quick effort shows the curves, and compares nothing."""
        quick = any(case.detail("effort") == "quick" for case in cases)
        return 1 if quick else self.info.rounds

    def seconds(self, case: Case) -> float:
        return START_SECONDS + 1.5 * float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        nodes = int(case.level("nodes"))
        return Program(
            argv=(
                case.detail("python"),
                *options_of(case, "seconds", "sizes"),
                *(("--nodes", str(nodes)) if nodes > 1 else ()),
            ),
            script="torch_remote_copy.py",
            variables=(("GLOO_SOCKET_IFNAME", "lo"),) if nodes == 1 else (),
            cores=int(case.detail("cores")),
            ranks=nodes,
            mpi_family=case.detail("family"),
            mpirun=case.detail("mpirun"),
            limit_seconds=180 + 10 * float(case.detail("seconds")),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return read_answer(outcome, "torch_remote_copy")

    def decides(self, sample: Sample) -> bool:
        return sample.case.level("bytes") in DECIDING_BYTES

    def left_out(
        self, measured: Sequence[Measurement], of_pool: Argv = ()
    ) -> tuple[tuple[Case, Unmeasured], ...]:
        """Sizes that would have taken too long, as of a slow link."""
        why = Unmeasured(reason="a copy of this size takes too long for its time")
        return tuple(
            (Case(self.name, ((AXIS, attachment), ("bytes", ", ".join(sizes)))), why)
            for attachment in (LOCAL, REMOTE)
            if (sizes := _not_measured(measured, attachment))
        )

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """How both are attached."""
        cases = {m.case.level(AXIS): m.case for m in measured if m.case.probe == self.name}
        if cases.keys() < {LOCAL, REMOTE}:
            return ()
        local, remote = cases[LOCAL], cases[REMOTE]
        where = "another node" if remote.level("nodes") != "1" else "another process of this node"
        stands = "; where there is no GPU, memory stands for one (device cpu)"
        return (
            f"local: {local.detail('end')}; remote: {remote.detail('end')}, through {where}, by TCP"
            f" (Gloo) over {remote.detail('link')}{stands * (HOST in _devices(local, remote))}."
            " What that link gives to MPI, the probe mpi says",
        )


def _sizes(facts: Facts, effort: Effort) -> tuple[int, ...]:
    memory = facts.usable_memory_bytes or SHARE_OF_MEMORY * SIZES[effort][-1]
    return tuple(size for size in SIZES[effort] if SHARE_OF_MEMORY * size <= memory)


def _devices(*cases: Case) -> tuple[str, ...]:
    return tuple(case.level("device") for case in cases)


def _not_measured(measured: Sequence[Measurement], attachment: str) -> tuple[str, ...]:
    ours = [m.case for m in measured if m.case.level(AXIS) == attachment]
    done = {case.level("bytes") for case in ours}
    asked = ours[0].detail("sizes").split(",") if ours else []
    return tuple(size for size in asked if size not in done)
