"""Baselines as files and in the terminal; checked runs as tables and as JUnit XML."""

import json
import math
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from flowos.model import (
    Baseline,
    BaselineNumber,
    Case,
    MachineKind,
    MeasurementRequest,
    Run,
    UnjudgedNumber,
    UsageError,
)
from flowos.plan import BaselineCheck, NumberCheck
from flowos.report import baseline_json, baseline_text, check_text, junit, read_baseline_json
from tests.unit.report.reports import FACTS, HOSTILE

TRIAD = BaselineNumber(
    probe="stream",
    levels=(("compiler", "gcc-12"), ("threads", "2")),
    metric="triad",
    unit="byte/s",
    median=40e9,
    spread=0.02,
    runs=5,
    machines=1,
    tolerance=0.1,
)
COPY = replace(TRIAD, levels=(("compiler", "gcc-12"), ("threads", "1")), metric="copy")
LATENCY = replace(
    TRIAD, probe="mpi", levels=(), metric="latency", unit="second", median=2e-6, tolerance=30.0
)
ASKED = ("command",)
BASELINE = Baseline(
    kind=MachineKind(processor="Example CPU", cpus=4, architecture="x86_64"),
    made="2026-11-27T10:00:00Z",
    version="0.1.0",
    runs=("r1", "r2", "r3", "r4", "r5"),
    machines=("node1",),
    probes=("stream", "mpi"),
    effort="quick",
    error=0.05,
    max_tolerance=0.25,
    numbers=(TRIAD, COPY, LATENCY),
)
CHECK = BaselineCheck(
    run="r6",
    numbers=(
        NumberCheck(number=TRIAD, value=20e9, answer="worse"),
        NumberCheck(number=COPY, value=41e9, answer="pass"),
        NumberCheck(number=LATENCY, value=None, answer="not measured", why="no mpirun"),
        NumberCheck(number=LATENCY, value=2e-6, answer="cannot judge", why="it scatters"),
        NumberCheck(number=COPY, value=51e9, answer="better"),
    ),
    answer="worse",
    why=("mpi: 1 of 1 numbers could not be measured",),
)
RUN = Run(
    id="r6",
    started="2026-11-27T11:00:00Z",
    host="node1",
    version="0",
    request=MeasurementRequest(),
    facts=FACTS,
)


def test_a_baseline_is_read_as_it_was_written_and_has_a_line_for_each_number() -> None:
    text = baseline_json(BASELINE)
    assert read_baseline_json(text, asked=ASKED) == BASELINE
    lines = [line for line in text.splitlines() if '"metric"' in line]
    assert [json.loads(line.rstrip(","))["metric"] for line in lines] == [
        "triad",
        "copy",
        "latency",
    ]


def test_a_baseline_of_an_older_flowos_is_of_no_quota_and_no_gpus() -> None:
    whole = json.loads(baseline_json(BASELINE))
    del whole["baseline"]["unjudged"], whole["baseline"]["kind"]["quota_cpus"]
    del whole["baseline"]["kind"]["gpus"]
    assert read_baseline_json(json.dumps(whole), asked=ASKED) == BASELINE
    kind = replace(BASELINE.kind, quota_cpus=0.5, gpus=("T4", "H100"))
    assert str(kind) == "Example CPU, 4 cpus, x86_64, a quota of 0.5 cpus, T4, H100"


def test_numbers_that_are_not_judged_are_named() -> None:
    lone = UnjudgedNumber(case=Case("command"), metric="system")
    other = replace(BASELINE, unjudged=(lone, lone))
    assert read_baseline_json(baseline_json(other), asked=ASKED) == other
    named = "  2 numbers are not above 0 in a run, and not judged: command: system; command: system"
    assert baseline_text(other).splitlines()[-1] == named
    assert check_text(CHECK, other, "node.json").splitlines()[-1] == named


def changed(**changes: Any) -> str:
    whole = json.loads(baseline_json(BASELINE))
    whole["baseline"] |= changes
    return json.dumps(whole)


def numbers(**changes: Any) -> list[dict[str, Any]]:
    first, *others = json.loads(baseline_json(BASELINE))["baseline"]["numbers"]
    return [first | changes, *others]


TWICE = [*numbers()[:1], *numbers()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "this is no FlowOS baseline: Expecting value"),
        ("[" * 100_000, "this is no FlowOS baseline: "),
        ('{"format": "flowos-report"}', "it does not say 'format': 'flowos-baseline'"),
        ('{"format": "flowos-baseline", "schema": 2}', "schema 2, this FlowOS reads 1: upgrade"),
        (
            '{"format": "flowos-baseline", "schema": 1}',
            "cannot be read: baseline: Baseline expected",
        ),
        (changed(effort="hasty"), "baseline.effort: one of ('quick', 'normal', 'full') expected"),
        (changed(numbers=numbers(median="40")), "baseline.numbers[0].median: number expected"),
        (changed(numbers=[]), "it has no numbers"),
        (changed(error=1), "error 1.0: expected a share between 0 and 1"),
        (changed(error=0), "error 0.0: expected a share between 0 and 1"),
        (changed(max_tolerance=0), "max_tolerance 0.0: expected a share above 0"),
        (changed(max_tolerance=math.inf), "max_tolerance inf: expected a share above 0"),
        (changed(numbers=numbers(median=-1)), "numbers[0] (stream: compiler gcc-12, threads 2: "),
        (changed(numbers=numbers(median=0)), "median 0.0: expected a number above 0"),
        (changed(numbers=numbers(median=math.inf)), "median inf: expected a number above 0"),
        (changed(numbers=numbers(tolerance=None)), "tolerance nan: expected a number above 0"),
        (changed(nodes=0), "nodes 0: expected a number above 0"),
        (changed(probes=[]), "numbers[0] (stream: compiler gcc-12, threads 2: triad): 'stream' is"),
        (changed(commands=[["true"]]), "commands: expected where the probes have 'command'"),
        (changed(probes=["stream", "mpi", "command"]), "commands: expected where the probes have"),
        (changed(numbers=TWICE), "numbers[1] (stream: compiler gcc-12, threads 2: triad): it is"),
    ],
)
def test_what_is_no_baseline_is_refused_in_a_line_that_says_where(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_baseline_json(text, asked=ASKED)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_baseline_says_how_wide_its_tolerances_are_and_what_more_runs_would_give() -> None:
    assert baseline_text(BASELINE).splitlines() == [
        "baseline of Example CPU, 4 cpus, x86_64: 5 runs of 1 machine, 3 numbers",
        "  Of checks of a machine like this 5.0% at most say that any of its numbers is worse.",
        "  How far machines of this kind differ is not known from one: take runs of several to"
        " check others",
        "  with it.",
        "",
        "  numbers  tolerance (lowest to highest)          10 runs would give  probe",
        "  2        10% (10% to 10%)                       5.5%                stream",
        "  1        over 1000% (over 1000% to over 1000%)  5.5%                mpi",
        "",
        "  1 of 3 numbers have a tolerance above 25%: within it a check cannot judge them. More"
        " runs make it",
        "  narrower, and so do fewer numbers (--only).",
    ]


def test_of_several_machines_more_machines_are_proposed() -> None:
    many = replace(BASELINE, machines=("a", "b", "c", "d", "e", "f"), numbers=(TRIAD,))
    text = baseline_text(many)
    assert "12 machines would give" in text
    assert "a machine like these" in text
    assert "cannot judge" not in text


def test_two_runs_say_little() -> None:
    assert "two runs says little" in baseline_text(replace(BASELINE, runs=("r1", "r2")))


def test_a_check_has_its_worst_numbers_and_its_answer_last() -> None:
    assert check_text(CHECK, BASELINE, "node.json").splitlines() == [
        "run r6 against node.json (5 runs of 1 machine, made 2026-11-27)",
        "",
        "  value      baseline   tolerance   verdict       what",
        "  41.0 GB/s  40.0 GB/s  10%         pass          stream: threads 1: copy",
        "  51.0 GB/s  40.0 GB/s  10%         better        stream: threads 1: copy",
        "  -          2.00 us    over 1000%  not measured  mpi: latency (no mpirun)",
        "  2.00 us    2.00 us    over 1000%  cannot judge  mpi: latency (it scatters)",
        "  20.0 GB/s  40.0 GB/s  10%         worse         stream: threads 2: triad",
        "",
        "worse: of 5 numbers 1 pass, 1 better, 1 not measured, 1 cannot judge, 1 worse",
        "  mpi: 1 of 1 numbers could not be measured",
    ]


def test_junit_has_a_test_case_for_each_number_with_its_value_and_limits() -> None:
    text = junit(CHECK, RUN, "node.json")
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    (suite,) = top = Xml.fromstring(text)
    for each in (top, suite):
        counts = [each.attrib[name] for name in ("tests", "failures", "errors", "skipped")]
        assert counts == ["5", "1", "0", "2"]
    assert suite.attrib["timestamp"] == "2026-11-27T11:00:00"
    properties, *cases = suite
    assert [(p.attrib["name"], p.attrib["value"]) for p in properties] == [
        ("run", "r6"),
        ("baseline", "node.json"),
        ("answer", "worse"),
    ]
    assert [(c.attrib["classname"], c.attrib["name"]) for c in cases][:3] == [
        ("flowos.stream", "triad compiler=gcc-12 threads=2"),
        ("flowos.stream", "copy compiler=gcc-12 threads=1"),
        ("flowos.mpi", "latency"),
    ]
    assert [[(e.tag, e.attrib["message"]) for e in case] for case in cases] == [
        [
            (
                "failure",
                "20.0 GB/s (worse); baseline 40.0 GB/s, tolerance 10%: 36.4 GB/s to 44.0 GB/s",
            )
        ],
        [],
        [
            (
                "skipped",
                "not measured: no mpirun; baseline 2.00 us, tolerance 3000%: 64.5 ns to 62.0 us",
            )
        ],
        [
            (
                "skipped",
                "2.00 us (cannot judge: it scatters); baseline 2.00 us, tolerance 3000%:"
                " 64.5 ns to 62.0 us",
            )
        ],
        [],
    ]
    assert cases[0][0].attrib["type"] == "worse"


def test_names_from_outside_leave_it_well_formed() -> None:
    odd = replace(TRIAD, probe=HOSTILE, levels=((HOSTILE, HOSTILE),), metric=HOSTILE)
    rows = (NumberCheck(number=odd, value=None, answer="not measured", why=HOSTILE),)
    found = replace(CHECK, numbers=rows, why=(HOSTILE,))
    text = junit(found, replace(RUN, host=HOSTILE, id=HOSTILE), HOSTILE)
    assert len(Xml.fromstring(text.encode())[0]) == 2
    shown = check_text(found, replace(BASELINE, numbers=(odd,)), HOSTILE)
    assert all(line.isprintable() for line in shown.splitlines())
