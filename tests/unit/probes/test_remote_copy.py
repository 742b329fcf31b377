"""Copies to a local and a remote device: where both processes are, what is said of them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Case,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Tool,
    Unmeasured,
)
from flowos.probes._gpu import NO_TORCH
from flowos.probes._storage import NO_MPI
from flowos.probes.remote_copy import RemoteCopy
from tests.unit.probes.conftest import H200

MakeNode = Callable[..., Facts]
PROBE = RemoteCopy()
TORCH = Tool(name="torch", version="2.11.0", path=PurePath("/opt/python3"))
MPI = Mpi(
    name="MPICH",
    family="mpich",
    version="4.1",
    compiler=PurePath("/usr/bin/mpicc"),
    mpirun=PurePath("/usr/bin/mpirun"),
)
ASKED = MeasurementRequest(probes=("remote_copy",), effort="quick")
ENDS = {
    "local": (("end", "n1 (NVIDIA H200)"), ("link", "ib0"), ("sizes", "4096,1048576")),
    "remote": (("end", "n2 (no GPU)"), ("link", "ib0"), ("sizes", "4096,1048576")),
}


def case_of(facts: Facts, request: MeasurementRequest = ASKED) -> Case:
    found = PROBE.cases(replace(facts, tools=(TORCH,), mpis=(MPI,)), request)
    assert not isinstance(found, Unmeasured)
    (case,) = found
    return case


def test_it_is_measured_only_where_it_is_named_and_needs_pytorch_and_a_starter(
    node: MakeNode,
) -> None:
    there = replace(node(), tools=(TORCH,))
    assert PROBE.cases(there, MeasurementRequest()) == ()
    assert PROBE.cases(node(), ASKED) == NO_TORCH
    assert PROBE.cases(there, replace(ASKED, nodes=2)) == NO_MPI
    assert len(PROBE.cases(there, ASKED)) == 1, "on one node nothing else starts both processes"  # type: ignore[arg-type]


@pytest.mark.parametrize(("cores", "taken"), [(1, 1), (4, 2)])
def test_without_a_pool_both_processes_are_on_this_node(
    cores: int, taken: int, node: MakeNode
) -> None:
    case = case_of(node(cores=cores))
    program = PROBE.program(case)
    assert case.levels == (("nodes", "1"),)
    assert (program.ranks, program.mpi_family, program.cores) == (1, "", taken)
    assert "--nodes" not in program.argv
    assert dict(program.variables) == {"GLOO_SOCKET_IFNAME": "lo"}


@pytest.mark.parametrize("nodes", [2, 5])
def test_of_the_nodes_of_a_pool_two_have_a_process_each(nodes: int, node: MakeNode) -> None:
    facts = replace(node(cores=4), cuda=(H200,))
    case = case_of(facts, replace(ASKED, nodes=nodes))
    program = PROBE.program(case)
    assert case.levels == (("nodes", "2"),)
    assert (program.ranks, program.mpi_family, program.mpirun) == (2, "mpich", "/usr/bin/mpirun")
    assert program.argv[-2:] == ("--nodes", "2")
    assert program.cores == 1
    assert program.variables == (), "which interface is seen by the other, the program finds out"
    assert program.limit_seconds > PROBE.seconds(case)


def test_sizes_fit_into_memory_several_times(node: MakeNode) -> None:
    few = case_of(node(memory_bytes=1 << 30)).detail("sizes")
    assert few == "4096,1048576,67108864"
    assert case_of(node(memory_bytes=1 << 29)).detail("sizes") == "4096,1048576"
    assert case_of(node(memory_bytes=0)).detail("sizes") == few, "it is not known"


def test_levels_are_compared_by_four_rounds_but_with_quick_effort(node: MakeNode) -> None:
    quick, normal = (
        case_of(node(), replace(ASKED, effort=effort)) for effort in ("quick", "normal")
    )
    assert (PROBE.rounds([quick]), PROBE.rounds([normal])) == (1, 4)


def swept(attachment: str, device: str = "0", size: str = "1048576", nodes: str = "2") -> Case:
    levels = (("nodes", nodes), ("device", device), ("attachment", attachment))
    return Case("remote_copy", (*levels, ("to", "device"), ("bytes", size)), ENDS[attachment])


def measured(case: Case) -> Measurement:
    return Measurement(
        case=case, metric="bandwidth", unit="byte/s", count=1, median=1, low=1, high=1, best=1
    )


def test_it_says_how_both_are_attached_and_what_stands_for_a_gpu() -> None:
    local, remote = measured(swept("local")), measured(swept("remote", device="cpu"))
    assert PROBE.findings((local,)) == ()
    (said,) = PROBE.findings((local, remote))
    assert said.startswith("local: n1 (NVIDIA H200); remote: n2 (no GPU), through another node, by")
    assert "(Gloo) over ib0; where there is no GPU, memory stands for one (device cpu). " in said
    (alike,) = PROBE.findings((local, measured(swept("remote"))))
    assert "memory" not in alike
    here = [measured(swept(end, nodes="1")) for end in ENDS]
    assert "through another process of this node, by TCP" in PROBE.findings(here)[0]


def test_sizes_that_a_slow_link_has_no_time_for_are_named() -> None:
    every = [measured(swept("local", size=size)) for size in ("4096", "1048576")]
    few = measured(swept("remote", size="4096"))
    ((case, why),) = PROBE.left_out((*every, few))
    assert case.label == "remote_copy attachment=remote bytes=1048576"
    assert "too long" in why.reason


def test_bytes_that_came_back_as_others_are_one_clear_line(node: MakeNode) -> None:
    case = case_of(node())
    said = "torch_remote_copy: 4096 bytes came back from the remote device as others"
    stderr = f"mpirun: a process has ended\n{said}\n".encode()
    found = PROBE.read(case, Outcome(end=Exited(1), stdout=b"", stderr=stderr))
    assert found == Unmeasured(reason="4096 bytes came back from the remote device as others")
    answer = {"readings": [{"metric": "bandwidth", "unit": "byte/s", "values": [1.0]}]}
    readings = PROBE.read(case, Outcome(end=Exited(0), stdout=json.dumps(answer).encode()))
    assert not isinstance(readings, Unmeasured)
    assert readings[0].metric == "bandwidth"
