"""The one table of probes, in the order in which they are measured and shown."""

from flowos.probes._base import Probe
from flowos.probes.fio import Fio
from flowos.probes.mpi import MpiPairs
from flowos.probes.stream import Stream

PROBES: tuple[Probe, ...] = (
    Stream(),
    MpiPairs(),
    Fio(),
)
