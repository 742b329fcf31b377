"""nccl-tests' command lines and tables; tests/data/nccl says where its tables are from.

Not measured here: no machine of ours has two GPUs.
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
    Outcome,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes.collectives import Collectives
from tests.unit.probes.conftest import H200

MakeNode = Callable[..., Facts]
PROBE = Collectives()
DONE = Exited(0)
DATA = Path(__file__).parents[2] / "data/nccl"
NEW = (DATA / "all_reduce_perf.txt").read_bytes()
OLD = (DATA / "old_all_gather_perf.txt").read_bytes()
TOOLS = tuple(
    Tool(name=f"{name}_perf", version="", path=PurePath(f"/opt/nccl-tests/{name}_perf"))
    for name in ("all_reduce", "all_gather", "reduce_scatter")
)


def on(node: MakeNode, gpus: int = 8) -> Facts:
    return replace(node(), cuda=(H200,) * gpus, tools=TOOLS)


def case(collective: str = "allreduce", ranks: int = 8) -> Case:
    levels = {"backend": "nccl-tests", "ranks": str(ranks), "collective": collective}
    return Case("collectives", levels=tuple(levels.items()))


def read(
    stdout: bytes,
    end: End = DONE,
    stderr: bytes = b"",
    of: Case | None = None,
) -> tuple[Reading, ...] | Unmeasured:
    return PROBE.read(of or case(), Outcome(end=end, stdout=stdout, stderr=stderr))


def reason(stdout: bytes, end: End = DONE, stderr: bytes = b"") -> str:
    found = read(stdout, end, stderr)
    assert isinstance(found, Unmeasured)
    assert "\n" not in found.reason
    return found.reason


@pytest.mark.parametrize(
    ("effort", "sweep"),
    [
        ("quick", "-b 8 -e 16M -f 8"),
        ("normal", "-b 8 -e 128M -f 2"),
        ("full", "-b 8 -e 1G -f 2"),
    ],
)
def test_each_collective_is_a_program_of_theirs_on_all_gpus(
    effort: Effort, sweep: str, node: MakeNode
) -> None:
    found = PROBE.cases(on(node), MeasurementRequest(effort=effort))
    assert not isinstance(found, Unmeasured), "no PyTorch is needed"
    assert [" ".join(PROBE.program(each).argv) for each in found] == [
        f"/opt/nccl-tests/{name}_perf {sweep} -g 8 -c 1"
        for name in ("all_reduce", "all_gather", "reduce_scatter")
    ]
    assert all(PROBE.program(each).on_gpu for each in found)
    assert {each.level("backend") for each in found} == {"nccl-tests"}


def test_they_are_beside_those_of_pytorch_and_need_two_gpus(node: MakeNode) -> None:
    torch = Tool(name="torch", version="2.11.0", path=PurePath("/usr/bin/python3"))
    both = replace(on(node, 2), tools=(torch, TOOLS[0]))
    found = PROBE.cases(both, MeasurementRequest())
    assert not isinstance(found, Unmeasured)
    assert [each.level("backend") for each in found] == ["nccl", "nccl-tests"]
    assert PROBE.cases(on(node, 1), MeasurementRequest()) == ()


def test_a_row_is_a_time_and_bandwidths_as_they_define_them() -> None:
    readings = read(NEW)
    assert not isinstance(readings, Unmeasured), readings
    assert {dict(r.levels)["collective"] for r in readings} == {"allreduce"}
    sizes = dict.fromkeys(dict(r.levels)["bytes"] for r in readings)
    assert list(sizes) == ["32768", "262144", "2097152", "16777216"]
    last = {r.metric: r for r in readings[-3:]}
    assert (last["time"].unit, last["bus_bandwidth"].unit) == ("second", "byte/s")
    assert last["time"].values == pytest.approx([121.33e-6])
    assert last["algorithm_bandwidth"].values == pytest.approx([138.28e9], rel=1e-4)
    assert last["bus_bandwidth"].values == pytest.approx([242.00e9], rel=1e-4)


def test_an_old_table_has_no_root_and_says_error_for_wrong() -> None:
    readings = read(OLD, of=case("allgather", 2))
    assert not isinstance(readings, Unmeasured), readings
    assert readings[2].values == pytest.approx([13.11e9], rel=1e-3)


@pytest.mark.parametrize(
    ("stdout", "says"),
    [
        (NEW.replace(b"242.00       0", b"242.00       7"), "wrong values came, of 16777216 bytes"),
        (NEW.replace(b"242.00       0", b"242.00     N/A"), "wrong values came, of 16777216 bytes"),
        (NEW.replace(b"  40.66 ", b"  44.66 "), "a row whose time and bandwidth disagree"),
        (NEW.replace(b"  40.66 ", b"   0.00 "), "a row whose time and bandwidth disagree"),
        (NEW.replace(b"  40.66 ", b"  4O.66 "), "'4O.66' is no number in"),
        (NEW.replace(b"  40.66 ", b"        "), "a row that its columns do not explain"),
        (NEW.replace(b"#       size ", b"#       what "), "a row that its columns do not explain"),
        (NEW.replace(b": 0 OK", b": 3 FAILED"), "its output is no whole table"),
        (NEW[: NEW.index(b"# Out of bounds")], "its output is no whole table"),
        (b"", "its output is no whole table: ''"),
        (b"\x00\xff 12", "its output is no whole table"),
    ],
)
def test_a_table_that_is_not_sound_is_refused_in_one_line(stdout: bytes, says: str) -> None:
    assert reason(stdout).startswith(f"nccl-tests: {says}")


def test_a_failure_is_said_in_its_own_words() -> None:
    failure = b"g1: Test CUDA failure common.cu:1003 'no CUDA-capable device is detected'"
    head = NEW[: NEW.index(b"#  Rank")]
    assert reason(head + failure + b"\n", Exited(2)) == f"nccl-tests: {failure.decode()}"
    assert reason(head, Exited(3), failure) == f"nccl-tests: {failure.decode()}"
    assert reason(head, Killed(11)).startswith("nccl-tests: ")
