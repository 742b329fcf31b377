"""The same storage attached to this machine, and through a server of network block devices (NBD).

After figure 7 of Flow in Cloud: fio on an NVMe drive of the machine, and on one behind a network.
nbdkit serves the file, and fio's own engine `nbd` is its client, so that no right is needed. By a
Unix socket that is what protocol and server cost; by TCP in a network of its own, whose loopback is
slowed down by the kernel's token bucket filter (tbf), what a link of that rate adds.

No cache may answer on one side alone. Local I/O is direct; the server drops from the page cache
what it has read or written (cache=none), and a write waits until the drive has taken the one some
places before it. So it is the drive's own rate that is measured on both sides, but not how long a
single write takes. Neither side flushes writes.
"""

import json
import shlex
from collections.abc import Sequence

from flowos.model import (
    Argv,
    Case,
    Chart,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Sample,
    Unmeasured,
)
from flowos.probes._base import (
    CANNOT_MEASURE_HERE,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    read_answer,
)
from flowos.probes._fio_cache import cache_answers
from flowos.probes._fio_job import (
    details_of,
    fio_seconds,
    fio_words,
    limit_seconds,
    read_fio,
    way_of,
)

AXIS = "attachment"
LOCAL, REMOTE, LINKED = "local", "remote", "remote, 10 Gbit/s"

RANDOM: tuple[Pairs, ...] = (
    (("workload", "random read"), ("iodepth", "1")),
    (("workload", "random read"), ("iodepth", "16")),
    (("workload", "random write"), ("iodepth", "16")),
)
SEQUENTIAL: tuple[Pairs, ...] = (
    (("workload", "sequential read"), ("iodepth", "16")),
    (("workload", "sequential write"), ("iodepth", "16")),
)

FILE = "{scratch}/flowos-data"
SERVED = '[ -s "$0" ] || {layout} >&2 || exit; {server}'
"""Either side may be the first: the file has to be there before it is served. Its name is $0."""

NO_LINK = {
    "cannot": "no network of its own with a slower loopback can be made here",
    "remedy": "apt install iproute2; allow user namespaces (sysctl user.max_user_namespaces)",
}
IN_A_NETWORK = "unshare --user --map-root-user --net"
LINK = "ip link set lo up && tc qdisc add dev lo root tbf rate 10gbit burst 4mb latency 50ms"
"""The bucket holds more than one packet of the loopback, as large as 64 KiB, and a timer's tick."""


def _chart(title: str, metrics: Argv, unit: str, *, depths: bool = True, about: str = "") -> Chart:
    return Chart(
        title=title,
        kind="bars",
        x="workload",
        metrics=metrics,
        series=(AXIS, *("iodepth",) * depths),
        y_label=unit,
        log_y=unit == "second",
        ceilings=False,
        about=about,
    )


class RemoteStorage(Probe):
    """Metrics as of fio: bandwidth (byte/s), iops (1/s), latency_p50, latency_p99 (second)."""

    info = ProbeInfo(
        name="remote_storage",
        title="Storage of this machine, and the same through a server (NBD)",
        charts=(
            _chart(
                "Local and remote storage, operations of 4 KiB",
                ("iops",),
                "1/s",
                about="Writes are not flushed one by one, on either side.",
            ),
            _chart(
                "Local and remote storage, 128 KiB sequential",
                ("bandwidth",),
                "byte/s",
                depths=False,
            ),
            _chart("Latency of local and remote storage", ("latency_p50",), "second"),
        ),
        rounds=4,
        headlines=tuple(
            Headline(
                f"Random 4 KiB read, {attachment} storage",
                "iops",
                ((AXIS, attachment), ("workload", "random read"), ("iodepth", "16")),
            )
            for attachment in (LOCAL, REMOTE)
        ),
        margin=0.06,
        compares=AXIS,
        on_storage=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """Only if the probe is asked for by name."""
        if self.name not in request.probes:
            return ()
        details, server = details_of(facts, request), facts.tool("nbdkit")
        if isinstance(details, Unmeasured):
            return details
        if server is None:
            return Unmeasured(
                reason="nbdkit, which serves storage to remote clients, was not found",
                remedy="apt install nbdkit",
            )
        own = (("nbdkit", str(server.path)), ("nbdkit_version", server.version))
        here = way_of(facts)
        ways = {LOCAL: here, **dict.fromkeys((REMOTE, LINKED), (("engine", "nbd"), here[1]))}
        if request.effort == "quick":
            del ways[LINKED]
        return tuple(
            Case(self.name, ((AXIS, attachment), *levels), (*details, *own, *way))
            for levels in RANDOM + SEQUENTIAL * (request.effort != "quick")
            for attachment, way in ways.items()
        )

    def seconds(self, case: Case) -> float:
        return fio_seconds(case, with_layout=False)

    def program(self, case: Case) -> Program:
        return Program(
            argv=_local(case) if case.level(AXIS) == LOCAL else _remote(case),
            limit_seconds=limit_seconds(case, self.seconds(case)),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        if outcome.end == Exited(CANNOT_MEASURE_HERE):
            return read_answer(outcome)
        return read_fio(case, outcome)

    def decides(self, sample: Sample) -> bool:
        return sample.metric in ("bandwidth", "iops")

    def checked(self, measured: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        return cache_answers(measured, self.name)

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """How both are attached."""
        cases = {m.case.level(AXIS): m.case for m in measured}
        if cases.keys() < {LOCAL, REMOTE}:
            return ()
        local, remote = cases[LOCAL], cases[REMOTE]
        direct = "direct I/O" if local.detail("direct") == "yes" else "the page cache"
        link = "; with a link, through TCP and the kernel's tbf" * (LINKED in cases)
        return (
            f"local storage: fio's engine {local.detail('engine')}, {direct}; remote: its engine"
            f" {remote.detail('engine')} through a Unix socket, served by nbdkit"
            f" {remote.detail('nbdkit_version')} (plugin file, cache=none){link}. Between machines"
            " the latency of their network comes on top",
        )


def _local(case: Case) -> Argv:
    direct = case.detail("direct") == "yes"
    return fio_words(case, case.detail("engine"), direct=direct, filename=FILE)


def _remote(case: Case) -> Argv:
    linked = case.level(AXIS) == LINKED
    layout = ("--name=layout", f"--size={case.detail('file_bytes')}", "--rw=write", "--bs=1m")
    where = ("--ipaddr=127.0.0.1", "--port=10809") if linked else ("-U", "-")
    serve = shlex.join(("exec", case.detail("nbdkit"), *where, "file"))
    client = f'exec {shlex.join(fio_words(case, "nbd", direct=False))} --uri="$uri"'
    pattern = case.level("workload").split()[0]
    serve += f' "file=$0" cache=none fadvise={pattern} --run {shlex.quote(client)}'
    script = SERVED.format(
        layout=f'{shlex.join((case.detail("fio"), *layout, "--end_fsync=1"))} --filename="$0"',
        server=_over_a_link(serve) if linked else serve,
    )
    return "/bin/sh", "-c", script, FILE


def _over_a_link(serve: str) -> str:
    """Any port is free there."""
    refuse = f"{{ echo {shlex.quote(json.dumps(NO_LINK))}; exit {CANNOT_MEASURE_HERE}; }}"
    inside = shlex.quote(f"{LINK} || {refuse}; {serve}")
    return (
        f'PATH="$PATH:/usr/sbin:/sbin"; {IN_A_NETWORK} true || {refuse};'
        f' exec {IN_A_NETWORK} -- /bin/sh -c {inside} "$0"'
    )
