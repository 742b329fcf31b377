"""Our own engine: this process, threads and node-local workers."""

from flowos.engine.local._failures import RemoteTraceback, remedy_of
from flowos.engine.local._open import SliceOptions, Workers, open_slice
from flowos.engine.local._runs import Emit, Event
from flowos.engine.local._slice import Slice
from flowos.engine.local._usage import OnUsage, SliceUsage

__all__ = [
    "Emit",
    "Event",
    "OnUsage",
    "RemoteTraceback",
    "Slice",
    "SliceOptions",
    "SliceUsage",
    "Workers",
    "open_slice",
    "remedy_of",
]
