"""What a probe says that has measured nothing, or has nothing of its own to say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import Case, Exited, Facts, Killed, Measurement, Outcome, Reading, Sample, Tool
from flowos.plan import NOISE_THRESHOLDS
from flowos.probes import Probe
from flowos.probes._suspicious import crowded
from flowos.probes._tables import PROBES
from flowos.probes.clock import Clock
from flowos.probes.fio import Fio
from flowos.probes.startup import Startup


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.name)
def test_without_numbers_there_is_nothing_to_say(probe: Probe) -> None:
    assert probe.findings(()) == ()
    assert probe.findings_between((), (), NOISE_THRESHOLDS) == ()
    assert probe.left_out(()) == ()
    assert probe.checked(()) == ()
    assert probe.differences("bare", ()) == ()
    assert probe.advice((), None) is None


def test_what_decides_is_the_probes_metrics(node: Callable[..., Facts]) -> None:
    deciding = {
        (probe.name, metric): probe.decides(
            Sample(run="r", case=Case(probe.name), round=1, metric=metric, unit="s", values=(1.0,))
        )
        for probe in PROBES
        for metric in ("triad", "copy")
        if probe.name in ("stream", "clock")
    }
    assert deciding[("stream", "triad")]
    assert not deciding[("clock", "triad")]
    assert Clock().trial(node(), {}) is None


def test_threads_that_shared_cpus_are_said_by_the_first_reading() -> None:
    plain = Reading(metric="m", unit="s", values=(1.0,))
    assert crowded([replace(plain, notes=(("cpus", "1"),)), plain], 2) == (
        "2 threads were seen on 1 cpus"
    )
    assert crowded([replace(plain, notes=(("cpus", "2"),)), plain], 2) == ""
    assert crowded([plain], 2) == ""


def start(env: str, median: float) -> Measurement:
    return Measurement(
        case=Case("startup", (("env", env),)),
        metric="start",
        unit="second",
        count=1,
        median=median,
        low=median,
        high=median,
        best=median,
    )


def test_what_environments_add_to_a_start_is_said_in_milliseconds() -> None:
    (said,) = Startup().differences("bare", (start("bare", 0.01), start("mine", 0.0125)))
    assert "takes 10.0 ms in bare" in said
    assert said.endswith("mine +2.5 ms")
    assert Startup().differences("bare", (start("bare", 0.01),)) == ()


def test_libaio_is_tried_by_fio_itself_where_io_uring_is_out(node: Callable[..., Facts]) -> None:
    fio = Tool(name="fio", version="3", path=PurePath("/usr/bin/fio"))
    facts = replace(node(), tools=(fio,))
    trial = Fio().trial(facts, {"io_uring": False})
    assert trial is not None
    assert trial.program.argv[0] == "/usr/bin/fio"
    assert trial.program.limit_seconds == 30
    assert Fio().trial(facts, {}) is not None, "io_uring is not known to work"
    assert Fio().trial(facts, {"io_uring": True}) is None
    said = b"fio: io_setup(1) failed, error=Function not implemented"
    assert trial.complaint(Outcome(end=Exited(1), stdout=said)).endswith("not implemented")
    assert trial.complaint(Outcome(end=Killed(9))).startswith("fio: ")
    assert trial.complaint(Outcome(end=Exited(0))) == ""
