"""Throughput for several clients, as IOR measures it by POSIX.

Each client writes to a file of its own (IOR -F), or all to one (segments of a transfer each), ends
by fsync (-e), and then reads what another one wrote (-C). Direct I/O if the file system has it;
else pages are dropped by posix_fadvise after the write, and what is read is marked. Between nodes,
in a folder that all see, a client is on each of 1, 2, 4 .. all of them.
Source: figure 11 of Sato et al., SWoPP 2018 (ABCI); IOR 4 of github.com/hpc/ior.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from flowos.model import (
    Case,
    Chart,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, read_answer
from flowos.probes._cores import doubled, options_of
from flowos.probes._fio_cache import cache_answers
from flowos.probes._storage import (
    MORE_ROOM,
    built_by_of,
    direct_io,
    in_memory,
    room_bytes,
    storage_program,
)
from flowos.probes._suspicious import with_suspicion

SHARE_OF_ROOM = 3
"""All clients together take a third of the free space at most."""

TRANSFER_BYTES = 1 << 20
MIN_BYTES = 16 << 20
"""Of each client: 16 transfers."""

SLOWEST, USUAL = 50e6, 1e9


class ClientsSetting(NamedTuple):
    """client_bytes: of each client, if there is room.

    stonewall: seconds after which no more is written (IOR -D). seconds: after which no repetition
    begins. max_clients: also no more than cores, but two. shared: by one file, too?
    """

    client_bytes: int
    repetitions: int
    stonewall: float
    seconds: float
    max_clients: int
    shared: bool


SETTINGS = {
    "quick": ClientsSetting(64 << 20, 2, 0.5, 1.0, 2, shared=False),
    "normal": ClientsSetting(256 << 20, 3, 1.0, 3.0, 8, shared=True),
    "full": ClientsSetting(8 << 30, 3, 120.0, 180.0, 32, shared=True),
}


class ParallelIo(Probe):
    """Metric bandwidth (byte/s) by workload: all bytes / (last end - first start), as of IOR."""

    info = ProbeInfo(
        name="parallel_io",
        title="Throughput of several clients, as of IOR",
        charts=(
            Chart(
                title="Throughput of several clients, transfers of 1 MiB",
                kind="curve",
                x="clients",
                metrics=("bandwidth",),
                series=("workload", "files", "direct"),
                x_label="clients",
                y_label="byte/s",
                log_x=True,
                ceilings=False,
                about="From the first one's open to the last one's close; a write ends by fsync."
                " Each reads what another one wrote.",
            ),
        ),
        headlines=(
            Headline("Parallel write", "bandwidth", (("workload", "sequential write"),)),
            Headline("Parallel read", "bandwidth", (("workload", "sequential read"),)),
        ),
        between_nodes=True,
        on_storage=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = built_by_of(facts, request.nodes)
        if isinstance(compiler, Unmeasured):
            return compiler
        setting = SETTINGS[request.effort]
        most = max(setting.max_clients, request.nodes)
        room = room_bytes(facts, setting.client_bytes * most, SHARE_OF_ROOM)
        if room < MIN_BYTES:
            return Unmeasured(
                reason=f"{request.scratch} has room for files of {room >> 20} MiB; "
                f"{MIN_BYTES >> 20} MiB are needed",
                remedy=MORE_ROOM,
            )
        return tuple(
            Case(
                self.name,
                levels=(
                    ("clients", str(clients)),
                    ("files", files),
                    ("direct", direct_io(facts)),
                    *((("nodes", str(request.nodes)),) if request.nodes > 1 else ()),
                ),
                details=(
                    *compiler,
                    ("stride", "1"),
                    ("bytes", str(_client_bytes(setting, room, clients))),
                    ("asked_bytes", str(setting.client_bytes)),
                    ("repetitions", str(setting.repetitions)),
                    ("stonewall", f"{setting.stonewall:g}"),
                    ("seconds", f"{setting.seconds:g}"),
                    ("file_system", facts.storage.file_system),
                ),
            )
            for clients in _clients(facts, setting, request.nodes)
            if _client_bytes(setting, room, clients) >= MIN_BYTES
            for files in (("own", "shared") if setting.shared and clients > 1 else ("own",))
        )

    def seconds(self, case: Case) -> float:
        usual = 2 * int(case.detail("repetitions")) * _all_bytes(case) / USUAL
        return 0.2 + min(usual, float(case.detail("seconds")))

    def program(self, case: Case) -> Program:
        transfer = ("--transfer", str(TRANSFER_BYTES))
        options = options_of(case, "bytes", "repetitions", "stonewall", "seconds")
        limit = 60.0 + float(case.detail("seconds")) + 2 * _all_bytes(case) / SLOWEST
        return storage_program(case, "clients", (*transfer, *options), limit)

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome, self.name)
        if isinstance(readings, Unmeasured):
            return readings
        return tuple(_doubted(case, readings))

    def checked(self, measured: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        return cache_answers(measured, self.name)

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """How much each client wrote, where there was no room for as much as planned."""
        cases = {m.case for m in measured if m.case.probe == self.name}
        less = [c for c in cases if int(c.detail("bytes")) < int(c.detail("asked_bytes"))]
        if not less:
            return ()
        sizes = sorted({int(case.detail("bytes")) for case in less})
        between = " to ".join(f"{size >> 20} MiB" for size in dict.fromkeys((sizes[0], sizes[-1])))
        planned = int(less[0].detail("asked_bytes")) >> 20
        return (
            f"some clients wrote {between} in place of {planned} MiB: all together take a third of"
            " the free space at most",
        )


def _clients(facts: Facts, setting: ClientsSetting, nodes: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, two also on one core, as they wait for the storage most of the time.

    Between nodes one on each of 1, 2, 4 .. all.
    """
    if nodes > 1:
        return doubled(nodes)
    most = min(setting.max_clients, max(2, len(facts.one_per_core)))
    return tuple(clients for clients in doubled(most) if clients.bit_count() == 1)


def _client_bytes(setting: ClientsSetting, room: int, clients: int) -> int:
    return min(setting.client_bytes, room // clients) // TRANSFER_BYTES * TRANSFER_BYTES


def _all_bytes(case: Case) -> int:
    return int(case.detail("bytes")) * int(case.level("clients"))


def _doubted(case: Case, readings: Iterable[Reading]) -> Iterator[Reading]:
    """Marked where a cache may have answered."""
    kind = case.detail("file_system") or "the file system"
    dropped = f"direct I/O is refused by {kind}: pages were dropped before, but may have answered"
    for reading in readings:
        is_read = ("workload", "sequential read") in reading.levels
        cached = dropped if is_read and case.level("direct") == "no" else ""
        yield from with_suspicion([reading], [in_memory(case) or cached])
