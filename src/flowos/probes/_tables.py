"""The one table of probes, in the order in which they are measured and shown."""

from flowos.probes._base import Probe
from flowos.probes.clock import Clock
from flowos.probes.fio import Fio
from flowos.probes.flops import Flops
from flowos.probes.gemm import Gemm
from flowos.probes.mpi import MpiPairs
from flowos.probes.solve import Solve
from flowos.probes.stream import Stream
from flowos.probes.working_set import WorkingSet

PROBES: tuple[Probe, ...] = (
    Clock(),
    Flops(),
    WorkingSet(),
    Gemm(),
    Stream(),
    MpiPairs(),
    Solve(),
    Fio(),
)
