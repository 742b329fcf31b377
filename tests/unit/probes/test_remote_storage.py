"""The same storage by fio directly, and by a server and fio's client of it."""

import shlex
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import Case, Exited, Measurement, MeasurementRequest, Outcome, Tool, Unmeasured
from flowos.probes.remote_storage import RemoteStorage
from tests.unit.probes.test_fio import NODE
from tests.unit.probes.test_fio_answer import recorded

PROBE = RemoteStorage()
WITH_SERVER = replace(
    NODE,
    tools=(*NODE.tools, Tool(name="nbdkit", version="1.32.5", path=PurePath("/usr/bin/nbdkit"))),
)
ASKED = MeasurementRequest(probes=("remote_storage",))


def cases(request: MeasurementRequest = ASKED) -> tuple[Case, ...]:
    found = PROBE.cases(WITH_SERVER, request)
    assert not isinstance(found, Unmeasured), found
    return found


def client(case: Case) -> list[str]:
    """The words of fio in the command that nbdkit runs."""
    *_, script, _ = PROBE.program(case).argv
    *_, command = shlex.split(script)
    return shlex.split(command)


def test_it_is_measured_only_where_it_is_named() -> None:
    assert cases(MeasurementRequest()) == ()
    assert PROBE.cases(NODE, MeasurementRequest()) == ()


@pytest.mark.parametrize(
    ("tools", "remedy"), [((), "apt install fio"), (NODE.tools, "apt install nbdkit")]
)
def test_what_is_not_there_is_named_with_its_package(tools: tuple[Tool, ...], remedy: str) -> None:
    found = PROBE.cases(replace(NODE, tools=tools), ASKED)
    assert isinstance(found, Unmeasured)
    assert found.remedy == remedy


def test_each_workload_is_measured_on_both_sides_the_local_one_first() -> None:
    found = cases()
    assert [case.level("attachment") for case in found] == ["local", "remote"] * 5
    for local, remote in zip(found[::2], found[1::2], strict=True):
        assert local.at(attachment="remote") == remote
    assert len(cases(replace(ASKED, effort="quick"))) == 6


def test_both_sides_run_the_same_job_on_the_same_file() -> None:
    for local, remote in zip(cases()[::2], cases()[1::2], strict=True):
        ours, theirs = PROBE.program(local), PROBE.program(remote)
        differ = set(ours.argv).symmetric_difference(client(remote)[1:])
        assert differ == {
            "--filename={scratch}/flowos-data",
            "--ioengine=io_uring",
            "--direct=1",
            "--ioengine=nbd",
            "--direct=0",
            "--uri=$uri",
        }
        assert theirs.argv[-1] == "{scratch}/flowos-data"
        assert ours.on_storage
        assert theirs.on_storage
        assert ours.limit_seconds == theirs.limit_seconds > PROBE.seconds(local)


def test_the_server_keeps_nothing_in_the_page_cache() -> None:
    for case in cases()[1::2]:
        script = PROBE.program(case).argv[2]
        assert f" cache=none fadvise={case.level('workload').split()[0]} " in script


def test_numbers_are_those_of_fio() -> None:
    answer = recorded("sequential-read", 0)
    found = [case for case in cases() if case.level("workload") == "sequential read"]
    readings = [PROBE.read(case, answer) for case in found]
    assert readings[0] == readings[1]
    assert not isinstance(readings[0], Unmeasured)
    assert [reading.metric for reading in readings[0]] == [
        "bandwidth",
        "latency_p50",
        "latency_p99",
    ]


def test_a_fio_without_a_client_is_one_clear_line() -> None:
    said = b"fio: engine nbd not loadable\n"
    found = PROBE.read(cases()[1], Outcome(end=Exited(1), stdout=b"", stderr=said))
    assert isinstance(found, Unmeasured)
    assert found.reason == "this fio cannot do nbd: engine nbd not loadable"


def test_where_the_page_cache_answers_both_sides_are_marked() -> None:
    refused = replace(
        WITH_SERVER, tried=tuple(replace(t, works=t.name == "io_uring") for t in NODE.tried)
    )
    found = PROBE.cases(refused, ASKED)
    assert not isinstance(found, Unmeasured)
    for case in found[:2]:
        readings = PROBE.read(case, recorded("sequential-read", 0))
        assert not isinstance(readings, Unmeasured)
        assert all("page cache" in dict(reading.notes)["suspect"] for reading in readings)


def measured(case: Case, metric: str = "iops", median: float = 1e4) -> Measurement:
    return Measurement(
        case=case,
        metric=metric,
        unit="1/s",
        count=1,
        median=median,
        low=median,
        high=median,
        best=median,
    )


def test_it_says_how_both_are_attached() -> None:
    local, remote, *_ = map(measured, cases())
    (said,) = PROBE.findings((local, remote))
    assert "engine io_uring, direct I/O; remote: its engine nbd through a Unix socket" in said
    assert "nbdkit 1.32.5" in said
    assert PROBE.findings((local,)) == ()


def test_writes_much_faster_than_reads_are_marked_on_their_own_side() -> None:
    numbers = [measured(case) for case in cases()]
    fast = next(n for n in numbers if "random write" in n.case.label and "remote" in n.case.label)
    numbers[numbers.index(fast)] = replace(fast, median=9e4)
    marked = [m.case for m in PROBE.checked(tuple(numbers)) if not m.trust.good]
    assert marked == [fast.case]
