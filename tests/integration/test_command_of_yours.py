"""`flowos measure -- COMMAND` and `flowos compare --command`, with real commands."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from flowos.probes import command
from tests.waiting import PATIENCE_SECONDS

Flowos = Callable[..., subprocess.CompletedProcess[str]]
Values = dict[str, list[float]]
SOURCE = Path(command.__file__).parent / "programs/command.c"
STUBBORN = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 60; done"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("command") / "command"
    words = ("gcc", "-O1", "-Wall", "-Wextra", "-Werror", str(SOURCE), "-o", str(made))
    subprocess.run(words, check=True)
    return made


def test_counters_are_of_the_command_and_its_children_alone(tmp_path: Path) -> None:
    """Page faults in place of instructions and cycles, which few virtual machines count."""
    faults = (f"{n}=PERF_COUNT_SW_PAGE_FAULTS" for n in ("FM_FIRST", "FM_SECOND"))
    names = ("FM_COUNTERS=PERF_TYPE_SOFTWARE", *faults)
    made = tmp_path / "command"
    subprocess.run(("gcc", *(f"-D{n}" for n in names), str(SOURCE), "-o", str(made)), check=True)
    small = readings(made, "--seconds", "0.02", "--", "true")
    if "instructions" not in small:
        pytest.skip("this kernel permits no counters")
    assert len(small["cycles"]) == len(small["wall"])
    script = f"{sys.executable} -c 1; true"
    large = readings(made, "--seconds", "0", "--", "sh", "-c", script)
    alone = readings(made, "--seconds", "0", "--", sys.executable, "-c", "1")
    assert alone["instructions"][0] > 3 * median(small["instructions"])
    assert large["instructions"][0] > 0.7 * alone["instructions"][0]  # that of its child


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((str(program), *words), capture_output=True, text=True, check=False)


def readings(program: Path, *words: str) -> Values:
    done = run(program, *words)
    assert done.returncode == 0, done.stderr
    return {r["metric"]: r["values"] for r in json.loads(done.stdout)["readings"]}


def test_each_run_has_its_time_processor_time_and_memory(program: Path) -> None:
    script = "x = bytearray(60_000_000)\nfor i in range(2_000_000): pass"
    found = readings(program, "--seconds", "0", "--", sys.executable, "-c", script)
    assert {name: len(values) for name, values in found.items()} == dict.fromkeys(found, 1)
    assert found["max_rss"][0] > 60e6
    assert found["user"][0] + found["system"][0] > 0.01
    assert found["wall"][0] > 0.01
    assert "process_start" not in found


def test_runs_go_on_until_they_took_so_long_and_short_ones_alternate_with_true(
    program: Path,
) -> None:
    began = time.monotonic()
    found = readings(program, "--seconds", "0.2", "--", "true")
    assert time.monotonic() - began >= 0.2
    assert len(found["wall"]) > 1
    if "process_start" in found:  # on a busy machine the first run may take 5 ms
        assert abs(len(found["wall"]) - len(found["process_start"])) <= 1
    assert max(found["max_rss"]) < 20e6


@pytest.mark.parametrize("to", ["1", "2"])
def test_a_command_that_prints_a_lot_ends(program: Path, to: str) -> None:
    script = f"head -c 20000000 /dev/zero >&{to}"
    assert len(readings(program, "--seconds", "0", "--", "sh", "-c", script)["wall"]) == 1


def test_its_standard_input_is_empty_and_its_output_is_discarded(program: Path) -> None:
    done = run(program, "--seconds", "0", "--", "sh", "-c", "cat; echo out; echo err >&2")
    assert done.stderr == ""
    assert json.loads(done.stdout)["readings"]


@pytest.mark.parametrize(
    ("words", "answer", "said"),
    [
        (("sh", "-c", "echo one >&2; echo two >&2; exit 3"), {"exit": 3}, "one\ntwo\n"),
        (("sh", "-c", "yes long | head -c 100000 >&2; echo end >&2; exit 3"), {"exit": 3}, "end\n"),
        (("sh", "-c", "kill -9 $$"), {"signal": 9}, ""),
        (("/no/such/command",), {"errno": 2}, ""),
        (("/tmp",), {"errno": 13}, ""),
    ],
)
def test_a_failure_says_how_and_what_was_said_last(
    program: Path, words: tuple[str, ...], answer: dict[str, int], said: str
) -> None:
    done = run(program, "--", *words)
    assert done.returncode == 77
    assert json.loads(done.stdout) == answer
    assert done.stderr.endswith(said)
    assert len(done.stderr) <= 4096


def test_failures_are_counted_on_request(program: Path) -> None:
    assert readings(program, "--seconds", "0", "--ignore-failure", "--", "false")["wall"]


@pytest.mark.usefixtures("looked_once")
def test_a_command_runs_here_with_the_variables_of_its_user(
    flowos: Flowos, tmp_path: Path, variables: dict[str, str]
) -> None:
    variables["MARK"] = "a b"
    (tmp_path / "here").touch()
    script = 'test "$MARK" = "a b" && test -f here && ! read line && sleep 0.02'
    shortly = ("--quick", "--minutes", "0.05")
    done = flowos("measure", *shortly, "--json", "--out", "page", "--", "sh", "-c", script)
    report = json.loads(done.stdout)["report"]
    walls = [v for s in report["samples"] if s["metric"] == "wall" for v in s["values"]]
    assert min(walls) >= 0.02
    assert {m["metric"] for m in report["measurements"]} >= {"wall", "user", "system", "max_rss"}
    assert report["run"]["request"]["commands"] == [["sh", "-c", script]]
    shown = flowos("show").stdout
    assert "Time of a run" in shown
    assert f"measured in {tmp_path}: sh -c" in shown
    assert "Time of a run" in (tmp_path / "page/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("measure", "--", "no-such-command"), "no such command 'no-such-command'"),
        (("measure", "--", "./no-such"), "no such command './no-such'"),
        (("measure", "--", "."), "is a folder"),
        (("measure", "--", "./plain"), "chmod +x"),
        (("measure", "--", ""), "an empty word"),
        (("measure", "--"), "no command after --"),
        (("measure", "sleep"), "flowos measure -- sleep"),
        (("measure", "--only", "clock", "--", "true"), "--only: not with a command"),
        (("measure", "--only", "command"), "no probe is called 'command'"),
        (("measure", "--pool", "p", "--", "true"), "--pool: not with a command"),
        (("measure", "--minutes", "0", "--", "true"), "above 0"),
        (("measure", "--ignore-failure"), "of a command of yours"),
        (("compare", "--command", "true"), "two or more"),
        (("compare", "--command", "true", "--command", "'a"), "no closing quotation"),
        (("compare", "--command", "true", "--command", ""), "an empty word"),
        (("compare", "--command", "true", "--command", "no-such-command"), "no such command"),
        (("compare", "last", "--command", "true", "--command", "true"), "RUN: not with"),
        (("compare", "--command", "true", "--command", "true", "--margin", "2"), "--margin"),
        (("compare", "--quick"), "only with --command"),
    ],
)
@pytest.mark.usefixtures("unseen_node")
def test_a_wrong_call_gets_one_clear_line(
    flowos: Flowos, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "plain").touch()
    done = flowos(*words, code=2)
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.usefixtures("looked_once")
def test_a_failing_command_is_no_time(flowos: Flowos) -> None:
    script = "echo first >&2; echo last >&2; exit 3"
    (label,) = command.labels((("sh", "-c", script),))
    done = flowos("measure", "--quick", "--", "sh", "-c", script, code=1)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        f"flowos measure: `{label}` failed with exit code 3: last"
    )
    assert json.loads(flowos("list", "--json").stdout) == []


@pytest.mark.usefixtures("looked_once")
def test_a_command_that_fails_later_is_told_with_what_was_measured(
    flowos: Flowos, tmp_path: Path
) -> None:
    script = "echo >> runs; sleep 0.1; test $(wc -l < runs) -lt 5 || exit 7"
    done = flowos("measure", "--quick", "--json", "--", "sh", "-c", script, code=1)
    assert "failed with exit code 7" in done.stderr
    report = json.loads(done.stdout)["report"]
    assert len(report["run"]["unmeasured"]) == 1
    assert (tmp_path / "runs").read_text().count("\n") == 5


@pytest.mark.usefixtures("looked_once")
def test_a_dry_run_shows_the_command_and_runs_it_not(flowos: Flowos, tmp_path: Path) -> None:
    done = flowos("measure", "--dry-run", "--", "touch", "a file")
    assert "-- touch 'a file'" in done.stdout
    both = ("--command", "touch a", "--command", "touch b")
    assert "-- touch b" in flowos("compare", *both, "--dry-run").stdout
    assert list(tmp_path.glob("a*")) == []


@pytest.mark.usefixtures("looked_once")
def test_a_command_that_is_five_times_slower_is_worse(flowos: Flowos, tmp_path: Path) -> None:
    both = ("--command", "sleep .01", "--command", "sleep .05")
    done = flowos("compare", *both, "--quick", "--json", code=1)
    answer = json.loads(done.stdout)
    assert (answer["answer"], answer["exit_code"]) == ("worse", 1)
    (slower,) = answer["verdicts"]
    assert (slower["base"], slower["other"], slower["answer"]) == (
        "sleep .01",
        "sleep .05",
        "slower",
    )
    assert 0 < slower["ratio"] < 1
    assert not (tmp_path / "flowos-report").exists()
    assert "Commands side by side" in flowos("show").stdout
    again = flowos("compare", "last", "--axis", "command", "--base", "sleep .05", "--json")
    assert {v["answer"] for v in json.loads(again.stdout)["verdicts"]} == {"faster"}


@pytest.mark.usefixtures("looked_once")
def test_a_command_that_fails_cannot_be_judged(flowos: Flowos) -> None:
    done = flowos("compare", "--command", "true", "--command", "false", code=2)
    assert done.stderr.splitlines()[-1] == (
        "flowos compare: `false` failed with exit code 1, and said nothing"
    )


@pytest.mark.usefixtures("looked_once")
def test_bare_beside_bare_runs_the_command_in_both(flowos: Flowos) -> None:
    twice = ("--env", "bare", "--env", "bare", "--quick", "--minutes", "0.07")
    done = flowos("measure", *twice, "--json", "--", "sleep", "0.01", codes=(0, 1))
    report = json.loads(done.stdout)["report"]
    if done.returncode:  # a busy machine has no time for a round
        (reason,) = {why["reason"] for _, why in report["run"]["unmeasured"]}
        assert re.fullmatch(
            r"the time was out before its turn"
            r"|it had too little time: its first round needs about \d+ s, and \d+ s were left",
            reason,
        )
        return
    assert {dict(s["case"]["levels"])["env"] for s in report["samples"]} == {"bare", "bare#2"}
    assert any("in bare#2" in line for line in report["findings"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_command_that_ignores_it(
    tmp_path: Path, variables: dict[str, str], looked_flowos: list[str], number: int
) -> None:
    running = subprocess.Popen(
        [*looked_flowos, "measure", "--", "sh", "-c", STUBBORN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=variables,
    )
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            assert time.monotonic() < until
            time.sleep(0.02)
        running.send_signal(number)
        out, said = running.communicate(timeout=PATIENCE_SECONDS)
    finally:
        running.kill()
    assert (running.returncode, out) == (128 + number, "")
    assert "nothing was measured" in said.splitlines()[-1]
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
