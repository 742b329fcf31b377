"""The table of probes, in the order in which they are measured and shown."""

from flowos.probes._base import Probe
from flowos.probes.clock import Clock
from flowos.probes.collectives import Collectives
from flowos.probes.command import TimedCommand
from flowos.probes.core_latency import CoreLatency
from flowos.probes.deepbench import DeepBench
from flowos.probes.feed import FeedReads
from flowos.probes.fio import Fio
from flowos.probes.flops import Flops
from flowos.probes.gemm import Gemm
from flowos.probes.gpu_copy import GpuCopy
from flowos.probes.gpu_gemm import GpuGemm
from flowos.probes.gpu_stream import GpuStream
from flowos.probes.hpcg import Hpcg
from flowos.probes.hpl import Hpl
from flowos.probes.kernels import Kernels
from flowos.probes.memory_latency import MemoryLatency
from flowos.probes.metadata import Metadata
from flowos.probes.mpi import MpiPairs
from flowos.probes.nbody import Nbody
from flowos.probes.parallel_io import ParallelIo
from flowos.probes.rdma import Rdma
from flowos.probes.remote_copy import RemoteCopy
from flowos.probes.remote_storage import RemoteStorage
from flowos.probes.solve import Solve
from flowos.probes.startup import Startup
from flowos.probes.stream import Stream
from flowos.probes.training import ResNetTraining
from flowos.probes.working_set import WorkingSet

PROBES: tuple[Probe, ...] = (
    TimedCommand(),
    Startup(),
    Clock(),
    Flops(),
    WorkingSet(),
    MemoryLatency(),
    CoreLatency(),
    Gemm(),
    Hpl(),
    Stream(),
    MpiPairs(),
    Rdma(),
    Solve(),
    Hpcg(),
    Fio(),
    RemoteStorage(),
    ParallelIo(),
    Metadata(),
    GpuGemm(),
    GpuStream(),
    GpuCopy(),
    RemoteCopy(),
    DeepBench(),
    Collectives(),
    Nbody(),
    FeedReads(),
    ResNetTraining(),
    Kernels(),
)


def probes_for(environments: int = 1) -> tuple[Probe, ...]:
    """The probes measured in a single environment; with several, those that are compared."""
    if environments > 1:
        return tuple(probe for probe in PROBES if probe.info.deciding)
    return tuple(probe for probe in PROBES if probe.info.alone)


def probe_named(name: str) -> Probe | None:
    """The probe of a case; None if another version measured it."""
    return next((probe for probe in PROBES if probe.name == name), None)
