"""The doctor's checks: what probes say, what there is, what is missing and how to mend it."""

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import ClassVar

import pytest

from flowos.model import (
    Case,
    Compiler,
    Facts,
    LogicalCpu,
    MeasurementRequest,
    Memory,
    Missing,
    RdmaPort,
    Tool,
    Tried,
    Unmeasured,
)
from flowos.probes import ProbeInfo
from flowos.probes.clock import Clock
from flowos.probes.doctor import Check, can_measure, diagnose
from flowos.probes.facts import read_facts

BARE = read_facts({"files": {"/etc/os-release": "ID=debian"}, "uid": 1000})


@dataclass(frozen=True)
class Says(Clock):
    """A probe with this answer."""

    info: ClassVar = ProbeInfo(name="stream", title="Memory")
    answer: tuple[Case, ...] | Unmeasured

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:  # noqa: ARG002
        assert isinstance(request, MeasurementRequest)
        return self.answer


def named(checks: tuple[Check, ...], name: str, group: str = "use") -> Check:
    (found,) = [check for check in checks if (check.name, check.group) == (name, group)]
    return found


def facts(**more: object) -> Facts:
    cpus = tuple(LogicalCpu(number=n, core=n // 2, socket=0, node=0) for n in range(4))
    gcc = Compiler(
        name="gcc-12",
        family="gcc",
        language="c",
        version="12.2.0",
        path=PurePath("/usr/bin/gcc-12"),
        openmp=True,
    )
    plain = replace(BARE, cpus=cpus, allowed=(0, 1, 2), compilers=(gcc,), missing=())
    return replace(plain, **more)  # type: ignore[arg-type]


def test_a_probe_with_cases_can_measure() -> None:
    check = named(diagnose(facts(), [Says((Case("stream"),))]), "stream", "measure")
    assert (check.works, check.says, check.remedy) == (True, "Memory: 1 case", "")
    two = diagnose(
        facts(), [Says((Case("stream"), Case("stream").at(n="2")))], MeasurementRequest()
    )
    assert named(two, "stream", "measure").says == "Memory: 2 cases"


@dataclass(frozen=True)
class ByName(Says):
    """A probe that gives its answer only where it is named."""

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        return super().cases(facts, request) if self.name in request.probes else ()


def test_a_probe_that_must_be_named_says_what_it_would_measure_then() -> None:
    check = named(diagnose(facts(), [ByName((Case("stream"),))]), "stream", "measure")
    assert (check.works, check.says) == (True, "Memory: 1 case, by name (--only stream)")
    cannot = ByName(Unmeasured(reason="no disk", remedy="add one"))
    check = named(diagnose(facts(), [cannot]), "stream", "measure")
    assert (check.works, check.says, check.remedy) == (False, "no disk", "add one")


def test_a_probe_that_cannot_says_why_and_what_mends_it() -> None:
    probe = Says(Unmeasured(reason="a quiet planet is needed", remedy="move"))
    check = named(diagnose(facts(), [probe]), "stream", "measure")
    assert (check.works, check.says, check.remedy) == (False, "a quiet planet is needed", "move")


def test_a_probes_remedy_is_worded_for_this_system_where_the_facts_know_it() -> None:
    probe = Says(Unmeasured(reason="fio was not found", remedy="apt install fio"))
    check = named(diagnose(BARE, [probe]), "stream", "measure")
    assert check.remedy == "sudo apt install fio"


def test_a_machine_with_nothing_cannot_measure_and_learns_why() -> None:
    checks = diagnose(BARE, ())
    assert not can_measure(checks)
    compiler = named(checks, "C compiler")
    assert (compiler.works, compiler.needed) == (False, True)
    assert compiler.remedy == "sudo apt install gcc libc6-dev"
    assert all(check.remedy for check in checks if not check.works)


def test_only_a_c_compiler_is_needed_whether_it_is_there_or_not() -> None:
    for found in (BARE, facts()):
        assert [check.name for check in diagnose(found, ()) if check.needed] == ["C compiler"]


def test_a_machine_with_a_compiler_can_measure_whatever_else_is_missing() -> None:
    missing = tuple(each for each in BARE.missing if each.what != "C compiler")
    checks = diagnose(facts(missing=missing), ())
    assert can_measure(checks)
    assert not named(checks, "MPI").works


def test_what_there_is_is_listed_with_versions() -> None:
    fio = Tool(name="fio", version="3.33", path=PurePath("/usr/bin/fio"))
    tried = (Tried(name="io_uring", works=True), Tried(name="disk", works=True, says="8 GB free"))
    memory = Memory(channels=2, bytes_per_second=51.2e9, source="SMBIOS")
    checks = diagnose(facts(tools=(fio,), tried=tried, memory=memory), ())
    assert named(checks, "C compiler").says == "gcc-12 12.2.0"
    assert named(checks, "OpenMP").says == "with gcc-12"
    assert named(checks, "fio").says == "fio 3.33"
    assert named(checks, "io_uring").says == "works"
    assert named(checks, "disk").says == "works (8 GB free)"
    assert named(checks, "nominal memory speed").says == "51.2 GB/s by SMBIOS"
    assert named(checks, "CPUs").says == "3 of 4 CPUs, 2 cores, 1 socket"


def test_nothing_is_listed_both_as_there_and_as_missing() -> None:
    broken = Missing(what="/usr/bin/clang", loses="left out", remedy="reinstall")
    checks = diagnose(replace(BARE, missing=(*BARE.missing, broken)), ())
    names = [check.name for check in checks]
    assert len(names) == len(set(names))
    assert named(checks, "/usr/bin/clang").remedy == "reinstall"


@pytest.mark.parametrize("quota", [0.5, 1.5])
def test_a_quota_is_told_and_does_not_stop_measuring(quota: float) -> None:
    checks = diagnose(facts(quota_cpus=quota), ())
    check = named(checks, "CPUs")
    assert not check.works
    assert f"time for {quota:g}" in check.says
    assert "cpu.max" in check.remedy
    assert can_measure(checks)


def test_ports_of_rdma_devices_are_listed_with_their_state() -> None:
    port = RdmaPort(device="mlx5_0", number=1, link_layer="InfiniBand", state="DOWN")
    checks = diagnose(facts(rdma=(port,)), ())
    assert named(checks, "RDMA").says == "mlx5_0 port 1 (InfiniBand): DOWN"
    assert not [check for check in diagnose(facts(), ()) if check.name == "RDMA"]
