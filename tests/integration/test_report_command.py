"""`flowos report` of several runs and of files, and `flowos show` among runs of a kind."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from flowos.model import Case, MachineState, Run, Sample, StoreError, UsageError
from flowos.operations.compare import compare_runs
from flowos.operations.history import report as stored_report
from flowos.operations.history import rewritten
from flowos.operations.side_by_side import imported, side_by_side_of
from flowos.operations.usual import with_places
from flowos.plan import outcome
from flowos.probes.command import labels
from flowos.report import Report, read_json
from flowos.report import json as report_json
from flowos.store import open_store

Flowos = Callable[..., subprocess.CompletedProcess[str]]
RECORDED = Path(__file__).parents[1] / "data/run.json"
PROBES = ("flops", "clock")


@pytest.fixture(scope="module")
def report() -> Report:
    """A recorded run, with few samples, as each is written to the disk."""
    whole = read_json(RECORDED.read_text())
    samples = tuple(s for s in whole.samples if s.case.probe in PROBES)
    return replace(whole, samples=samples)


def as_run(report: Report, number: int, factor: float = 1.0, **changes: str) -> Report:
    started = f"2026-11-{number:02}T10:00:00Z"
    run = replace(report.run, id=f"2026-11-{number:02}-aaaaaa", started=started, ended=started)
    facts = replace(run.facts, cpu_model=changes.get("cpu_model", run.facts.cpu_model))
    run = replace(run, host=changes.get("host", run.host), facts=facts)
    return replace(report, run=run, samples=tuple(_scaled(report.samples, run, factor)))


def _scaled(samples: tuple[Sample, ...], run: Run, factor: float) -> Iterator[Sample]:
    for s in samples:
        yield replace(s, run=run.id, values=tuple(v * factor for v in s.values))


def stored(reports: list[Report], file: Path) -> Path:
    with open_store(str(file)) as store:
        for each in reports:
            store.begin(each.run)
            for sample in each.samples:
                store.keep(sample)
            store.finish(each.run)
    return file


def written(report: Report, file: Path) -> Path:
    file.write_text(report_json(report))
    return file


def test_a_report_of_another_store_stands_next_to_a_run(
    report: Report, flowos: Flowos, tmp_path: Path
) -> None:
    db = stored([as_run(report, 1)], tmp_path / "runs.db")
    alice = written(
        as_run(report, 2, 2.0, cpu_model="Other CPU", host="alice"), tmp_path / "a.json"
    )
    args = ("report", "last", str(alice), "--store", str(db), "--out", "both", "--json")
    files = [Path(file).name for file in json.loads(flowos(*args).stdout)]
    assert files == ["side-by-side.html", "side-by-side.json", "side-by-side.txt"]
    found = json.loads((tmp_path / "both/side-by-side.json").read_text())
    assert [run["source"] for run in found["runs"]] == ["", str(alice)]
    assert found["runs"][1]["unlike"] == ["kind of machine"]
    ratios = {cell["ratio"] for row in found["headlines"] for cell in row["runs"][1:]}
    assert ratios == {2.0}
    assert {c["answer"] for row in found["headlines"] for c in row["runs"]} == {""}
    assert found["differences"]["processor"] == [report.run.facts.cpu_model, "Other CPU"]
    again = flowos("report", "last", "last", "--store", str(db), code=2).stderr
    assert "are the same run '2026-11-01-aaaaaa'" in again
    assert "of one run only" in flowos("report", "last", str(alice), "--parquet", code=2).stderr
    for command in ("report", "baseline", "compare"):
        assert "--out: it is empty" in flowos(command, "--out", "", code=2).stderr


def test_alike_runs_of_one_machine_are_judged(report: Report, tmp_path: Path) -> None:
    files = [written(as_run(report, n, f), tmp_path / f"{n}.json") for n, f in ((1, 1.0), (2, 0.5))]
    _, other = side_by_side_of([str(file) for file in files], None).runs
    assert other.unlike == ()
    assert {v.answer for v in other.verdicts} <= {"slower", "inconclusive"}
    assert any(v.answer == "slower" for v in other.verdicts)


def of_command(report: Report, number: int, ending: str, *, ignore_failure: bool = False) -> Report:
    """A run of a command whose label is cut before its ending."""
    made = as_run(report, number)
    argv = ("sh", "-c", f": a long common beginning of it; {ending}")
    request = replace(made.run.request, commands=(argv,), ignore_failure=ignore_failure)
    (label,) = labels((argv,))
    details = (("argv", shlex.join(argv)), ("ignore_failure", "yes" * ignore_failure))
    case = Case("command", levels=(("command", label),), details=details)
    first = replace(made.samples[0], case=case, metric="wall", unit="second", state=MachineState())
    samples = tuple(replace(first, round=n, values=(1.0, 1.01) * 4) for n in range(1, 5))
    return replace(made, run=replace(made.run, request=request), samples=samples)


def test_commands_that_differ_behind_their_label_or_may_fail_are_not_judged(
    report: Report, tmp_path: Path
) -> None:
    runs = [
        of_command(report, 1, "sleep 1"),
        of_command(report, 2, "sleep 2"),
        of_command(report, 3, "sleep 1", ignore_failure=True),
        of_command(report, 4, "sleep 1"),
    ]
    db = str(stored(runs, tmp_path / "runs.db"))
    first, *others = (run.run.id for run in runs)
    found = [compare_runs((first, other), db) for other in others]
    assert [outcome(each.probes) for each in found] == ["cannot judge"] * 2 + ["equal or better"]
    assert [each.changes[0] if each.changes else "" for each in found] == [
        "commands: sh -c ': a long common beginning of it; sleep 1',"
        " then sh -c ': a long common beginning of it; sleep 2'",
        "--ignore-failure: none, then yes",
        "",
    ]
    assert any("that failed were counted" in said for said in stored_report(others[1], db).findings)


def test_all_tables_have_the_same_types_whatever_the_values_look_like(
    report: Report, tmp_path: Path
) -> None:
    schemas = []
    for level in ("true", "NA", "2", "x" * (2 << 20), 'two\nlines, "quoted"\n'):
        case = Case("command", levels=(("command", level),))
        made = replace(report, measurements=(replace(report.measurements[0], case=case),))
        *_, file = rewritten(made, tmp_path, parquet=True)
        table = read_table(file)
        assert table["command"].to_pylist() == [level]
        assert table["median"].to_pylist() == [report.measurements[0].median]
        schemas.append(table.schema)
    assert schemas[1:] == schemas[:-1]


def test_parquet_holds_many_levels_with_ends_of_lines(report: Report, tmp_path: Path) -> None:
    levels = [f"{number}\n" * 100 for number in range(5000)]
    first = report.measurements[0]
    many = tuple(replace(first, case=Case("command", levels=(("command", x),))) for x in levels)
    *_, file = rewritten(replace(report, measurements=many), tmp_path, parquet=True)
    assert read_table(file)["command"].to_pylist() == levels


def test_a_report_with_a_byte_order_mark_is_read(report: Report, tmp_path: Path) -> None:
    file = tmp_path / "marked.json"
    file.write_text(report_json(as_run(report, 1)), encoding="utf-8-sig")
    assert imported(file).run.id == as_run(report, 1).run.id


def test_a_report_is_imported_by_value(report: Report, tmp_path: Path) -> None:
    """Its numbers are computed from its samples, and those that it states are not believed."""
    run = as_run(report, 1)
    lies = replace(run, measurements=tuple(replace(m, median=9.9) for m in report.measurements[:3]))
    found = imported(written(lies, tmp_path / "lies.json"))
    assert found == imported(written(found, tmp_path / "again.json"))
    assert 9.9 not in {m.median for m in found.measurements}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no FlowOS report: Expecting value"),
        ("\0\1", "no FlowOS report: Expecting value"),
        ('{"format": "flowos-baseline"}', "no FlowOS report: it does not say"),
        ('{"format": "flowos-report", "schema": 99}', "schema 99, this FlowOS reads 1, 2, 3, 4"),
    ],
)
def test_what_is_no_report_is_refused_with_its_name(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        imported(file)
    assert str(caught.value).startswith(f"{file}: ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"values":[', '"values":["x",', "number expected, got 'x'"),
        ('"values":[', f'"values":[{"1" * 400},', "smaller number expected"),
        ('"values":[', '"values":[1e300,', "a value of .* is 1e.300"),
        ('"round":', '"round":1.5,"x":', "has no field 'x'"),
        ('"metric":"', r'"metric":"tri\ud800ad', r"'tri.ud800ad.*' is no name of a probe, metric"),
        ('["cores","', '["co\\nres","', "is no name of a probe, metric"),
        ('["cores","', '["cores","many', "cannot be used: .invalid literal for int"),
    ],
)
def test_a_damaged_report_is_refused_in_one_line(
    old: str, new: str, said: str, report: Report, tmp_path: Path
) -> None:
    file = tmp_path / "odd.json"
    file.write_text(report_json(as_run(report, 1)).replace(old, new))
    with pytest.raises(UsageError, match=said) as caught:
        imported(file)
    assert "\n" not in str(caught.value)


def test_a_name_from_a_file_cannot_act_on_a_terminal(report: Report, tmp_path: Path) -> None:
    odd = as_run(report, 1)
    evil = replace(odd.samples[0].case, levels=(("a", "\x1b[31m\n"),))
    sample = replace(odd.samples[0], case=evil, values=(1e300,))
    with pytest.raises(UsageError, match="a value of") as caught:
        imported(written(replace(odd, samples=(sample,)), tmp_path / "evil.json"))
    assert str(caught.value).isprintable()


def test_numbers_without_samples_and_missing_files_are_refused(
    report: Report, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="has numbers and no samples"):
        imported(written(replace(report, samples=()), tmp_path / "bare.json"))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        imported(tmp_path / "gone.json")
    with pytest.raises(UsageError, match="51 runs are more than a page can show"):
        side_by_side_of(["last"] * 51, None)


def test_values_that_are_no_numbers_are_left_out_and_marked(report: Report, tmp_path: Path) -> None:
    odd = as_run(report, 1)
    nan = replace(odd, samples=tuple(replace(s, values=(float("nan"), 1.0)) for s in odd.samples))
    files = [written(nan, tmp_path / "nan.json"), written(as_run(report, 2), tmp_path / "b.json")]
    first, _ = side_by_side_of([str(file) for file in files], None).runs
    assert all(not m.trust.good for m in first.report.measurements)


def test_a_run_is_shown_among_those_of_its_kind(report: Report, tmp_path: Path) -> None:
    alike = [as_run(report, n, 1 + n / 100, host=f"node{n % 2}") for n in range(1, 6)]
    apart = [as_run(report, n, 9.0, cpu_model="Other CPU") for n in range(6, 10)]
    unfinished = replace(as_run(report, 10), run=replace(as_run(report, 10).run, ended=""))
    db = str(stored([*alike, *apart, unfinished], tmp_path / "runs.db"))
    own = imported(written(as_run(report, 11, 0.5), tmp_path / "own.json"))
    places = with_places(own, db).places
    assert {place.answer for place in places} == {"worse"}
    assert {(place.runs, place.machines) for place in places} == {(5, 2)}
    assert {place.label for place in places} <= {h.label for h in own.headlines}
    assert len(places) == 3
    fewer = imported(written(alike[0], tmp_path / "in-store.json"))
    assert with_places(fewer, db).places == (), "a run is not among its others"
    assert with_places(own, str(tmp_path / "none.db")) == own
    with pytest.raises(StoreError, match="store 'mistyped'"):
        with_places(own, "mistyped")
    none = replace(own, headlines=())
    assert with_places(none, db) is none


def test_a_fifo_that_nobody_writes_to_is_no_report_and_one_with_a_writer_is_read(
    report: Report, tmp_path: Path
) -> None:
    fifo = tmp_path / "report.json"
    os.mkfifo(fifo)
    with pytest.raises(UsageError, match=r"report\.json: this is no FlowOS report"):
        imported(fifo)
    source = written(report, tmp_path / "source")
    with subprocess.Popen(["cat", source], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        read = imported(Path(f"/dev/fd/{writer.stdout.fileno()}"))
    assert read.run == report.run
