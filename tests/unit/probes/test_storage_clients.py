"""Which runs of metadata and parallel_io measure a file system, and what is doubted of them."""

import json
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Case,
    Compiler,
    Effort,
    Exited,
    Facts,
    FileSystemFacts,
    LogicalCpu,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Tried,
    Unmeasured,
)
from flowos.probes import SUSPICIOUS, Probe
from flowos.probes._cores import NO_COMPILER
from flowos.probes._storage import NO_MPI
from flowos.probes.metadata import Metadata
from flowos.probes.parallel_io import MIN_BYTES, ParallelIo

METADATA, PARALLEL_IO = Metadata(), ParallelIo()
GCC = Compiler(name="gcc", family="gcc", language="c", version="12", path=PurePath("/usr/bin/gcc"))
NODE = Facts(
    host="n",
    system="Linux",
    kernel="6",
    architecture="x86_64",
    cpu_model="?",
    cpus=tuple(LogicalCpu(number=n, core=n, socket=0, node=0) for n in range(4)),
    allowed=(0, 1, 2, 3),
    memory_bytes=64 << 30,
    compilers=(GCC,),
    tried=(Tried(name="direct I/O", works=True),),
    storage=FileSystemFacts(file_system="ext4", free_bytes=1 << 40),
)


def cases(probe: Probe, facts: Facts = NODE, effort: Effort = "normal") -> tuple[Case, ...]:
    found = probe.cases(facts, MeasurementRequest(effort=effort))
    assert not isinstance(found, Unmeasured), found
    return found


def options(probe: Probe, case: Case) -> dict[str, str]:
    argv = probe.program(case).argv
    return dict(zip(argv[::2], argv[1::2], strict=True))


def stored(free_bytes: int | None, file_system: str = "ext4") -> Facts:
    return replace(NODE, storage=FileSystemFacts(file_system=file_system, free_bytes=free_bytes))


def read(probe: Probe, case: Case, *levels: tuple[str, str]) -> dict[tuple[str, str], str]:
    """The reasons about readings with these levels."""
    said = [
        {"metric": "m", "unit": "1/s", "values": [2.0], "levels": dict([level])} for level in levels
    ]
    answer = json.dumps({"readings": said}).encode()
    found = probe.read(case, Outcome(end=Exited(0), stdout=answer, stderr=b""))
    assert not isinstance(found, Unmeasured)
    return {r.levels[0]: dict(r.notes).get(SUSPICIOUS, "") for r in found}


@pytest.mark.parametrize("probe", [METADATA, PARALLEL_IO], ids=lambda p: p.name)
def test_without_a_compiler_it_says_what_to_install(probe: Probe) -> None:
    assert probe.cases(replace(NODE, compilers=()), MeasurementRequest()) == NO_COMPILER


@pytest.mark.parametrize("probe", [METADATA, PARALLEL_IO], ids=lambda p: p.name)
def test_a_reason_of_the_program_is_the_reason(probe: Probe) -> None:
    said = {"cannot": "client 0 cannot write a file: No space left on device", "remedy": "free"}
    outcome = Outcome(end=Exited(77), stdout=json.dumps(said).encode(), stderr=b"")
    found = probe.read(cases(probe)[0], outcome)
    assert found == Unmeasured(reason=said["cannot"], remedy="free")
    line = f"{probe.name}: client 1: wrong data came".encode()
    found = probe.read(cases(probe)[0], Outcome(end=Exited(1), stdout=b"", stderr=line))
    assert found == Unmeasured(reason="client 1: wrong data came")


@pytest.mark.parametrize("probe", [METADATA, PARALLEL_IO], ids=lambda p: p.name)
def test_a_case_has_the_time_that_a_quick_session_can_spare(probe: Probe) -> None:
    assert sum(map(probe.seconds, cases(probe, effort="quick"))) < 2
    assert sum(map(probe.seconds, cases(probe))) < 15
    for case in cases(probe, effort="full"):
        assert probe.program(case).limit_seconds > 2 * probe.seconds(case)
        assert probe.program(case).on_storage


# --- metadata --------------------------------------------------------------------------------


def test_with_full_effort_there_are_as_many_items_as_in_the_paper() -> None:
    (own, shared, *with_bytes) = cases(METADATA, effort="full")
    assert options(METADATA, own)["--items"] == "25000"
    assert options(METADATA, own)["--processes"] == "2"
    assert [options(METADATA, c)["--directory"] for c in (own, shared)] == ["unique", "shared"]
    assert {c.level("bytes") for c in (own, shared)} == {"0"}
    assert {c.level("bytes") for c in with_bytes} == {"3901"}


def test_environments_are_compared_by_short_runs() -> None:
    for effort, same in (("quick", "quick"), ("normal", "quick"), ("full", "normal")):
        found = METADATA.compared(NODE, MeasurementRequest(effort=effort))  # type: ignore[arg-type]
        assert not isinstance(found, Unmeasured)
        assert [each.case for each in found] == list(cases(METADATA, effort=same))  # type: ignore[arg-type]
    assert METADATA.compared(replace(NODE, compilers=()), MeasurementRequest()) == NO_COMPILER


def test_items_in_memory_are_doubted() -> None:
    level = ("operation", "file create")
    (case,) = cases(METADATA, stored(1 << 40, "tmpfs"), "quick")
    assert read(METADATA, case, level) == {level: "the files lie in memory (tmpfs)"}
    assert read(METADATA, cases(METADATA)[0], level) == {level: ""}


# --- parallel_io -----------------------------------------------------------------------------


def test_clients_are_doubled_up_to_the_cores_and_share_a_file_from_two_on() -> None:
    found = [(c.level("clients"), c.level("files")) for c in cases(PARALLEL_IO)]
    expected = [("1", "own"), ("2", "own"), ("2", "shared"), ("4", "own"), ("4", "shared")]
    assert found == expected
    quick = cases(PARALLEL_IO, effort="quick")
    assert [(c.level("clients"), c.level("files")) for c in quick] == [("1", "own"), ("2", "own")]
    alone = replace(NODE, allowed=(3,))
    assert {c.level("clients") for c in cases(PARALLEL_IO, alone)} == {"1", "2"}


def test_with_full_effort_each_client_moves_8_gib_if_there_is_room() -> None:
    found = cases(PARALLEL_IO, effort="full")
    assert {options(PARALLEL_IO, case)["--bytes"] for case in found} == {str(8 << 30)}


@pytest.mark.parametrize(
    ("facts", "total"),
    [
        (stored(3 << 30), 1 << 30),
        (stored((3 << 30) + (2 << 20)), 1 << 30),
        (stored(60 << 30, "tmpfs"), 16 << 30),
        (replace(stored(None, "tmpfs"), memory_bytes=4 << 30), 1 << 30),
        (stored(None), 32 << 30),
    ],
)
def test_all_clients_together_leave_room_to_others(facts: Facts, total: int) -> None:
    for case in cases(PARALLEL_IO, facts, "full"):
        clients = int(case.level("clients"))
        assert int(options(PARALLEL_IO, case)["--bytes"]) == min(8 << 30, total // clients)


def test_clients_that_would_have_too_little_are_left_out() -> None:
    found = cases(PARALLEL_IO, stored(3 * MIN_BYTES))
    assert [case.level("clients") for case in found] == ["1"]


def test_too_little_room_is_said_before_anything_is_written() -> None:
    request = MeasurementRequest(scratch=PurePath("/small"))
    assert PARALLEL_IO.cases(stored(3 * MIN_BYTES - 1), request) == Unmeasured(
        reason="/small has room for files of 15 MiB; 16 MiB are needed",
        remedy="free some space, or choose another folder with --scratch",
    )


READ, WRITE = ("workload", "sequential read"), ("workload", "sequential write")


def test_without_direct_io_what_is_read_is_doubted_and_what_is_written_is_not() -> None:
    refused = replace(NODE, tried=(Tried(name="direct I/O", works=False),))
    case = cases(PARALLEL_IO, refused)[0]
    assert options(PARALLEL_IO, case)["--direct"] == "no"
    said = "direct I/O is refused by ext4: pages were dropped before, but may have answered"
    assert read(PARALLEL_IO, case, READ, WRITE) == {READ: said, WRITE: ""}
    unknown = replace(case, details=tuple(d for d in case.details if d[0] != "file_system"))
    assert "by the file system" in read(PARALLEL_IO, unknown, READ)[READ]
    assert read(PARALLEL_IO, cases(PARALLEL_IO)[0], READ, WRITE) == {READ: "", WRITE: ""}


def test_what_lies_in_memory_is_doubted() -> None:
    case = cases(PARALLEL_IO, stored(1 << 40, "ramfs"))[0]
    assert set(read(PARALLEL_IO, case, READ, WRITE).values()) == {"the files lie in memory (ramfs)"}


def measured(case: Case, workload: str, rate: float) -> Measurement:
    return Measurement(
        case=case.at(workload=workload),
        metric="bandwidth",
        unit="byte/s",
        count=3,
        median=rate,
        low=rate,
        high=rate,
        best=rate,
    )


def test_writes_much_faster_than_reads_mean_a_write_cache() -> None:
    case = cases(PARALLEL_IO)[0]
    both = (measured(case, "sequential write", 2e9), measured(case, "sequential read", 1e9))
    found = [m.trust.marks for m in PARALLEL_IO.checked(both)]
    assert found == [("writes are 2.0 times as fast as reads: a write cache answers",), ()]


def test_it_is_said_if_there_was_no_room_for_what_was_planned() -> None:
    def said(facts: Facts) -> tuple[str, ...]:
        found = cases(PARALLEL_IO, facts, "full")
        other = measured(Case("fio"), "sequential read", 1e9)
        return PARALLEL_IO.findings([other, *(measured(c, "sequential read", 1e9) for c in found)])

    after = "in place of 8192 MiB: all together take a third of the free space at most"
    assert said(NODE) == ()
    assert said(stored(3 << 33)) == (f"some clients wrote 2048 MiB to 4096 MiB {after}",)
    assert said(stored(45 << 30)) == (f"some clients wrote 3840 MiB to 7680 MiB {after}",)
    assert said(stored(48 << 30)) == (f"some clients wrote 4096 MiB {after}",)


# --- between nodes ---------------------------------------------------------------------------

MPI = Mpi(
    name="MPICH 4",
    family="mpich",
    version="4",
    compiler=PurePath("/usr/bin/mpicc"),
    mpirun=PurePath("/usr/bin/mpirun"),
)


def between(
    probe: Probe, facts: Facts, effort: Effort = "quick", nodes: int = 2
) -> tuple[Case, ...]:
    found = probe.cases(facts, MeasurementRequest(effort=effort, nodes=nodes))
    assert not isinstance(found, Unmeasured), found
    return found


@pytest.mark.parametrize("probe", [METADATA, PARALLEL_IO], ids=lambda p: p.name)
def test_between_nodes_clients_are_ranks_of_the_first_mpi(probe: Probe) -> None:
    assert probe.info.between_nodes
    assert probe.cases(NODE, MeasurementRequest(nodes=2)) == NO_MPI
    for case in between(probe, replace(NODE, mpis=(MPI,))):
        program = probe.program(case)
        assert (program.mpi_family, program.mpirun) == ("mpich", "/usr/bin/mpirun")
        assert program.build is not None
        assert program.build.compiler == "/usr/bin/mpicc"
        assert program.build.flags == ("-O2", "-DFLOWOS_MPI")


@pytest.mark.parametrize(("allowed", "each"), [((0,), 1), ((0, 1, 2), 2)])
def test_two_processes_of_each_node_take_what_the_other_node_made(
    allowed: tuple[int, ...], each: int
) -> None:
    alone, case = between(METADATA, replace(NODE, mpis=(MPI,), allowed=allowed))
    assert METADATA.program(case).ranks == 2 * each
    assert options(METADATA, case)["--processes"] == str(2 * each)
    assert options(METADATA, case)["--stride"] == str(each)
    assert METADATA.program(alone).ranks == each
    assert options(METADATA, alone)["--stride"] == "1"


def test_processes_are_spread_over_1_2_4_and_all_nodes() -> None:
    found = between(METADATA, replace(NODE, mpis=(MPI,)), nodes=6)
    programs = [METADATA.program(case) for case in found]
    assert [(p.nodes, p.ranks) for p in programs] == [(1, 2), (2, 4), (4, 8), (6, 12)]
    assert [case.level("nodes") for case in found] == ["1", "2", "4", "6"]
    assert "--nodes" not in programs[0].argv
    (here,) = cases(METADATA, effort="quick")
    assert (here.level("nodes"), METADATA.program(here).nodes) == ("", None)


def test_environments_are_compared_on_all_nodes_alone() -> None:
    request = MeasurementRequest(effort="quick", nodes=4)
    found = METADATA.compared(replace(NODE, mpis=(MPI,)), request)
    assert not isinstance(found, Unmeasured)
    assert [each.shown.level("nodes") for each in found] == ["4"]


def test_a_client_of_each_of_1_2_4_and_all_nodes_moves_data() -> None:
    found = between(PARALLEL_IO, replace(NODE, mpis=(MPI,)), "normal", nodes=6)
    own, shared = ([c for c in found if c.level("files") == kind] for kind in ("own", "shared"))
    assert [case.level("clients") for case in own] == ["1", "2", "4", "6"]
    assert [case.level("clients") for case in shared] == ["2", "4", "6"]
    assert [PARALLEL_IO.program(case).ranks for case in own] == [1, 2, 4, 6]
    assert {options(PARALLEL_IO, case)["--stride"] for case in found} == {"1"}


def test_a_client_of_each_node_moves_as_much_as_fewer_do() -> None:
    found = between(PARALLEL_IO, replace(NODE, mpis=(MPI,)), nodes=6)
    assert {options(PARALLEL_IO, case)["--bytes"] for case in found} == {str(64 << 20)}
