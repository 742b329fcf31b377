"""What each probe measures on a large node and on a small one, compared with tests/golden/probes.

FLOWOS_WRITE_GOLDEN=1 writes them anew; look at the difference before it is committed. A missing
golden file is a failure. Every case of a quick run, first and last of the longer ones, with the
programs that measure them.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path, PurePath
from typing import Any, get_args

import pytest

from flowos.model import (
    Blas,
    Case,
    Chart,
    Compiler,
    Effort,
    Facts,
    FileSystemFacts,
    MeasurementRequest,
    Mpi,
    RdmaPort,
    Tool,
    Tried,
    Unmeasured,
)
from flowos.probes import Headline, Probe, Program
from flowos.probes._tables import PROBES
from tests.unit.probes.conftest import H200

GOLDEN = Path(__file__).parents[2] / "golden/probes"
EDR = RdmaPort(
    device="mlx5_0",
    number=1,
    link_layer="InfiniBand",
    state="ACTIVE",
    speed="4X EDR",
    bytes_per_second=12.5e9,
)
EFFORTS: Sequence[Effort] = get_args(Effort)


def compiler(name: str, language: Any = "c") -> Compiler:
    return Compiler(
        name=name,
        family="clang" if "clang" in name else "gcc",
        language=language,
        version="12.2.0",
        path=PurePath("/usr/bin", name),
        openmp=True,
    )


def with_all(node: Facts) -> Facts:
    """With all software that a probe may want."""
    return replace(
        node,
        compilers=(compiler("gcc"), compiler("clang-16"), compiler("g++", "c++")),
        blas=(
            Blas(
                name="openblas-pthread",
                family="openblas",
                version="0.3.21",
                path=PurePath("/usr/lib/libopenblas.so.0"),
            ),
        ),
        mpis=(
            Mpi(
                name="Open MPI 4.1.4",
                family="openmpi",
                version="4.1.4",
                compiler=PurePath("/usr/bin/mpicc"),
                mpirun=PurePath("/usr/bin/mpirun"),
                cxx=PurePath("/usr/bin/mpicxx"),
                cxx_calls=("/usr/bin/g++",),
                cxx_version="12.2.0",
            ),
        ),
        tools=(
            Tool(name="fio", version="fio-3.33", path=PurePath("/usr/bin/fio")),
            Tool(name="nbdkit", version="1.32.5", path=PurePath("/usr/bin/nbdkit")),
            *(
                Tool(name=name, version="", path=PurePath("/opt", name), mpi="openmpi")
                for name in ("xhpl", "xhpcg")
            ),
            *(
                Tool(name=name, version="", path=PurePath("/usr/bin", name))
                for name in ("ib_write_bw", "ib_read_bw", "ib_write_lat")
            ),
            *(
                Tool(name=name, version=version, path=PurePath("/usr/bin/python3"))
                for name, version in (("torch", "2.11.0"), ("numpy", "2.4.6"), ("cupy", "14.2.0"))
            ),
        ),
        tried=(Tried(name="io_uring", works=True), Tried(name="direct I/O", works=True)),
        storage=FileSystemFacts(file_system="ext4", free_bytes=100 << 30),
    )


def stated(what: Headline | Chart | Program | Any, without: Sequence[str] = ()) -> str:
    """The fields that are not empty."""
    found = ((f.name, getattr(what, f.name)) for f in fields(what))
    told = ((n, v) for n, v in found if n not in without and v)
    return ", ".join(f"{n} {f'{v:.6g}' if isinstance(v, float) else repr(v)}" for n, v in told)


def of_program(program: Program) -> Iterator[str]:
    yield f"    argv: {' '.join(program.argv)}"
    yield f"    program: {stated(program, ('argv', 'build'))}"
    if program.build is not None:
        yield f"    build: {stated(program.build, ('also',))}"


def request_of(probe: Probe, effort: Effort) -> MeasurementRequest:
    commands = (("sleep", "0.1"), ("sh", "-c", "echo 'a b'")) if probe.info.asked else ()
    return MeasurementRequest(effort=effort, probes=(probe.name,), commands=commands)


def of_effort(probe: Probe, facts: Facts, effort: Effort) -> Iterator[str]:
    cases = probe.cases(facts, request_of(probe, effort))
    if isinstance(cases, Unmeasured):
        yield f"\n{effort}: {stated(cases)}"
        return
    seconds = sum(map(probe.seconds, cases))
    yield f"\n{effort}: {len(cases)} cases, {seconds:.2f} s"
    for case in cases if effort == "quick" else dict.fromkeys((cases[0], cases[-1])):
        yield f"  {case.label}; {', '.join(map('='.join, case.details))}"
        yield f"    {probe.seconds(case):.4g} s{_bound(probe.ceiling(case))}"
        program = probe.program(case)
        assert program.on_storage == probe.info.on_storage
        yield from of_program(program)


def _bound(ceiling: Case | None) -> str:
    return f", at most that of {ceiling.label}" if ceiling else ""


def of_environments(probe: Probe, facts: Facts) -> Iterator[str]:
    cases = probe.compared(facts, request_of(probe, "quick"))
    for each in () if isinstance(cases, Unmeasured) else cases:
        how = f"by {each.way}, stack {each.shown.detail('stack')!r}"
        yield f"  {each.shown.label} {how}: {each.case.label}"


def planned(probe: Probe, facts: Facts) -> str:
    info = probe.info
    lines = [
        f"{info.name}: {stated(info, ('charts', 'env_charts', 'headlines', 'nominal', 'name'))}",
        *(f"headline: {stated(each)}" for each in info.headlines),
        *(f"chart: {stated(each)}" for each in info.charts),
        *(f"chart of environments: {stated(each)}" for each in info.env_charts),
        *(line for effort in EFFORTS for line in of_effort(probe, facts, effort)),
        "\nin environments:",
        *(of_environments(probe, facts) if info.deciding else ()),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.name)
@pytest.mark.parametrize("size", ["large", "small"])
def test_a_probe_plans_as_it_did(probe: Probe, size: str, node: Callable[..., Facts]) -> None:
    """Two sockets of two cores, two GPUs, InfiniBand; or a core, with memory of four caches."""
    large = replace(
        node(sockets=2, cores=2, nominal_hz=2.4e9),
        cuda=(H200, replace(H200, number=1)),
        rdma=(EDR,),
    )
    small = node(cores=1, memory_bytes=64 << 20, l3_bytes=16 << 20)
    text = planned(probe, with_all(large if size == "large" else small))
    file = GOLDEN / size / f"{probe.name}.txt"
    if os.environ.get("FLOWOS_WRITE_GOLDEN") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.exists(), f"{file} is missing: see this test's first lines"
    assert text == file.read_text()
