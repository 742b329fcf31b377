"""Baselines from stored runs, machines checked against them, slow ones and changes over time."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from flowos.model import DeployedNode as Node
from flowos.model import Deployment, MachineState, Run
from flowos.store import open_store
from tests.integration.test_commands import Flowos

Change = Callable[[int, Run], Run]


def kept(
    source: Path, file: Path, factors: Sequence[float], change: Change = lambda _, run: run
) -> Path:
    """Runs as one that was measured, changed, oldest first: quiet, and as fast as factors say."""
    with open_store(str(source)) as store:
        run = store.runs()[-1]
        first = {(s.case, s.metric): s for s in store.samples(run) if s.case.probe == "clock"}
    with open_store(str(file)) as store:
        for at, factor in enumerate(factors):
            other = replace(run, id=f"2026-11-{at + 1:02}-{at:06}", started=f"2026-11-{at + 1:02}")
            store.begin(change(at, other))
            for sample in first.values():
                values = (sample.values[0] * factor,) * len(sample.values)
                state = MachineState()
                store.keep(replace(sample, run=other.id, values=values, state=state))
            store.finish(change(at, other))
    return file


def named(at: int, run: Run) -> Run:
    return replace(run, host=f"node{at}")


def of_clock(_: int, run: Run) -> Run:
    return replace(run, request=replace(run.request, probes=("clock",)))


def edited(file: Path, **changes: Callable[[dict[str, Any]], object]) -> Path:
    """The baseline with fields of its numbers changed."""
    whole = json.loads(file.read_text())
    for number in whole["baseline"]["numbers"]:
        number.update({name: change(number) for name, change in changes.items()})
    other = file.with_name("edited.json")
    other.write_text(json.dumps(whole))
    return other


def test_a_machine_is_measured_and_passes_and_fails_where_more_is_expected(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    own = tmp_path / "data/flowos/flowos.db"
    own.parent.mkdir(parents=True)
    kept(measured / "runs.db", own, [1.0, 1.01], of_clock)
    made = flowos("baseline", "--max-tolerance", "1000000", "--out", "node.json")
    assert ": 2 runs of 1 machine, " in made.stdout
    assert made.stderr.endswith("written: node.json\n")
    whole = json.loads((tmp_path / "node.json").read_text())["baseline"]
    assert (whole["probes"], whole["effort"], len(whole["runs"])) == (["clock"], "quick", 2)
    wide = edited(tmp_path / "node.json", tolerance=lambda _: 1e5)  # whatever the machine does
    done = flowos("measure", "--check", wide, "--json", "--junit", "pass.xml")
    said = json.loads(done.stdout)
    assert (said["answer"], said["exit_code"]) == ("equal or better", 0)
    assert {row["answer"] for row in said["verdicts"]} == {"pass"}
    (passed,) = Xml.parse(tmp_path / "pass.xml").getroot()
    assert (passed.attrib["failures"], passed.attrib["skipped"]) == ("0", "0")
    again = flowos("measure", "--check", expecting(wide, said, 1e9), "--junit", "x.xml", code=1)
    assert "\nworse: of " in again.stdout
    assert len(json.loads(flowos("list", "--json").stdout)) == 4
    flowos("compare", expecting(wide, said, 2), said["run"], "--junit", "x.xml", code=1)
    names = {f"{row['number']['metric']} cpu=0" for row in said["verdicts"]}
    failures = {case.attrib["name"] for case in Xml.parse(tmp_path / "x.xml").iter("testcase")}
    assert names <= failures
    assert {e.attrib["type"] for e in Xml.parse(tmp_path / "x.xml").iter("failure")} == {"worse"}


def expecting(file: Path, said: dict[str, Any], factor: float) -> Path:
    """A baseline that expects so many times what a run had, and had marked numbers, too."""
    has = {
        (row["number"]["metric"], str(row["number"]["levels"])): row["value"]
        for row in said["verdicts"]
    }
    return edited(
        file,
        median=lambda number: factor * has[number["metric"], str(number["levels"])],
        tolerance=lambda _: 0.1,
        disturbed=lambda _: True,
    )


def test_a_dry_run_shows_what_a_check_would_measure(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0, 1.01])
    shown = flowos("baseline", "--store", store, "--dry-run", "--json").stdout
    assert not (tmp_path / "baseline.json").exists()
    assert json.loads(shown)["machines"] == [json.loads(shown)["machines"][0]]
    flowos("baseline", "--store", store)
    planned = json.loads(
        flowos("measure", "--check", "baseline.json", "--dry-run", "--json").stdout
    )
    assert {step["case"].split()[0] for step in planned} == {"clock"}


def test_a_slow_machine_is_named_and_the_exit_code_says_so(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    factors = [1.0, 1.01, 0.99, 0.5, 1.005, 0.995, 1.002]
    store = kept(measured / "runs.db", tmp_path / "r.db", factors, named)
    words = ("compare", "--axis", "machine", "--store", store)
    assert "slow: node3" in flowos(*words, code=1).stdout
    found = json.loads(flowos(*words, "--json", code=1).stdout)
    assert {slow["machine"] for slow in found["slow"]} == {"node3"}
    assert len(found["machines"]) == 7
    others = [f"2026-11-{at + 1:02}-{at:06}" for at in range(7) if at != 3]
    assert "none is slow" in flowos(*words, *others).stdout
    assert "5 machines, " in flowos(*words, *others[:1], "--limit", 5, code=1).stdout


def test_a_slow_one_of_four_is_found_and_it_is_said_from_where_on(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0, 1.01, 0.5, 0.99], named)
    words = ("compare", "--axis", "machine", "--store", store)
    assert "4 machines, " in (said := flowos(*words, code=1).stdout)
    assert "; slow: node2" in said
    store = kept(measured / "runs.db", tmp_path / "f.db", [1.0, 1.5, 0.3, 0.8], named)
    said = " ".join(flowos(*words[:-1], store).stdout.split())
    assert "none is slow" in said
    assert "A slow one is found from x0." in said
    assert "More machines, more runs of each, or fewer numbers (--only) find more." in said


def test_a_change_is_dated_and_the_exit_code_says_whether_it_was_for_the_worse(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    factors = [1.0, 1.01, 0.99, 1.005, 0.8, 0.81, 0.79, 0.805]
    store = kept(measured / "runs.db", tmp_path / "r.db", factors)
    words = ("compare", "last", "--axis", "time", "--only", "clock", "--store", store)
    shown = flowos(*words, code=1).stdout
    assert "between 2026-11-04-000003 and 2026-11-05-000004" in shown
    found = json.loads(flowos(*words, "--json", code=1).stdout)
    assert {change["first"] for n in found["numbers"] for change in n["changes"]} == {
        "2026-11-05-000004"
    }
    faster = kept(measured / "runs.db", tmp_path / "f.db", [1 / factor for factor in factors])
    assert "\n  better: " in flowos(*words[:-1], faster).stdout
    assert "--limit 4: give 6 or more, " in flowos(*words, "--limit", 4, code=2).stderr


def test_runs_are_ordered_by_time_whenever_they_came_into_the_store(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    def backwards(at: int, run: Run) -> Run:
        return replace(run, started=f"2026-11-{20 - at:02}")

    factors = [1.0, 1.01, 0.99, 1.005, 0.8, 0.81, 0.79, 0.805]
    store = kept(measured / "runs.db", tmp_path / "r.db", factors, backwards)
    words = ("compare", "--axis", "time", "--store", store)
    assert "\n  better: " in flowos(*words).stdout
    named = json.loads(flowos(*words, "--limit", 6, "--json").stdout)["runs"]
    assert named == [f"2026-11-{at + 1:02}-{at:06}" for at in reversed(range(6))]


def quota(at: int, run: Run) -> Run:
    return replace(run, facts=replace(run.facts, quota_cpus=at / 2 or None))


def gpus(at: int, run: Run) -> Run:
    return replace(run, facts=replace(run.facts, gpus=("T4", "H100")[at : at + 1]))


def program(name: str) -> Change:
    def changed(at: int, run: Run) -> Run:
        asked = replace(run.request, commands=((name,),), folder=PurePath("/ab"[: at + 1]))
        return replace(run, request=asked)

    return changed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (quota, ", a quota of 0.5 cpus"),
        (gpus, ", H100"),
        (program("./p.sh"), "their folder of commands differs, / and /a"),
        (program("bin/p"), "their folder of commands differs, / and /a"),
    ],
)
def test_runs_of_another_kind_or_of_a_program_of_another_folder_are_not_alike(
    flowos: Flowos, measured: Path, tmp_path: Path, change: Change, says: str
) -> None:
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 2, change)
    words = ("baseline", "2026-11-01", "2026-11-02", "--store", store)
    assert says in flowos(*words, code=2).stderr


@pytest.mark.parametrize("name", ["p", "/bin/p"])
def test_a_program_that_is_the_same_in_every_folder_is_judged_together(
    flowos: Flowos, measured: Path, tmp_path: Path, name: str
) -> None:
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 2, program(name))
    assert ": 2 runs of 1 machine" in flowos("baseline", "--store", store, "--dry-run").stdout


def deployed(at: int, run: Run) -> Run:
    nodes = tuple(Node(name=f"node{at}{side}") for side in "ab")
    return replace(run, deployment=Deployment(of="d-1", number=at + 1, pool="p", nodes=nodes))


def test_slow_nodes_of_deployments_are_named_where_these_are_compared(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    factors = [1.0, 1.01, 0.4, 0.99, 1.005]
    store = kept(measured / "runs.db", tmp_path / "r.db", factors, deployed)
    said = flowos("compare", "last", "--axis", "deployment", "--store", store).stderr
    assert "node2a, node2b is slow: clock" in said


def test_runs_that_are_not_alike_are_refused(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    def other_kind(at: int, run: Run) -> Run:
        return replace(run, facts=replace(run.facts, cpu_model=f"cpu {at // 2}"))

    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 4, other_kind)
    said = flowos("baseline", "2026-11-01", "2026-11-04", "--store", store, code=2).stderr
    assert "their kind of machine differs, cpu 0, " in said
    flowos("baseline", "--store", store)
    assert len(json.loads((tmp_path / "baseline.json").read_text())["baseline"]["runs"]) == 2
    said = flowos("compare", "baseline.json", "2026-11-01", "--store", store, code=2).stderr
    assert "the baseline is of another kind of machine: 'cpu 1, " in said
    said = flowos("measure", "--check", "baseline.json", "--store", store, code=2).stderr
    assert "the baseline is of another kind of machine: 'cpu 1, " in said
    assert len(json.loads(flowos("list", "--store", store, "--json").stdout)) == 4
    said = flowos("baseline", "2026-11-01", "2026-11-01", "--store", store, code=2).stderr
    assert "a run is given twice" in said


@pytest.mark.parametrize(
    ("name", "first", "last", "says"),
    [
        ("effort", "quick", "full", "effort 'full', in the baseline 'quick'"),
        ("ignore_failure", False, True, "--ignore-failure 'yes', in the baseline 'none'"),
    ],
)
def test_a_run_that_was_measured_in_another_way_is_refused(
    flowos: Flowos, measured: Path, tmp_path: Path, name: str, first: Any, last: Any, says: str
) -> None:
    def last_differs(at: int, run: Run) -> Run:
        return replace(run, request=replace(run.request, **{name: last if at > 1 else first}))

    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 3, last_differs)
    flowos("baseline", "2026-11-01", "--store", store)
    said = flowos("compare", "baseline.json", "last", "--store", store, code=2).stderr
    assert f"was measured in another way: {says}" in said
    assert "there is one run like 2026-11-03" in flowos("baseline", "--store", store, code=2).stderr


def test_storage_is_compared_with_the_same_storage_alone(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    def on_two(at: int, run: Run) -> Run:
        scratch = PurePath("/fast" if at > 1 else "/slow")
        return replace(run, request=replace(run.request, probes=("clock", "fio"), scratch=scratch))

    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 4, on_two)
    said = flowos("baseline", "2026-11-01", "2026-11-04", "--store", store, code=2).stderr
    assert "their folder on the storage differs, /slow and /fast" in said
    flowos("baseline", "--store", store)
    whole = json.loads((tmp_path / "baseline.json").read_text())
    assert len(whole["baseline"]["runs"]) == 2
    assert whole["baseline"]["scratch"] is None, "it has no number of the storage"
    whole["baseline"]["scratch"] = "/slow"
    (tmp_path / "slow.json").write_text(json.dumps(whole))
    said = flowos("compare", "slow.json", "last", "--store", store, code=2).stderr
    assert "folder on the storage '/fast', in the baseline '/slow'" in said
    said = flowos("measure", "--check", "slow.json", "--scratch", "/fast", code=2).stderr
    assert "--scratch /fast: the baseline is of '/slow'" in said


def test_a_baseline_cannot_fill_the_terminal(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 2)
    flowos("baseline", "--store", store)
    whole = json.loads((tmp_path / "baseline.json").read_text())
    for change in (
        {"kind": {**whole["baseline"]["kind"], "processor": "x\n" * 5000}},
        {"matrix": "x\n" * 5000},
    ):
        forged = {**whole, "baseline": whole["baseline"] | change}
        (tmp_path / "forged.json").write_text(json.dumps(forged))
        said = flowos("compare", "forged.json", "last", "--store", store, code=2).stderr
        assert said.count("\n") == 1
        assert len(said) < 400


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("measure", "--check", "nosuch.json"), "baseline nosuch.json cannot be read: No such"),
        (("measure", "--check", "."), "baseline . cannot be read: Is a directory"),
        (("measure", "--check", "b.json", "--quick"), "--quick: not with --check"),
        (("measure", "--check", "b.json"), "b.json: this is no FlowOS baseline: "),
        (("measure", "--check", "b.json", "--junit", "no/x"), "no/x cannot be written: No such"),
        (("measure", "--check", "b.json", "--junit", "."), ". cannot be written: it is a folder"),
        (("measure", "--check", "bytes"), "bytes: this is no FlowOS baseline: it is no text"),
        (("measure", "--junit", "x.xml"), "--junit: only with --check BASELINE"),
        (("compare", "last", "--junit", "x.xml"), "--junit: only with a baseline"),
        (("compare", "a", "b", "--limit", "3"), "--limit and --error: only with --axis machine"),
        (("compare", "b.json", "--margin", "0.1"), "--margin: not with a baseline"),
        (("compare", "--axis", "time", "--base", "x"), "--base: not with --axis time"),
        (("compare", "a", "b", "--base", "x"), "--base: only with --axis"),
        (("compare", "--axis", "cores", "--all"), "--all: not with --axis cores"),
        (("compare", "--axis", "deployment", "--only", "x"), "not with --axis deployment"),
        (("compare", "--axis", "deployment", "--base", "x"), "not with --axis deployment"),
        (
            ("compare", "--axis", "machine", "--only", "gemm"),
            "--only gemm: the runs measured clock",
        ),
        (("compare", "--axis", "machine"), "there are 2 runs like it, of 2 machines"),
        (("compare", "--axis", "machine", "--limit", "2"), "--limit 2: give 3 or more, "),
        (("baseline", "--limit", "1"), "--limit 1: give 2 or more, "),
        (("compare", "--axis", "time"), "there are 2 runs like it: a change is found in 6"),
        (("baseline", "--error", "0.7"), "--error 0.7: give a share below 0.5"),
        (("baseline", "--error", "5"), "5: expected a share between 0 and 1"),
        (("baseline", "--max-tolerance", "-1"), "-1: expected a share above 0"),
        (("baseline", "--only", "gemm"), "--only gemm: the runs measured clock, flops"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_line(
    flowos: Flowos, kept_runs: list[str], tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    assert kept_runs
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    said = flowos(*words, code=2).stderr
    assert says in said
    assert "Traceback" not in said


def test_what_cannot_be_written_is_said(flowos: Flowos, kept_runs: list[str]) -> None:
    said = flowos("baseline", "--out", "no/such/b.json", code=1).stderr
    assert "no/such/b.json cannot be written: No such file" in said
    flowos("baseline", "--max-tolerance", "9")
    words = ("compare", "baseline.json", kept_runs[0], "--junit", "/dev/full")
    full = flowos(*words, codes=(1, 2)).stderr
    assert "/dev/full cannot be written: No space left on device" in full
