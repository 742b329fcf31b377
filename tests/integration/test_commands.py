"""The command line with real programs and stores; in a process of its own where signals count."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from flowos.cli._commands import COMMANDS
from flowos.report import read_json
from flowos.store import open_store
from tests.waiting import PATIENCE_SECONDS

Flowos = Callable[..., subprocess.CompletedProcess[str]]
SHORTLY = ("measure", "--quick", "--only", "clock", "--minutes", "0.02")
"""A round: where one is enough, a busy machine is not measured until it is calm."""


def test_a_measurement_is_kept_listed_shown_compared_and_reported(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    report = json.loads((measured / "said.json").read_text())
    own = tmp_path / "data/flowos/flowos.db"
    own.parent.mkdir(parents=True)
    shutil.copy(measured / "runs.db", own)
    (listed,) = json.loads(flowos("list", "--json").stdout)
    assert listed["ended"]
    assert listed["samples"] > 0
    assert listed["id"] in json.dumps(report)
    assert listed["id"] in flowos("show", listed["id"][:-2]).stdout
    verdicts = json.loads(flowos("compare", "last", "--axis", "cores", "--json").stdout)["verdicts"]
    assert {v["axis"] for v in verdicts} == {"cores"}
    same = flowos("compare", "last", listed["id"], code=2).stderr
    assert same.endswith(f"both are run {listed['id']}: there is nothing to compare\n")
    flowos("report", "last", "--out", "again")
    names = {"report.html", "report.json", "report.csv", "report.md", "report.prom"}
    assert {p.name for p in (tmp_path / "again").iterdir()} == names
    assert {p.name for p in (measured / "flowos-report").iterdir()} == names
    table = flowos("report", "last", "--out", "again", "--parquet").stdout.splitlines()[-1]
    assert read_table(tmp_path / table).num_rows == len(report["report"]["measurements"])


def test_runs_are_deleted_all_or_none_and_a_dry_run_only_shows_them(
    flowos: Flowos, kept_runs: list[str]
) -> None:
    newest, oldest = kept_runs
    assert f"would delete {newest}" in flowos("rm", "--dry-run", "last", newest).stdout
    assert "no run 'nosuch'" in flowos("rm", newest, "nosuch", code=2).stderr
    assert len(json.loads(flowos("list", "--json").stdout)) == 2
    (gone,) = json.loads(flowos("rm", "--json", oldest[:-2], oldest).stdout)
    assert gone["id"] == oldest
    assert gone["samples"] > 0
    (left,) = json.loads(flowos("list", "--json").stdout)
    assert left["id"] == newest
    assert flowos("rm", "last").stdout.startswith(f"deleted {newest}  ")
    assert "flowos measure" in flowos("rm", "last", code=2).stderr


def compared(call: Flowos, runs: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    """How it ends hangs on the machine; that it ends in one of these ways does not."""
    return call("compare", *runs, *words, codes=(0, 1, 2))


def test_two_runs_are_compared_by_probe_and_the_exit_code_is_the_answer(
    flowos: Flowos, kept_runs: list[str]
) -> None:
    runs = kept_runs
    done = compared(flowos, runs, "--json")
    told = json.loads(done.stdout)
    codes = {"equal or better": 0, "worse": 1, "cannot judge": 2}
    assert codes[told["answer"]] == told["exit_code"] == done.returncode
    assert {v["metric"] for v in told["probes"]} == {"clock", "flops"}
    for v in told["verdicts"]:
        assert v["answer"] == "inconclusive" or not v["marks"]
    only = json.loads(compared(flowos, runs, "--only", "clock", "--json").stdout)
    assert only["verdicts"] == [v for v in told["verdicts"] if v["probe"] == "clock"]
    shown = compared(flowos, runs, "--all").stdout
    assert f"run {runs[1]} next to {runs[0]}, within 5" in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert "--only gemm: what can be compared is of clock, flops" in (
        flowos("compare", *runs, "--only", "gemm", code=2).stderr
    )


def test_a_comparison_fits_100_columns_and_says_what_would_tell(
    flowos: Flowos, tmp_path: Path
) -> None:
    words = ("compare", "last", "--axis", "flags", "--store", keep_recorded(tmp_path / "runs.db"))
    lines = flowos(*words).stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert "comparisons: " in lines[0]
    shown = flowos(*words, "--json").stdout
    verdicts = json.loads(shown)["verdicts"]
    assert len(verdicts) == int(lines[0].split()[0])
    open_ones = [v for v in verdicts if v["answer"] == "inconclusive"]
    would = [v for v in open_ones if "for any sensible number to decide" not in v["why"]]
    assert all(v["needed"] >= 4 for v in would)
    assert would
    assert "`flowos measure --only stream --minutes " in "\n".join(lines)


def test_what_is_known_to_differ_between_two_runs_is_stated(flowos: Flowos, tmp_path: Path) -> None:
    store = keep_recorded(tmp_path / "runs.db", of="clock")
    with open_store(str(store)) as kept:
        (run,) = kept.runs()
        facts = replace(
            run.facts, host="fast", cpu_model="a newer one", quota_cpus=0.5, gpus=("T4",)
        )
        other = replace(run, id="2026-11-21-ffffff", host="fast", facts=facts, version="9.9")
        kept.begin(other)
        for sample in kept.samples(run):
            kept.keep(replace(sample, run=other.id))
        kept.finish(other)
    words = (run.id, other.id, "--store", str(store))
    told = json.loads(compared(flowos, list(words), "--json").stdout)
    assert told["changes"] == [
        f"host: {run.host}, then fast",
        f"processor: {run.facts.cpu_model}, then a newer one",
        "quota of cpus: none, then 0.5",
        "GPUs: none, then T4",
        f"FlowOS: {run.version}, then 9.9",
    ]
    assert "  host: example, then fast\n" in compared(flowos, list(words)).stdout


def keep_recorded(file: Path, of: str = "") -> Path:
    """A run with all probes, as a machine gave it. of: with the samples of this one alone."""
    report = read_json((Path(__file__).parents[1] / "data/run.json").read_text())
    with open_store(str(file)) as store:
        store.begin(report.run)
        for sample in report.samples:
            if of in ("", sample.case.probe):
                store.keep(sample)
        store.finish(report.run)
    return file


@pytest.mark.usefixtures("looked_once")
def test_a_dry_run_shows_the_commands_and_measures_nothing(flowos: Flowos, tmp_path: Path) -> None:
    planned = json.loads(flowos("measure", "--dry-run", "--json", "--only", "stream").stdout)
    assert all("stream.c" in step["commands"][0] for step in planned)
    assert "OMP_NUM_THREADS" in flowos("measure", "--dry-run", "--only", "stream").stdout
    assert not (tmp_path / "flowos-report").exists()
    assert "no run is kept yet" in flowos("list").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("measure", "--only", "strem"), "no probe is called 'strem'; the probes are clock"),
        (("measure", "--nominal", "memory=1e9"), "the names are clock_hz and memory_bytes_per"),
        (("measure", "--nominal", "clock_hz=-1"), "expected between 1e+08 and 1e+10 Hz"),
        (("measure", "--nominal", "clock_hz=51.2e9"), "as in clock_hz=2.4e9"),
        (("measure", "--nominal", "clock_hz=3.1"), "expected between 1e+08 and 1e+10 Hz"),
        (("measure", "--nominal", "clock_hz=nan"), "expected between 1e+08 and 1e+10 Hz"),
        (
            ("measure", "--nominal", "memory_bytes_per_second=51.2"),
            "between 1e+08 and 1e+14 byte/s, as in memory_bytes_per_second=51.2e9",
        ),
        (("measure", "--minutes", "nan"), "--minutes nan"),
        (("measure", "--matrix", "/no/such.mtx"), "--matrix /no/such.mtx: there is no such file"),
        (("measure", "--matrix", "/etc/passwd"), "give a Matrix Market file, NAME.mtx"),
        (("measure", "--quick", "--matrix", "a.mtx"), "--quick solves with no matrix of yours"),
        (("measure", "--only", "fio", "--matrix", "a.mtx"), "--only fio solves with no matrix"),
        (("measure", "--scratch", "/no/such"), "/no/such"),
        (("measure", "--scratch", "/no/such", "--dry-run"), "give another with --scratch"),
        (("measure", "--out", "/proc/no/such"), "cannot be written to /proc/no/such"),
        (("compare", "--margin", "3", "--axis", "x"), "--margin 3.0"),
        (("measure", "--store=--"), "argument --store: expected a value, given --"),
        (("kernel", "add", "k", "--deb=x", "--parameter=--"), "--parameter: expected a value"),
        (("compare", "a", "b", "c"), "give one run and --axis NAME, or two runs"),
    ],
)
@pytest.mark.usefixtures("unseen_node")
def test_a_wrong_call_gets_one_clear_line(
    flowos: Flowos, words: tuple[str, ...], says: str
) -> None:
    done = flowos(*words, code=2)
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert json.loads(flowos("list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("measure", "--only", ""), "a name is empty"),
        (("measure", "--only", "stream,,gemm"), "a name is empty"),
        (("list", "--store", ""), "leave the option out"),
        (("list", "--limit", "9" * 30), "expected a whole number, 1 to"),
    ],
)
def test_an_empty_or_endless_value_is_refused(
    flowos: Flowos, words: tuple[str, ...], says: str
) -> None:
    assert says in flowos(*words, code=2).stderr.splitlines()[-1]


def test_an_empty_matrix_is_refused_before_anything_is_measured(
    flowos: Flowos, tmp_path: Path
) -> None:
    (tmp_path / "empty.mtx").touch()
    done = flowos("measure", "--only", "solve", "--matrix", tmp_path / "empty.mtx", code=2)
    assert "does not begin with %%MatrixMarket" in done.stderr


@pytest.mark.parametrize("command", ["show", "report", "compare"])
def test_without_runs_every_reader_says_what_to_do(flowos: Flowos, command: str) -> None:
    axis = ("--axis", "cores") if command == "compare" else ()
    assert "flowos measure" in flowos(command, *axis, code=2).stderr


@pytest.mark.usefixtures("looked_once")
def test_a_store_that_cannot_be_written_costs_a_note_and_no_result(
    flowos: Flowos, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = flowos(
        *(*SHORTLY, "--json"),
        *("--store", str(tmp_path / "file" / "x.db")),
        code=3,
    )
    assert json.loads(done.stdout)
    assert "results are on the screen" in done.stderr


@pytest.mark.usefixtures("looked_once")
def test_a_store_that_a_perhaps_mistyped_path_made_is_told_once(
    flowos: Flowos, tmp_path: Path
) -> None:
    made = tmp_path / "typo" / "x.db"
    words = (*SHORTLY, "--json", "--store", str(made))
    assert f"made a new store: {made}\n" in flowos(*words).stderr
    assert "new store" not in flowos(*words).stderr


@pytest.mark.parametrize(
    "words",
    [("list",), ("show",), ("compare", "--axis", "cores"), ("report",), ("rm", "last")],
)
def test_a_named_store_that_is_not_there_is_no_empty_one_and_is_not_made(
    flowos: Flowos, tmp_path: Path, words: tuple[str, ...]
) -> None:
    store = tmp_path / "no" / "such.db"
    code = 2 if words[0] == "compare" else 1
    assert f"there is no store {store}" in flowos(*words, "--store", str(store), code=code).stderr
    assert not store.parent.exists()


def test_without_a_home_that_can_be_written_one_line_says_what_mends_it(
    flowos_process: Flowos, variables: dict[str, str], tmp_path: Path
) -> None:
    variables |= {"HOME": "/proc/no", "XDG_DATA_HOME": "", "XDG_CACHE_HOME": ""}
    variables["PATH"] = str(tmp_path)  # nothing is kept of compilers: one is enough to try
    for name in ("gcc", "as", "ld"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    done = flowos_process(*SHORTLY, code=1)
    assert "name another cache folder in XDG_CACHE_HOME" in done.stdout
    assert done.stdout.count("XDG_CACHE_HOME") == 1
    assert "Traceback" not in done.stderr
    assert "(--store FILE, or XDG_DATA_HOME)" in done.stderr


@pytest.mark.usefixtures("kept_runs")
def test_an_unknown_axis_or_level_names_the_known_ones(flowos: Flowos) -> None:
    assert "did you mean 'cores'?" in flowos("compare", "last", "--axis", "core", code=2).stderr
    said = flowos("compare", "last", "--axis", "isa", "--base", "mmx", code=2).stderr
    assert "'mmx'" in said


def command_lines_below(pid: int) -> Iterator[str]:
    """Of the processes that this one started, and that they did."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it ends meanwhile
            for child in map(int, children.read_text().split()):
                yield Path(f"/proc/{child}/cmdline").read_text()
                yield from command_lines_below(child)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_when_interrupted_what_was_measured_is_kept_and_shown(
    flowos: Flowos,
    tmp_path: Path,
    variables: dict[str, str],
    looked_flowos: list[str],
    number: int,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    running = subprocess.Popen(
        [
            *(*looked_flowos, "measure", "--quick", "--json"),
            *("--only", "clock,gemm", "--scratch", str(scratch)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=variables,
    )
    try:
        assert running.stderr is not None
        for line in running.stderr:
            if "gemm" in line and "building" not in line:
                break
        until = time.monotonic() + PATIENCE_SECONDS
        while not any("gemm" in words for words in command_lines_below(running.pid)):
            assert time.monotonic() < until, "no gemm runs"
            time.sleep(0.01)
        running.send_signal(number)
        out, said = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 128 + number
    assert any(m["metric"] == "clock" for m in json.loads(out)["report"]["measurements"])
    (listed,) = json.loads(flowos("list", "--json").stdout)
    assert listed["ended"]
    assert f"they are kept: flowos show {listed['id']}" in said
    assert "The run ended early, as it was interrupted" in flowos("show").stdout
    assert list(scratch.iterdir()) == []


def test_an_interrupt_before_the_first_number_leaves_no_report_and_no_run(
    flowos: Flowos, tmp_path: Path, variables: dict[str, str], looked_flowos: list[str]
) -> None:
    running = subprocess.Popen(
        [*looked_flowos, "measure", "--only", "gemm"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=variables,
    )
    assert running.stderr is not None
    assert "building" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=300)
    assert (running.returncode, out) == (130, "")
    assert said.splitlines()[-1] == (
        "flowos measure: interrupted: nothing was measured, so nothing is kept or written"
    )
    assert not (tmp_path / "flowos-report").exists()
    assert json.loads(flowos("list", "--json").stdout) == []


def test_every_command_has_help_with_an_example(flowos: Flowos) -> None:
    for command in ("measure", "list", "show", "compare", "report", "rm", "doctor"):
        assert f"example: flowos {command}" in flowos(command, "--help").stdout


@pytest.mark.usefixtures("looked_once")
def test_what_the_time_does_not_reach_is_named_with_the_remedy(flowos: Flowos) -> None:
    shown = flowos("measure", "--only", "clock,flops", "--minutes", "0.02").stdout
    assert "the time was out before its turn" in shown
    assert "--minutes" in shown


def test_flowos_alone_shows_help_and_tells_its_version(flowos_process: Flowos) -> None:
    shown = flowos_process().stdout
    assert "example: flowos measure" in shown
    assert all(f"\n    {command} " in shown for command in COMMANDS)
    assert flowos_process("--version").stdout.startswith("flowos ")


def test_help_and_version_load_no_command() -> None:
    for word in ("--help", "--version"):
        code = (
            f"import sys, flowos.cli\nsys.argv[1:] = ['{word}']\n"
            "try: flowos.cli.main()\n"
            "except SystemExit: pass\n"
            "print(sorted(m for m in sys.modules if m.startswith('flowos.operations')))"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert said.stdout.endswith("[]\n")
