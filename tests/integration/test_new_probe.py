"""A probe is one file, its program and a line in the table: nothing else knows it by name."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from flowos.model import Case, Chart, Facts, MeasurementRequest, Unmeasured
from flowos.probes import Headline, Probe, ProbeInfo, Program
from flowos.probes._tables import PROBES

Flowos = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = (
    """printf '{"readings": [{"metric": "speed", "unit": "1/s", "values": [%s, %s]}]}' $0 $0"""
)
BARS = Chart(title="Speed", kind="bars", x="gear", metrics=("speed",))


class Tiny(Probe):
    """Says how fast it is in two gears."""

    info: ClassVar = ProbeInfo(
        name="tiny",
        title="A tiny probe",
        charts=(BARS,),
        rounds=4,
        headlines=(Headline("Tiny speed", "speed"),),
        tunes="speed",
        deciding=("speed",),
        env_charts=(replace(BARS, series=("env",)),),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:  # noqa: ARG002
        return tuple(Case("tiny", (("gear", gear),)) for gear in "12")

    def seconds(self, case: Case) -> float:  # noqa: ARG002
        return 0.01

    def program(self, case: Case) -> Program:
        return Program(argv=("/bin/sh", "-c", PROGRAM, case.level("gear")))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, looked_once: Facts) -> None:
    monkeypatch.setattr("flowos.operations.doctor.facts", lambda _: looked_once)
    monkeypatch.setattr("flowos.probes._tables.PROBES", (*PROBES, Tiny()))


def test_it_is_offered_planned_and_measured_and_the_report_tells_of_it(
    flowos: Flowos, tmp_path: Path
) -> None:
    assert "tiny" in flowos("measure", "--help").stdout
    assert "A tiny probe: 2 cases" in flowos("doctor").stdout
    planned = flowos("measure", "--only", "tiny", "--dry-run").stdout
    assert "tiny gear=2" in planned
    report = json.loads(flowos("measure", "--only", "tiny", "--json").stdout)["report"]
    assert {s["values"][0] for s in report["samples"]} == {1.0, 2.0}
    (headline,) = report["headlines"]
    assert (headline["label"], headline["measured"]["median"]) == ("Tiny speed", 2.0)
    assert "best speed: 2.00 /s with gear 2" in report["findings"]
    (verdict,) = report["verdicts"]
    assert (verdict["axis"], verdict["ratio"]) == ("gear", 0.5)
    assert [section["title"] for section in report["sections"]] == ["A tiny probe"]
    page = (tmp_path / "flowos-report/report.html").read_text()
    assert "A tiny probe" in page


def test_environments_are_compared_by_it(flowos: Flowos) -> None:
    twice = ("--env", "bare", "--env", "bare", "--only", "tiny")
    planned = json.loads(flowos("measure", *twice, "--dry-run", "--json").stdout)
    assert [step["case"] for step in planned] == [
        f"tiny env={env} gear={gear}" for gear in "12" for env in ("bare", "bare#2")
    ]
    done = flowos("measure", *twice, "--minutes", "0.1", "--json")
    report = json.loads(done.stdout)["report"]
    assert {v["answer"] for v in report["verdicts"]} <= {"equal", "inconclusive"}  # a busy machine
    assert {(v["probe"], v["other"]) for v in report["verdicts"]} == {
        ("geomean", "bare#2"),
        ("tiny", "bare#2"),
    }
    assert [section["title"] for section in report["sections"]] == ["A tiny probe"]
