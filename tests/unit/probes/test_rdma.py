"""RDMA by perftest: which port and program, and the tables; tests/data/perftest says whose.

Not measured here: no machine of ours has an RDMA device.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.model import (
    Case,
    Effort,
    End,
    Exited,
    Facts,
    Killed,
    MeasurementRequest,
    Mpi,
    NotStarted,
    Outcome,
    RdmaPort,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes._storage import NO_MPI
from flowos.probes.facts import read_facts
from flowos.probes.rdma import NO_PERFTEST, NO_RDMA, Rdma

MakeNode = Callable[..., Facts]
PROBE = Rdma()
DATA = Path(__file__).parents[2] / "data/perftest"
MIB, MB, GBITS, LATENCY, OLD = (
    (DATA / f"{name}.txt").read_bytes()
    for name in ("write_bw_mib", "write_bw_mb", "write_bw_gbits", "write_lat", "old_write_bw")
)
QDR = RdmaPort(
    device="mlx4_0",
    number=1,
    link_layer="InfiniBand",
    state="ACTIVE",
    speed="4X QDR",
    bytes_per_second=4e9,
)
TOOLS = tuple(
    Tool(name=name, version="", path=PurePath("/usr/bin", name))
    for name in ("ib_write_bw", "ib_read_bw", "ib_write_lat")
)
MPI = Mpi(
    name="mpich",
    family="mpich",
    version="4.0.2",
    compiler=PurePath("/usr/bin/mpicc"),
    mpirun=PurePath("/usr/bin/mpirun"),
)
ASKED = MeasurementRequest(probes=("rdma",))
DONE = Exited(0)


def cases(facts: Facts, request: MeasurementRequest = ASKED) -> tuple[Case, ...]:
    found = PROBE.cases(facts, request)
    assert not isinstance(found, Unmeasured), found.reason
    return found


def read(
    stdout: bytes, program: str = "ib_write_bw", end: End = DONE, stderr: bytes = b""
) -> tuple[Reading, ...] | Unmeasured:
    case = Case("rdma", levels=(("program", program),), details=(("port_of", "mlx4_0 port 1"),))
    return PROBE.read(case, Outcome(end=end, stdout=stdout, stderr=stderr))


def values(stdout: bytes, program: str = "ib_write_bw") -> dict[str, float]:
    """By bytes."""
    found = read(stdout, program)
    assert not isinstance(found, Unmeasured), found.reason
    return {dict(each.levels)["bytes"]: each.values[0] for each in found}


def reason(
    stdout: bytes, program: str = "ib_write_bw", end: End = DONE, stderr: bytes = b""
) -> str:
    found = read(stdout, program, end, stderr)
    assert isinstance(found, Unmeasured)
    assert "\n" not in found.reason
    return found.reason


# --- where it is measured ----------------------------------------------------------------------


def test_without_a_device_nothing_is_planned_and_it_is_said_where_it_is_asked(
    node: MakeNode,
) -> None:
    assert PROBE.cases(node(), MeasurementRequest()) == ()
    assert PROBE.cases(replace(node(), tools=TOOLS), ASKED) == NO_RDMA


def test_a_port_without_a_link_is_named_with_its_state(node: MakeNode) -> None:
    down = replace(node(), tools=TOOLS, rdma=(replace(QDR, state="INIT"),))
    found = PROBE.cases(down, ASKED)
    assert isinstance(found, Unmeasured)
    assert "ACTIVE: mlx4_0 port 1 (InfiniBand, 4X QDR) is INIT" in found.reason
    assert "subnet manager" in found.remedy


def test_a_device_without_perftest_and_two_nodes_without_an_mpi_lack_it(node: MakeNode) -> None:
    there = replace(node(), rdma=(QDR,))
    assert PROBE.cases(there, MeasurementRequest()) == NO_PERFTEST
    assert PROBE.cases(replace(there, tools=TOOLS), replace(ASKED, nodes=2)) == NO_MPI


def test_the_fastest_active_port_is_measured_by_each_program_that_is_there(node: MakeNode) -> None:
    slow = replace(QDR, device="eth_0", bytes_per_second=1e9)
    down = replace(QDR, device="mlx5_0", state="DOWN", bytes_per_second=25e9)
    facts = replace(node(), rdma=(slow, replace(QDR, number=2), down), tools=TOOLS[:2])
    found = cases(facts, MeasurementRequest())
    assert [each.level("program") for each in found] == ["ib_write_bw", "ib_read_bw"]
    program = PROBE.program(found[0])
    assert program.argv == (
        *("python3", "/usr/bin/ib_write_bw", "-d", "mlx4_0", "-i", "2", "-a", "-n", "953", "-F"),
    )
    assert (program.script, program.ranks, program.mpirun) == ("perftest_pair.py", 1, "")


@pytest.mark.parametrize(("cores", "taken"), [(1, 1), (4, 2)])
def test_server_and_client_of_one_node_have_a_core_each(
    cores: int, taken: int, node: MakeNode
) -> None:
    facts = replace(node(cores=cores), rdma=(QDR,), tools=TOOLS)
    assert PROBE.program(cases(facts)[0]).cores == taken


def test_between_nodes_a_rank_of_each_of_two_is_started(node: MakeNode) -> None:
    facts = replace(node(), rdma=(QDR,), tools=TOOLS, mpis=(MPI,))
    program = PROBE.program(cases(facts, replace(ASKED, nodes=4))[0])
    assert program.argv[:4] == ("python3", "--nodes", "2", "/usr/bin/ib_write_bw")
    started = (program.ranks, program.cores, program.mpi_family, program.mpirun)
    assert started == (2, 1, "mpich", "/usr/bin/mpirun")


@pytest.mark.parametrize(
    ("effort", "rate", "iterations"),
    [
        ("quick", 4e9, (238, 119)),
        ("full", 4e9, (2384, 1192)),
        ("normal", 50e9, (5000, 5000)),
        ("quick", 1e8, (100, 100)),
        ("quick", 0.0, (100, 100)),
    ],
)
def test_the_messages_are_as_many_as_take_the_time(
    effort: Effort, rate: float, iterations: tuple[int, int], node: MakeNode
) -> None:
    facts = replace(node(), rdma=(replace(QDR, bytes_per_second=rate),), tools=TOOLS)
    write, _, latency = cases(facts, replace(ASKED, effort=effort))
    assert tuple(int(each.detail("iterations")) for each in (write, latency)) == iterations
    each = (2**24 - 2) / (rate or 1e8)
    assert PROBE.seconds(write) == pytest.approx(3 + iterations[0] * each, rel=1e-3)
    assert PROBE.program(write).limit_seconds > 20 * PROBE.seconds(write)


def test_the_links_rate_bounds_large_messages_that_go_over_it(node: MakeNode) -> None:
    facts = replace(node(), rdma=(QDR,), tools=TOOLS, mpis=(MPI,))
    loop, over = (cases(facts, replace(ASKED, nodes=count))[0] for count in (1, 2))
    nominal, large = PROBE.info.nominal, over.at(bytes="65536")
    assert nominal(large, "byte/s", facts) == ("mlx4_0 port 1 (InfiniBand, 4X QDR)", 4e9)
    assert nominal(over.at(bytes="32768"), "byte/s", facts) is None
    assert nominal(large, "second", facts) is None
    assert nominal(loop.at(bytes="65536"), "byte/s", facts) is None
    unknown = replace(facts, rdma=(replace(QDR, bytes_per_second=0.0),))
    large = cases(unknown, replace(ASKED, nodes=2))[0].at(bytes="65536")
    assert nominal(large, "byte/s", unknown) is None


# --- tables ------------------------------------------------------------------------------------


def test_mib_are_bytes_and_small_messages_are_as_exact_as_their_rate() -> None:
    found = values(MIB)
    assert list(found) == ["2", "4", "8", "1024", "4096", "65536"]
    assert found["65536"] == 3293.56 * 2**20
    assert found["2"] == pytest.approx(2 * 0.570447e6)
    assert found["4096"] == pytest.approx(5455.37 * 2**20, rel=1e-4)


def test_mb_of_older_versions_are_mib_and_gbits_are_decimal() -> None:
    assert values(MB) == {"65536": 2709.48 * 2**20}
    assert values(OLD) == {"65536": 3293.56 * 2**20}
    assert values(GBITS) == pytest.approx(
        {"2": 2 * 2.636533e6, "4": 4 * 2.639276e6, "8": 8 * 2.641399e6}
    )


def test_a_slow_devices_bandwidth_is_not_cut_to_a_digit() -> None:
    """Of a software device: 0.06 MiB/s may be 57 to 68 kB/s."""
    slow = MB.replace(b"2709.48", b"0.06   ").replace(b"0.043352", b"0.008390")
    assert values(slow.replace(b" 65536 ", b" 8     ")) == {"8": pytest.approx(8 * 8390)}


def test_latency_is_the_median_and_warnings_before_its_row_are_none() -> None:
    found = read(LATENCY, "ib_write_lat")
    assert not isinstance(found, Unmeasured)
    (only,) = found
    assert (only.metric, only.unit, only.values) == ("latency", "second", (1.11e-6,))
    assert (only.levels, only.notes) == ((("bytes", "2"),), (("port", "mlx4_0 port 1"),))


@pytest.mark.parametrize(
    ("stdout", "says"),
    [
        (MB[: MB.index(b" 65536")], "its output is no whole table"),
        (MB[: MB.rindex(b"-----")].rstrip(b"-"), "its output is no whole table"),
        (MB.replace(b"#bytes", b"bytes"), "its output is no whole table"),
        (b"", "its output is no whole table: ''"),
        (b"\x00\xff 12\n", "its output is no whole table"),
        (MB.replace(b"5000 ", b"     "), "a row that its columns do not explain: '65536 2709.52"),
        (MB.replace(b" 65536", b" 6553G"), "'6553G' is no number in"),
        (MB.replace(b"2709.48", b"-nan   "), "'-nan' is no number in"),
        (OLD.replace(b"3293.56", b"0.00   "), "a bandwidth of 0 with messages of 65536 bytes"),
        (OLD.replace(b"3293.56", b"-7.00  "), "a bandwidth of -7.34003e+06 with messages"),
        (MB.replace(b"MB/sec", b"kB/sec"), "its table has no column for the bandwidth: #bytes, "),
        (LATENCY, "its table has no column for the bandwidth: #bytes, #iterations, t_min[usec]"),
        (MB.replace(b"MB/sec", b"Gb/sec"), "3.387e+11 byte/s and 0.043352e6 messages/s of"),
    ],
)
def test_a_table_that_is_not_sound_is_refused_in_one_line(stdout: bytes, says: str) -> None:
    assert reason(stdout).startswith(f"ib_write_bw: {says}")


def test_a_latency_in_cycles_is_none_in_seconds() -> None:
    cycles = LATENCY.replace(b"[usec]", b"[cycles]")
    assert reason(cycles, "ib_write_lat").startswith("ib_write_lat: its table has no column")


def test_a_failure_is_said_in_its_own_words() -> None:
    own = b"perftest_pair: ib_write_bw failed: client: Completion with error at client"
    said = b"mpirun: noise\n" + own + b"\n"
    assert reason(MB, end=Exited(1), stderr=said) == own.decode().partition(": ")[2]
    assert reason(b"", end=Killed(9)).startswith("the program ended by ")
    assert "python3" in reason(b"", end=NotStarted("python3 was not found"))


# --- facts -------------------------------------------------------------------------------------


def ports(state: str, rate: str | None, layer: str = "InfiniBand") -> dict[str, str]:
    folder = "/sys/class/infiniband/mlx4_0/ports/1"
    texts = {"state": state, "link_layer": layer, **({} if rate is None else {"rate": rate})}
    return {f"{folder}/{name}": text for name, text in texts.items()}


@pytest.mark.parametrize(
    ("layer", "rate", "speed", "gbits"),
    [
        ("InfiniBand", "40 Gb/sec (4X QDR)\n", "4X QDR", 32.0),
        ("InfiniBand", "10 Gb/sec (4X)", "4X", 8.0),
        ("InfiniBand", "2.5 Gb/sec (1X SDR)", "1X SDR", 2.0),
        ("InfiniBand", "40 Gb/sec (4X FDR10)", "4X FDR10", 40.0),
        ("InfiniBand", "56 Gb/sec (4X FDR)", "4X FDR", 56 * 64 / 66),
        ("InfiniBand", "100 Gb/sec (4X EDR)", "4X EDR", 100.0),
        ("Ethernet", "40 Gb/sec (4X QDR)", "4X QDR", 40.0),
        ("Ethernet", "25 Gb/sec", "", 25.0),
        ("", "no rate", "", 0.0),
        ("", None, "", 0.0),
    ],
)
def test_the_rate_of_a_port_is_that_of_its_data(
    layer: str, rate: str | None, speed: str, gbits: float
) -> None:
    (port,) = read_facts({"files": ports("4: ACTIVE\n", rate, layer)}).rdma
    assert (port.device, port.number, port.link_layer) == ("mlx4_0", 1, layer)
    assert (port.is_active, port.speed) == (True, speed)
    assert port.bytes_per_second == pytest.approx(gbits * 1e9 / 8)


def test_a_state_that_is_no_link_is_not_active() -> None:
    for state in ("1: DOWN", "2: INIT", "", "5: ACTIVE_DEFER"):
        (port,) = read_facts({"files": ports(state, "10 Gb/sec (4X)")}).rdma
        assert not port.is_active


def test_perftest_is_missing_only_where_a_port_is_active() -> None:
    debian = {"/etc/os-release": "ID=debian"}

    def missing(state: str, *tools: dict[str, str]) -> dict[str, str]:
        files = {**debian, **ports(state, "40 Gb/sec (4X QDR)")}
        found = read_facts({"files": files, "uid": 0, "tools": list(tools)}).missing
        return {each.what: each.remedy for each in found}

    write = {"name": "ib_write_bw", "path": "/usr/bin/ib_write_bw", "loads": "", "fails": ""}
    assert missing("4: ACTIVE")["perftest"] == "apt install perftest"
    lacks = {**write, "fails": "lacks libibverbs.so.1"}
    assert missing("4: ACTIVE", lacks)["perftest"] == "apt install perftest"
    assert "perftest" not in missing("4: ACTIVE", write)
    assert "perftest" not in missing("1: DOWN")
