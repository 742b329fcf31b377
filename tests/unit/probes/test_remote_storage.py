"""The same storage by fio directly, and by a server and fio's client of it."""

import json
import shlex
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import Case, Exited, Measurement, MeasurementRequest, Outcome, Tool, Unmeasured
from flowos.probes.remote_storage import NO_LINK, RemoteStorage
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
    words = shlex.split(script)
    if "10 Gbit/s" in case.level("attachment"):
        words = shlex.split(words[-2])
    return shlex.split(words[-1])


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
    attachments = ["local", "remote", "remote, 10 Gbit/s"]
    assert [case.level("attachment") for case in found] == attachments * 5
    for number, case in enumerate(found):
        assert case == found[number // 3 * 3].at(attachment=attachments[number % 3])


def test_quick_has_no_link_and_random_access_alone() -> None:
    found = cases(replace(ASKED, effort="quick"))
    assert [case.level("attachment") for case in found] == ["local", "remote"] * 3
    assert {case.level("workload") for case in found} == {"random read", "random write"}


def test_both_sides_run_the_same_job_on_the_same_file() -> None:
    found = [case for case in cases() if case.level("attachment") != "local"]
    for remote in found:
        local = remote.at(attachment="local")
        local = next(case for case in cases() if case == local)
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
    for case in (*cases()[1::3], *cases()[2::3]):
        script = PROBE.program(case).argv[2]
        assert f" cache=none fadvise={case.level('workload').split()[0]} " in script


def test_a_link_that_cannot_be_made_is_one_clear_line() -> None:
    linked = cases()[2]
    stdout = f"{json.dumps(NO_LINK)}\n".encode()
    found = PROBE.read(linked, Outcome(end=Exited(77), stdout=stdout, stderr=b"unshare: no\n"))
    assert found == Unmeasured(reason=NO_LINK["cannot"], remedy=NO_LINK["remedy"])


def test_numbers_are_those_of_fio() -> None:
    answer = recorded("sequential-read", 0)
    found = [case for case in cases() if case.level("workload") == "sequential read"]
    readings = [PROBE.read(case, answer) for case in found]
    assert readings[0] == readings[1] == readings[2]
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
        assert all("page cache" in dict(reading.notes)["suspicious"] for reading in readings)


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
    local, remote, linked, *_ = map(measured, cases())
    (said,) = PROBE.findings((local, remote))
    assert "engine io_uring, direct I/O; remote: its engine nbd through a Unix socket" in said
    assert "nbdkit 1.32.5" in said
    assert "tbf" not in said
    assert "tbf" in PROBE.findings((local, remote, linked))[0]
    assert PROBE.findings((local,)) == ()


def test_writes_much_faster_than_reads_are_marked_on_their_own_side() -> None:
    numbers = [measured(case) for case in cases()]
    fast = next(n for n in numbers if "random write" in n.case.label and "Gbit" in n.case.label)
    numbers[numbers.index(fast)] = replace(fast, median=9e4)
    marked = [m.case for m in PROBE.checked(tuple(numbers)) if not m.trust.good]
    assert marked == [fast.case]
