"""Probes of GPUs: which devices, which peaks of data sheets, what a machine without one does."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Case,
    Exited,
    Facts,
    MeasurementRequest,
    Mpi,
    Outcome,
    Tool,
    Unmeasured,
)
from flowos.probes import ComparedCase, Probe, probe_named
from flowos.probes._gpu import NO_GPU, NO_TORCH, nominal_gpu_flops, nominal_gpu_memory
from flowos.probes._storage import NO_MPI
from flowos.probes.facts import read_facts
from tests.unit.probes.conftest import H200

MakeNode = Callable[..., Facts]
TORCH = Tool(name="torch", version="2.11.0", path=PurePath("/opt/python3"))
MPI = Mpi(
    name="MPICH",
    family="mpich",
    version="4.1",
    compiler=PurePath("/usr/bin/mpicc"),
    mpirun=PurePath("/usr/bin/mpirun"),
)
NAMES = ("gpu_gemm", "gpu_stream", "gpu_copy", "deepbench", "collectives", "nbody")
ON_HOST = tuple(name for name in NAMES if name != "gpu_copy")


def probe(name: str) -> Probe:
    found = probe_named(name)
    assert found is not None
    return found


def cases(
    name: str, facts: Facts, effort: str = "quick", *, asked: bool = False
) -> tuple[Case, ...] | Unmeasured:
    request = MeasurementRequest(effort=effort, probes=(name,) if asked else ())  # type: ignore[arg-type]
    return probe(name).cases(facts, request)


def with_gpus(facts: Facts, count: int = 1) -> Facts:
    gpus = tuple(replace(H200, number=number) for number in range(count))
    return replace(facts, cuda=gpus, tools=(TORCH,))


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_without_a_gpu_measures_nothing_of_it_unasked(name: str, node: MakeNode) -> None:
    for tools in ((), (TORCH,)):
        assert cases(name, replace(node(), tools=tools)) == ()


@pytest.mark.parametrize("name", ON_HOST)
def test_asked_for_by_name_it_measures_the_processors(name: str, node: MakeNode) -> None:
    found = cases(name, replace(node(), tools=(TORCH,)), asked=True)
    assert not isinstance(found, Unmeasured)
    assert found
    for case in found:
        program = probe(name).program(case)
        assert "cuda" not in " ".join(program.argv)
        assert not program.on_gpu
        assert probe(name).seconds(case) > 0


def test_what_lacks_is_said(node: MakeNode) -> None:
    bare = node(compilers=())
    assert cases("gpu_copy", replace(bare, tools=(TORCH,)), asked=True) == NO_GPU
    for name in ("gpu_gemm", "collectives"):
        assert cases(name, bare, asked=True) == NO_TORCH
        assert cases(name, replace(bare, cuda=(H200, H200))) == NO_TORCH
    no_compiler = cases("nbody", bare, asked=True)
    assert isinstance(no_compiler, Unmeasured)
    assert "compiler" in no_compiler.reason


@pytest.mark.parametrize("name", [n for n in NAMES if n != "collectives"])
def test_each_gpu_is_a_case_of_its_own(name: str, node: MakeNode) -> None:
    found = cases(name, with_gpus(node(), 2))
    assert not isinstance(found, Unmeasured)
    assert [case.level("device") for case in found][:2] == ["0", "1"]
    assert [case.level("device") for case in found][2:] == ["2 GPUs"] * (name == "nbody")
    program = probe(name).program(found[1])
    assert "cuda:1" in program.argv
    assert program.script.endswith(".py")
    assert program.on_gpu == (name != "gpu_copy")  # a copy needs the processors as well


@pytest.mark.parametrize(("gpus", "several"), [(1, []), (3, ["2 GPUs"]), (4, ["2 GPUs", "4 GPUs"])])
def test_bodies_are_split_over_two_gpus_and_four(
    gpus: int, several: list[str], node: MakeNode
) -> None:
    found = cases("nbody", with_gpus(node(), gpus))
    assert not isinstance(found, Unmeasured)
    assert [case.level("device") for case in found[gpus:]] == several
    all_of_them = [f"cuda:{n}" for n in range(2 * len(several))] or ["cuda:0"]
    program = probe("nbody").program(found[-1])
    assert program.argv[2].split(",") == all_of_them
    assert int(found[-1].detail("bodies")) % (64 * len(all_of_them)) == 0, "the kernel's blocks"


@pytest.mark.parametrize("name", ["gpu_gemm", "gpu_stream", "deepbench", "nbody"])
def test_watts_are_beside_what_a_joule_does(name: str) -> None:
    shown = [metric for chart in probe(name).info.charts for metric in chart.metrics]
    rate = "bandwidth" if name == "gpu_stream" else "flops"
    assert shown == [rate, f"{rate}_per_joule", "power"]


def compared(name: str, facts: Facts, nodes: int = 1) -> tuple[ComparedCase, ...] | Unmeasured:
    request = MeasurementRequest(effort="full", probes=(name,), nodes=nodes)
    return probe(name).compared(facts, request)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gpu_gemm", "gpu_gemm device=0"),
        ("collectives", "collectives backend=nccl ranks=2"),
        ("training", "training device=cuda ranks=2"),
    ],
)
def test_environments_are_compared_by_the_pytorch_of_each(
    name: str, shown: str, node: MakeNode
) -> None:
    facts = with_gpus(node(), 2)
    found = compared(name, facts)
    assert not isinstance(found, Unmeasured)
    assert [each.shown.label for each in found] == [shown]
    assert found[0].shown.detail("stack") == "PyTorch 2.11.0"
    assert probe(name).seconds(found[0].case) < 60, "as with quick effort"
    inside = replace(facts, tools=(replace(TORCH, path=PurePath("/inside"), version="2.8"),))
    (other,) = compared(name, inside)  # type: ignore[misc]
    assert other.shown == found[0].shown, "it is the same case, whatever Python has PyTorch"
    assert probe(name).program(other.case).argv[0] == "/inside"
    assert probe(name).info.own_python
    assert compared(name, replace(facts, tools=())) == NO_TORCH


def test_over_nodes_environments_are_compared_on_all_of_them(node: MakeNode) -> None:
    facts = replace(with_gpus(node(), 2), mpis=(MPI,))
    for name in ("collectives", "training"):
        found = compared(name, facts, 3)
        assert not isinstance(found, Unmeasured)
        assert [each.shown.level("nodes") for each in found] == ["3"]


def test_nccl_tests_alone_compare_nothing(node: MakeNode) -> None:
    theirs = Tool(name="all_reduce_perf", version="", path=PurePath("/opt/all_reduce_perf"))
    facts = replace(with_gpus(node(), 2), tools=(theirs,))
    assert compared("collectives", facts) == NO_TORCH
    unasked = probe("collectives").compared(node(), MeasurementRequest())
    assert unasked == ()


def test_nccl_needs_two_gpus(node: MakeNode) -> None:
    assert cases("collectives", with_gpus(node(), 1)) == ()
    (case,) = cases("collectives", with_gpus(node(), 4), "full")  # type: ignore[misc]
    assert case.levels == (("backend", "nccl"), ("ranks", "4"))
    assert str(1 << 30) in case.detail("sizes").split(",")


def test_a_core_alone_has_two_ranks_all_the_same(node: MakeNode) -> None:
    (case,) = cases("collectives", replace(node(cores=1), tools=(TORCH,)), asked=True)  # type: ignore[misc]
    program = probe("collectives").program(case)
    assert (case.level("ranks"), program.cores) == ("2", 2)
    assert dict(program.variables) == {"GLOO_SOCKET_IFNAME": "lo"}


def over_nodes(facts: Facts, nodes: int = 6) -> tuple[Case, ...] | Unmeasured:
    request = MeasurementRequest(effort="quick", probes=("collectives",), nodes=nodes)
    return probe("collectives").cases(facts, request)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (0, [("gloo", "1", "2"), ("gloo", "2", "4"), ("gloo", "4", "8"), ("gloo", "6", "12")]),
        (4, [("nccl", "1", "4"), ("nccl", "2", "8"), ("nccl", "4", "16"), ("nccl", "6", "24")]),
        (1, [("nccl", "2", "2"), ("nccl", "4", "4"), ("nccl", "6", "6")]),  # alone has no other
    ],
)
def test_collectives_over_nodes_are_between_all_their_gpus_or_two_ranks_of_each(
    gpus: int, expected: list[tuple[str, str, str]], node: MakeNode
) -> None:
    found = over_nodes(replace(with_gpus(node(cores=8), gpus), mpis=(MPI,)))
    assert not isinstance(found, Unmeasured)
    assert [tuple(map(case.level, ("backend", "nodes", "ranks"))) for case in found] == expected
    program = probe("collectives").program(found[-1])
    assert (program.ranks, program.mpi_family, program.mpirun) == (6, "mpich", "/usr/bin/mpirun")
    assert program.argv[1:3] == ("--ranks", str(gpus or 2)), "of each node"
    assert program.argv[-2:] == ("--nodes", "6")
    assert program.variables == (), "which interface is seen by the others, the program finds out"
    assert program.cores == (1 if gpus else 2)


def test_on_one_of_several_nodes_gloo_s_ranks_meet_by_the_loopback(node: MakeNode) -> None:
    found = over_nodes(replace(with_gpus(node(), 0), mpis=(MPI,)))
    assert not isinstance(found, Unmeasured)
    program = probe("collectives").program(found[0])
    assert (program.ranks, program.mpi_family) == (1, "")
    assert "--nodes" not in program.argv
    assert dict(program.variables) == {"GLOO_SOCKET_IFNAME": "lo"}


def test_on_nodes_of_one_core_two_ranks_share_it(node: MakeNode) -> None:
    found = over_nodes(replace(with_gpus(node(cores=1), 0), mpis=(MPI,)), 2)
    assert not isinstance(found, Unmeasured)
    program = probe("collectives").program(found[-1])
    assert (program.ranks, program.cores) == (2, 1), "as many as the nodes have, or it is refused"
    assert program.argv[1:3] == ("--ranks", "2")


def test_collectives_over_nodes_are_asked_for_and_need_pytorch_and_a_starter(
    node: MakeNode,
) -> None:
    there = with_gpus(node(), 4)
    assert over_nodes(there) == NO_MPI
    assert over_nodes(replace(there, tools=(), mpis=(MPI,))) == NO_TORCH
    unasked = MeasurementRequest(nodes=2)
    assert probe("collectives").cases(replace(there, mpis=(MPI,)), unasked) == ()


@pytest.mark.parametrize(
    ("kind", "tera"),
    [("f64", 66.9), ("f32", 66.9), ("tf32", 535), ("f16", 1071), ("bf16", 1071), ("fp8", 2141)],
)
def test_peaks_of_an_h200_are_those_of_its_data_sheet_at_its_highest_clock(
    kind: str, tera: float, node: MakeNode
) -> None:
    """The sheet has 67, 67, 495, 989, 989 and 1979: of tensor cores at 1.83 GHz."""
    case = Case("gpu_gemm", levels=(("device", "0"), ("type", kind)))
    found = nominal_gpu_flops(case, "flop/s", with_gpus(node()))
    assert found is not None
    name, value = found
    assert value == pytest.approx(tera * 1e12, rel=1e-3)
    assert name.startswith("1.980 GHz x 132 SMs x ")
    assert name.endswith("CUDA cores" if kind == "f32" else "tensor cores")


def test_what_no_sheet_says_has_no_peak(node: MakeNode) -> None:
    gpu = with_gpus(node())
    case = Case("gpu_gemm", levels=(("device", "0"), ("type", "f64")))
    older = replace(gpu, cuda=(replace(H200, capability=(3, 5)),))
    unclocked = replace(gpu, cuda=(replace(H200, clock_hz=0.0),))
    assert nominal_gpu_flops(case, "flop/J", gpu) is None
    assert nominal_gpu_flops(case, "flop/s", older) is None
    assert nominal_gpu_flops(case, "flop/s", unclocked) is None
    assert nominal_gpu_flops(case.at(device="cpu"), "flop/s", gpu) is None
    assert nominal_gpu_memory(case.at(device="cpu"), "byte/s", gpu) is None
    no_bus = replace(gpu, cuda=(replace(H200, bus_bits=0),))
    assert nominal_gpu_memory(case, "byte/s", no_bus) is None


def test_the_memory_of_an_h200_has_4_8_terabytes_a_second(node: MakeNode) -> None:
    case = Case("gpu_stream", levels=(("device", "0"), ("kernel", "triad")))
    found = nominal_gpu_memory(case, "byte/s", with_gpus(node()))
    assert found is not None
    assert found[1] == pytest.approx(4.8e12, rel=0.005)


def test_arrays_are_beyond_the_cache_and_fit(node: MakeNode) -> None:
    (large,) = cases("gpu_stream", with_gpus(node()))  # type: ignore[misc]
    assert int(large.detail("bytes")) == 256 << 20
    tight = replace(H200, memory_bytes=1 << 30)
    (small,) = cases("gpu_stream", replace(with_gpus(node()), cuda=(tight,)))  # type: ignore[misc]
    assert 3 * int(small.detail("bytes")) < 1 << 30


def test_a_product_on_processors_is_bounded_by_their_arithmetic() -> None:
    gemm = probe("gpu_gemm")
    on = Case("gpu_gemm", levels=(("device", "cpu"), ("type", "f64"), ("n", "256")))
    assert gemm.ceiling(on) == Case("flops", levels=(("type", "f64"),))
    assert gemm.ceiling(on.at(type="bf16")) is None
    assert gemm.ceiling(on.at(device="0")) is None


@pytest.mark.parametrize("name", NAMES)
def test_the_programs_own_words_are_the_reason(name: str) -> None:
    said = {"cannot": "this PyTorch has no CUDA", "remedy": "pip install torch"}
    ended = Outcome(end=Exited(77), stdout=json.dumps(said).encode())
    found = probe(name).read(Case(name), ended)
    assert found == Unmeasured(reason="this PyTorch has no CUDA", remedy="pip install torch")


def test_gpus_are_read_from_what_their_driver_says() -> None:
    entry = {
        "number": 0,
        "name": "NVIDIA H200",
        "memory_bytes": 150109880320,
        "clock_khz": 1980000,
        "multiprocessors": 132,
        "memory_clock_khz": 3201000,
        "bus_bits": 6016,
        "cache_bytes": 62914560,
        "major": 9,
        "minor": 0,
    }
    assert read_facts({"cuda": [entry, {"number": 1}, "what"]}).cuda == (H200,)
    (odd,) = read_facts({"cuda": [{"name": "X", "clock_khz": "fast"}]}).cuda
    assert (odd.clock_hz, odd.capability) == (0.0, (0, 0))


def test_a_gpu_without_pytorch_is_missed() -> None:
    information = {"/proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t NVIDIA H200"}
    (missing,) = (m for m in read_facts({"files": information}).missing if m.what == "PyTorch")
    assert "pip install torch" in missing.remedy
    tool = {"name": "torch", "path": "/usr/bin/python3", "says": "2.11.0", "fails": ""}
    found = read_facts({"files": information, "tools": [tool]})
    assert "PyTorch" not in {m.what for m in found.missing}
