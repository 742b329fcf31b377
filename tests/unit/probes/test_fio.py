"""Which fio commands measure a node's storage."""

from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Case,
    Effort,
    Facts,
    FileSystemFacts,
    MeasurementRequest,
    Tool,
    Tried,
    Unmeasured,
)
from flowos.probes.fio import Fio

PROBE = Fio()
NODE = Facts(
    host="n",
    system="Linux",
    kernel="6",
    architecture="x86_64",
    cpu_model="?",
    cpus=(),
    allowed=(),
    memory_bytes=64 << 30,
    tools=(Tool(name="fio", version="fio-3.33", path=PurePath("/usr/bin/fio")),),
    tried=(Tried(name="io_uring", works=True), Tried(name="direct I/O", works=True)),
    storage=FileSystemFacts(file_system="ext4", free_bytes=100 << 30),
)


def cases(facts: Facts = NODE, effort: Effort = "normal") -> tuple[Case, ...]:
    found = PROBE.cases(facts, MeasurementRequest(effort=effort))
    assert not isinstance(found, Unmeasured), found
    return found


def options(case: Case) -> dict[str, str]:
    _, *words = PROBE.program(case).argv
    pairs = (word.removeprefix("--").partition("=") for word in words)
    return {name: value for name, _, value in pairs}


def test_without_fio_it_says_what_to_install() -> None:
    found = PROBE.cases(replace(NODE, tools=()), MeasurementRequest())
    assert found == Unmeasured(reason="fio was not found", remedy="apt install fio")


def test_environments_are_compared_with_less_effort() -> None:
    less: dict[Effort, str] = {"quick": "quick", "normal": "quick", "full": "normal"}
    for effort, own in less.items():
        found = PROBE.compared(NODE, MeasurementRequest(effort=effort))
        assert not isinstance(found, Unmeasured)
        assert {each.case.detail("effort") for each in found} == {own}


def test_it_is_the_storage_that_a_case_measures() -> None:
    assert all(PROBE.program(case).on_storage for case in cases())
    assert not replace(PROBE.program(cases()[0]), argv=("fio", "--version")).on_storage


def test_each_workload_at_each_depth_is_a_case_of_its_own() -> None:
    found = {(options(c)["rw"], options(c)["bs"], options(c)["iodepth"]) for c in cases()}
    small = [("randread", "4096"), ("randwrite", "4096"), ("randrw", "4096")]
    assert found == {
        ("read", "131072", "16"),
        ("write", "131072", "16"),
        *((rw, bs, depth) for rw, bs in small for depth in ("1", "16")),
    }
    assert len(set(cases())) == len(found)


def test_a_case_is_one_plain_command_of_the_fio_that_was_found() -> None:
    program = PROBE.program(cases()[0])
    assert program.argv[0] == "/usr/bin/fio"
    assert program.build is None
    found = options(cases()[0])
    assert found["filename"] == "{scratch}/flowos-data"
    assert found["size"] == str(2 << 30)
    assert (found["runtime"], found["ramp_time"], found["status-interval"]) == (
        "600ms",
        "200ms",
        "100ms",
    )
    assert PROBE.ceiling(cases()[0]) is None


def test_all_cases_share_one_file_that_is_written_whole_before() -> None:
    for case in cases():
        found = options(case)
        assert (found["filename"], found["size"]) == ("{scratch}/flowos-data", str(2 << 30))
        assert (found["overwrite"], found["fallocate"]) == ("1", "none")


def test_the_first_case_pays_for_writing_the_file() -> None:
    first, *others = (PROBE.seconds(case) for case in cases())
    assert len(set(others)) == 1
    assert first == pytest.approx(others[0] + 2.1, abs=0.1)


@pytest.mark.parametrize(("effort", "seconds"), [("quick", 11), ("normal", 25), ("full", 110)])
def test_a_round_there_and_back_has_its_time(effort: Effort, seconds: float) -> None:
    assert sum(2 * PROBE.seconds(case) for case in cases(effort=effort)) < seconds


def test_a_slow_disk_is_given_the_time_to_write_the_file() -> None:
    for case in cases(effort="full"):
        assert PROBE.program(case).limit_seconds > 60 + (8 << 30) / 50e6


@pytest.mark.parametrize(
    ("tried", "engine", "direct"),
    [
        ((True, True), "io_uring", "1"),
        ((False, True), "libaio", "1"),
        ((True, False), "io_uring", "0"),
        ((False, True, False), "posixaio", "1"),
    ],
)
def test_the_engine_and_direct_io_are_chosen_by_what_was_tried(
    tried: tuple[bool, ...], engine: str, direct: str
) -> None:
    names = ("io_uring", "direct I/O", "libaio")
    facts = replace(
        NODE, tried=tuple(Tried(name=n, works=w) for n, w in zip(names, tried, strict=False))
    )
    for case in cases(facts):
        assert (options(case)["ioengine"], options(case)["direct"]) == (engine, direct)
        assert (case.level("engine"), case.level("direct")) == (
            engine,
            "yes" if direct == "1" else "no",
        )


def test_where_nothing_was_tried_the_older_engine_and_direct_io_are_taken() -> None:
    found = options(cases(replace(NODE, tried=()))[0])
    assert (found["ioengine"], found["direct"]) == ("libaio", "1")


@pytest.mark.parametrize(
    ("storage", "size"),
    [
        (FileSystemFacts(), 2 << 30),
        (FileSystemFacts(free_bytes=3 << 30), 3 << 29),
        (FileSystemFacts(file_system="tmpfs", free_bytes=60 << 30), 1 << 30),
        (FileSystemFacts(file_system="ramfs"), 1 << 30),
        (FileSystemFacts(free_bytes=(512 << 20) + 5), 256 << 20),
    ],
)
def test_the_file_leaves_room_to_others(storage: FileSystemFacts, size: int) -> None:
    facts = replace(NODE, storage=storage, memory_bytes=4 << 30)
    assert options(cases(facts)[0])["size"] == str(size)


def test_the_limit_of_a_cgroup_counts_for_a_file_in_memory() -> None:
    facts = replace(NODE, storage=FileSystemFacts(file_system="tmpfs"), memory_limit_bytes=2 << 30)
    assert options(cases(facts)[0])["size"] == str(512 << 20)


def test_too_little_room_is_said_before_anything_is_written() -> None:
    facts = replace(NODE, storage=FileSystemFacts(free_bytes=64 << 20))
    found = PROBE.cases(facts, MeasurementRequest(scratch=PurePath("/small")))
    assert found == Unmeasured(
        reason="/small has room for a file of 32 MiB; 256 MiB are needed",
        remedy="free some space, or choose another folder with --scratch",
    )


def test_a_folder_whose_name_fio_would_split_is_refused() -> None:
    found = PROBE.cases(NODE, MeasurementRequest(scratch=PurePath("/mnt/a:b")))
    assert isinstance(found, Unmeasured)
    assert found.reason == "fio takes the colon in /mnt/a:b for the end of a name"


def test_the_charts_draw_levels_that_there_are() -> None:
    axes = {axis for case in cases() for axis, _ in case.levels}
    for chart in PROBE.info.charts:
        assert {chart.x, *chart.series} <= axes
