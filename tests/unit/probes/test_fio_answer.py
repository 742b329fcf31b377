"""Real answers of fio as readings, and its refusals as one line each."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path, PurePath

import pytest

from flowos.model import (
    Case,
    Exited,
    Facts,
    FileSystemFacts,
    Killed,
    MeasureError,
    MeasurementRequest,
    Outcome,
    Reading,
    Tool,
    Tried,
    Unmeasured,
)
from flowos.probes.fio import Fio

DATA = Path(__file__).parents[2] / "data" / "fio"
PROBE = Fio()
NODE = Facts(
    host="n",
    system="Linux",
    kernel="6",
    architecture="x86_64",
    cpu_model="?",
    cpus=(),
    allowed=(),
    tools=(Tool(name="fio", version="fio-3.33", path=PurePath("/usr/bin/fio")),),
    tried=(Tried(name="io_uring", works=True),),
    storage=FileSystemFacts(file_system="ext4"),
)
SEQUENTIAL_READ, RANDOM_READ, MIXED = 0, 2, 4


def case_of(number: int, facts: Facts = NODE) -> Case:
    found = PROBE.cases(facts, MeasurementRequest(effort="quick"))
    assert not isinstance(found, Unmeasured)
    return found[number]


def recorded(name: str, code: int) -> Outcome:
    return Outcome(
        end=Exited(code),
        stdout=(DATA / f"{name}.stdout").read_bytes(),
        stderr=(DATA / f"{name}.stderr").read_bytes(),
    )


def changed(name: str, *replaced: tuple[bytes, bytes], code: int = 0) -> Outcome:
    """A recorded answer with each of these texts in place of another."""
    outcome = recorded(name, code)
    for before, after in replaced:
        assert before in outcome.stdout
        outcome = replace(outcome, stdout=outcome.stdout.replace(before, after))
    return outcome


def readings(case: Case, outcome: Outcome) -> tuple[Reading, ...]:
    found = PROBE.read(case, outcome)
    assert not isinstance(found, Unmeasured), found
    return found


def refusal(case: Case, outcome: Outcome) -> Unmeasured:
    found = PROBE.read(case, outcome)
    assert isinstance(found, Unmeasured), found
    return found


def suspicion(reading: Reading) -> str:
    return dict(reading.notes).get("suspicious", "")


# --- answers ---------------------------------------------------------------------------------


def test_a_sequential_answer_is_a_bandwidth_for_each_window_and_two_latencies() -> None:
    rate, typical, slow = readings(case_of(SEQUENTIAL_READ), recorded("sequential-read", 0))
    assert (rate.metric, rate.unit) == ("bandwidth", "byte/s")
    assert rate.values == tuple(
        131072 * 1000 * requests / ms
        for requests, ms in ((567, 50), (536, 49), (554, 51), (544, 50), (544, 49))
    )
    assert (typical.metric, slow.metric) == ("latency_p50", "latency_p99")
    assert (typical.unit, slow.unit) == ("second", "second")
    assert (*typical.values, *slow.values) == pytest.approx((0.001449984, 0.001613824))
    assert not any(r.levels or r.notes for r in (rate, typical, slow))


def test_a_mixed_answer_has_each_direction_at_a_level_of_its_own() -> None:
    case = case_of(MIXED)
    found = readings(case, recorded("mixed", 0))
    assert [(r.metric, dict(r.levels)["workload"]) for r in found] == [
        (metric, f"mixed {way}")
        for way in ("read", "write")
        for metric in ("iops", "latency_p50", "latency_p99")
    ]
    reads, writes = (r for r in found if r.metric == "iops")
    assert sum(reads.values) / sum(writes.values) == pytest.approx(70 / 30, rel=0.1)
    assert set(case.levels) < set(case.at(workload="mixed read").levels)


@pytest.mark.parametrize("phase", range(1, 51, 7))
def test_what_is_done_while_running_in_counts_for_no_window(phase: int) -> None:
    """Ten times as fast for the first 60 ms; fio's documents come at any phase of its clock."""
    marks = [
        (time, time, 1000 * time) if time < 60 else (time, time - 60, 100 * (time - 60))
        for time in range(phase, 315, 50)
    ]
    rate, *_ = readings(case_of(RANDOM_READ), printed(*marks))
    assert set(rate.values) == {100_000}
    assert len(rate.values) in (4, 5)


def test_without_whole_windows_the_mean_alone_stands() -> None:
    """Storage that stalls: nothing ended between the first and the last of fio's documents."""
    outcome = recorded("sequential-read", 0)
    last = outcome.stdout[outcome.stdout.rindex(b"\n{") :]
    rate, *_ = readings(case_of(SEQUENTIAL_READ), replace(outcome, stdout=last))
    assert rate.values == (131072 * 10892.857143,)


def test_what_ended_in_no_whole_window_is_no_rate_of_zero() -> None:
    """Storage that stalls until the remainder at the end."""
    outcome = printed(*even(0, 0, 0), (110, 110, 7))
    rate, *_ = readings(case_of(RANDOM_READ), outcome)
    assert rate.values == (1,)


# --- suspicion -------------------------------------------------------------------------------


def test_a_file_in_memory_is_said_whatever_direct_io_means_there() -> None:
    facts = replace(NODE, storage=FileSystemFacts(file_system="tmpfs"), memory_bytes=64 << 30)
    for reading in readings(case_of(SEQUENTIAL_READ, facts), recorded("sequential-read", 0)):
        assert suspicion(reading) == "the files lie in memory (tmpfs)"


@pytest.mark.parametrize(
    ("file_system", "by"), [("fuse.sshfs", "fuse.sshfs"), ("", "the file system")]
)
def test_refused_direct_io_leaves_the_page_cache_to_answer(file_system: str, by: str) -> None:
    tried = (Tried(name="direct I/O", works=False),)
    facts = replace(NODE, storage=FileSystemFacts(file_system=file_system), tried=tried)
    for reading in readings(case_of(SEQUENTIAL_READ, facts), recorded("sequential-read", 0)):
        assert suspicion(reading) == f"direct I/O is refused by {by}: the page cache answers"


@pytest.mark.parametrize(
    ("counts", "ratio"),
    [((100, 200, 400, 600), "2.00"), ((400, 800, 900, 1000), "0.25"), ((0, 0, 5, 9), "1000.00")],
)
def test_halves_that_differ_mean_a_cache_that_filled_or_warmed_up(
    counts: tuple[int, ...], ratio: str
) -> None:
    rate, typical, _ = readings(case_of(RANDOM_READ), printed(*even(0, *counts)))
    assert suspicion(rate).startswith(f"the second half went at {ratio} times the first")
    assert not suspicion(typical)


def test_three_windows_are_too_few_to_have_halves() -> None:
    rate, *_ = readings(case_of(RANDOM_READ), printed(*even(0, 100, 900, 2000)))
    assert rate.values == (2000, 16000, 22000)
    assert not suspicion(rate)


@pytest.mark.parametrize(
    ("windows", "apart"),
    [
        ((100, 100, 140, 140), True),
        ((100, 100, 140, 139), False),
        ((140, 140, 100, 100), True),
        ((140, 139, 100, 100), False),
        ((100, 300, 200, 200), False),
        ((100, 100, 900, 110, 110), False),
    ],
)
def test_halves_differ_from_a_factor_of_1_4_on(windows: tuple[int, ...], apart: bool) -> None:
    rate, *_ = readings(case_of(RANDOM_READ), printed(*even(*accumulate((0, *windows)))))
    assert bool(suspicion(rate)) is apart


@pytest.mark.parametrize(("milliseconds", "windows"), [(25, 2), (24, 1)])
def test_a_window_counts_from_half_its_time_on(milliseconds: int, windows: int) -> None:
    end = 50 + milliseconds
    rate, *_ = readings(case_of(RANDOM_READ), printed(*even(0, 100), (end, end, 150)))
    assert len(rate.values) == windows


def even(*counts: int) -> list[tuple[int, int, int]]:
    """After each 50 ms so many requests."""
    return [(50 * i, 50 * i, count) for i, count in enumerate(counts)]


def printed(*marks: tuple[int, int, int]) -> Outcome:
    """An answer with documents at these times: (by the clock, by fio's own, requests); ms."""
    document = """fio: a remark
{{"timestamp_ms": {}, "jobs": [{{"error": 0, "read": {{"runtime": {}, "total_ios": {}, "iops": 1,
  "lat_ns": {{"percentile": {{"50.000000": 9000, "99.000000": 90000}}}}}}}}]}}
"""
    texts = (document.format(*mark) for mark in marks)
    return Outcome(end=Exited(0), stdout="".join(texts).encode())


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("io-uring-enosys", "your kernel doesn't support io_uring"),
        ("io-uring-eperm", "Operation not permitted"),
    ],
)
def test_a_blocked_engine_is_no_zero_but_a_reason_with_a_remedy(name: str, said: str) -> None:
    found = refusal(case_of(RANDOM_READ), recorded(name, 1))
    assert found.reason == f"io_uring is blocked here: {said}"
    assert "seccomp" in found.remedy


@pytest.mark.parametrize(("name", "code"), [("io-uring-enosys", 0), ("sequential-read", 1)])
def test_exit_code_and_error_field_must_both_say_that_all_went_well(name: str, code: int) -> None:
    refusal(case_of(SEQUENTIAL_READ), recorded(name, code))


def test_an_engine_that_fio_was_built_without_is_named() -> None:
    found = refusal(case_of(RANDOM_READ), recorded("no-engine", 1))
    assert found.reason == "this fio cannot do io_uring: engine nosuch not loadable"
    assert "fio --enghelp" in found.remedy


def test_refused_direct_io_is_said_with_the_way_out() -> None:
    found = refusal(case_of(RANDOM_READ), recorded("no-direct", 1))
    assert found.reason.startswith("direct I/O is refused: looks like your file system")
    assert "--scratch" in found.remedy


def test_a_disk_that_fills_while_the_file_is_written_is_one_clear_line() -> None:
    found = refusal(case_of(RANDOM_READ), recorded("no-room", 1))
    assert found.reason == "no room for a file of 512 MiB: No space left on device"
    assert "--scratch" in found.remedy


def test_a_quota_that_is_used_up_is_said_so_too() -> None:
    said = b"fio: pid=9, err=122/file:io_u.c:1846, func=io_u error, error=Disk quota exceeded\n"
    full = changed("sequential-read", (b'"error" : 0', b'"error" : 122'))
    found = refusal(case_of(SEQUENTIAL_READ), replace(full, stderr=said))
    assert found.reason == "no room for a file of 512 MiB: Disk quota exceeded"


def test_any_other_error_is_told_in_fios_words() -> None:
    said = b"fio: pid=9, err=5/file:io_u.c:1846, func=io_u error, error=Input/output error\n"
    broken = changed("sequential-read", (b'"error" : 0', b'"error" : 5'))
    found = refusal(case_of(SEQUENTIAL_READ), replace(broken, stderr=said))
    assert found == Unmeasured(reason="fio failed: Input/output error")


def test_a_silent_failure_is_a_failure_too() -> None:
    found = refusal(case_of(RANDOM_READ), Outcome(end=Exited(3)))
    assert found == Unmeasured(reason="fio failed: it said nothing")


def test_a_fio_that_was_ended_measured_nothing() -> None:
    outcome = replace(recorded("sequential-read", 0), end=Killed(9, by="limit"))
    found = refusal(case_of(SEQUENTIAL_READ), outcome)
    assert found == Unmeasured(reason="fio ended by signal 9, at its time limit")


def test_a_direction_in_which_nothing_was_done_is_no_zero() -> None:
    found = refusal(case_of(RANDOM_READ), printed(*even(0, 0)))
    assert found.reason == "not one read ended in the time given"
    assert "--full" in found.remedy


@pytest.mark.parametrize(
    "stdout", [b"", b"words only", b'{"jobs": []}', b'{"jobs": 3}', b'{"jobs": [{}]', b"{}"]
)
def test_an_answer_that_is_none_of_fios_is_an_error(stdout: bytes) -> None:
    with pytest.raises(MeasureError, match="fio's answer cannot be read"):
        PROBE.read(case_of(RANDOM_READ), Outcome(end=Exited(0), stdout=stdout))
