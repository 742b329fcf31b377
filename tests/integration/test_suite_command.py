"""`flowos measure --suite`: what it plans, and that it goes on after it was killed."""

import csv
import html
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowos.probes.suites import SUITES
from flowos.report import published
from flowos.store import open_store
from tests.waiting import PATIENCE_SECONDS

Flowos = Callable[..., subprocess.CompletedProcess[str]]
TINY = Path(__file__).with_name("tiny_suite.py")


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.usefixtures("looked_once")
def test_each_suite_says_of_each_figure_what_will_run_or_why_not(flowos: Flowos, name: str) -> None:
    lines = flowos("measure", "--suite", name, "--dry-run", "--quick").stdout.splitlines()
    assert all(len(line) <= 120 for line in lines)
    words = " ".join(" ".join(lines).split())
    plan = json.loads(flowos("measure", "--suite", name, "--dry-run", "--quick", "--json").stdout)
    assert [f["number"] for f in plan["figures"]] == [f.number for f in SUITES[name].figures]
    for figure in plan["figures"]:
        assert figure["probes"] or figure["lacking"], figure
        number, printed = figure["number"], figure["published_numbers"]
        assert printed == sum(each.figure == number for each in published(name).numbers)
        of_them = f"{printed or 'no'} number{'s' * (printed != 1)}"
        assert f"{figure['title']} ({of_them} in the paper's text)" in words
        assert any(line.startswith((f"figure {number}:", f"{number}:")) for line in lines)
    steps = plan["steps"]
    assert all(step["cases"] and step["seconds"] > 0 and not step["done"] for step in steps)
    assert plan["seconds"] == pytest.approx(sum(step["seconds"] for step in steps))
    assert plan["seconds"] <= 15 * 60


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--suite", "abc"), "no suite is called 'abc'; the suites are aaic, abci, reads, "),
        (("--suite", "fic", "--only", "9"), "suite fic has no figure '9'; it has 4, 5, table 2"),
        (("--again",), "--again is of a suite: give --suite NAME"),
        (("--suite", "abc", "--pool", "local"), "no suite is called 'abc'"),
        (("--suite", "fic", "--pool", "local", "--deployments", "2"), "--deployments and --betwee"),
        (("--suite", "fic", "--nodes", "2"), "--nodes and --between are of a pool: give --pool"),
        (("--suite", "fic", "--minutes", "0"), "--minutes 0.0: give a number above 0 and below"),
        (("--minutes", "1e400"), "--minutes inf: give a number above 0 and below 1e+300"),
        (("--minutes", "1e308"), "--minutes 1e+308: give a number above 0 and below 1e+300"),
        (("--minutes", "nan"), "--minutes nan: give a number above 0 and below 1e+300"),
        (("--pool", "local", "--between", "inf"), "inf: give seconds, from 0 to below 1e6"),
        (("--only", "straem"), "; did you mean 'stream'?"),
        (
            ("--suite", "fic", "--junit", "x"),
            "--junit: not with --suite; it is of --check BASELINE",
        ),
        (
            ("--suite", "fic", "--pool", "no"),
            "no pool 'no' in flowos.toml, which is not there; pools are l",
        ),
        (("--suite", "abcx"), "; did you mean 'abci'?"),
        (("--suite", "fic", "--only", "tabel 2"), "; did you mean 'table 2'?"),
        (("--suite", "aaic", "--env", "no/such.sqfs"), "no/such.sqfs"),
        (("--out", ""), "argument --out: it is empty: give one, or leave the option out"),
        (("--suite", "fic", "--out", "/proc/x"), "the report cannot be written to /proc/x"),
    ],
)
@pytest.mark.usefixtures("looked_once")
def test_what_cannot_be_is_one_line(flowos: Flowos, words: tuple[str, ...], complaint: str) -> None:
    done = flowos("measure", *words, code=2)
    assert complaint in done.stderr.splitlines()[-1]
    assert done.stdout == ""


@pytest.fixture
def tiny(
    tmp_path: Path, variables: dict[str, str], look_of_here: Path
) -> Callable[..., "subprocess.Popen[str]"]:
    def started(*more: str) -> "subprocess.Popen[str]":
        words = ["measure", "--suite", "tiny", "--scratch", str(tmp_path), "--json", *more]
        path = os.pathsep.join((str(TINY.parents[2]), os.environ.get("PYTHONPATH", "")))
        return subprocess.Popen(
            [sys.executable, str(TINY), *words],
            cwd=tmp_path,
            env={**variables, "PYTHONPATH": path, "FLOWOS_TEST_LOOK": str(look_of_here)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return started


def test_a_suite_that_was_killed_goes_on_where_it_was(
    tiny: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    killed = tiny()
    until = time.monotonic() + PATIENCE_SECONDS
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.05)
    page = tmp_path / "flowos-report" / "suite.html"
    assert "No number yet (second): </b>it was not measured yet." in page.read_text()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (tmp_path / "go").touch()
    first = _runs(tmp_path)
    assert [probe for probe, _ in first] == ["first"]

    out, said = tiny().communicate()
    assert "second, 1 of 1, for figure 2: about " in said
    assert [probe for probe, _ in _runs(tmp_path)] == ["second", "first"]
    assert _runs(tmp_path)[1:] == first
    one, two, three = json.loads(out)["figures"]
    assert one["runs"] == [first[0][1]]
    (row,) = one["published"]
    assert (row["ours"]["median"], row["ratio"]) == (3.0, 0.5)
    assert two["measurements"]
    assert three["lacking"][0]["reason"] == "it needs a GPU"
    whole = page.read_text()
    assert "2 of 3 figures have numbers of this machine; 1 cannot be measured here." in whole
    assert json.loads(page.with_suffix(".json").read_text()) == json.loads(out)
    _check_table(page.with_suffix(".csv"), row)

    again, said = tiny().communicate()
    assert "measured already" in said
    assert json.loads(again) == json.loads(out)
    assert len(_runs(tmp_path)) == 2


def test_a_figure_has_what_its_runs_found_also_those_of_before(
    tiny: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    for words in (("--only", "1"), ()):
        out, said = tiny(*words).communicate()
        one, *others = json.loads(out)["figures"]
        assert one["findings"] == [{"probe": "first", "finding": "1 gear was tried"}], said
    assert [each["findings"] for each in others] == [
        [{"probe": "second", "finding": "1 gear was tried"}],
        [],
    ]
    page = (tmp_path / "flowos-report/suite.html").read_text()
    assert page.count("Findings of ") == 2


def test_a_case_that_failed_is_named_below_its_figure_as_in_the_report_of_its_run(
    tiny: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    for name in ("go", "slips"):
        (tmp_path / name).touch()
    out, said = tiny("--only", "1").communicate()
    (one,) = json.loads(out)["figures"]
    assert len(one["measurements"]) == 1, said
    (gap,) = one["gaps"]
    assert (gap["probe"], gap["case"]) == ("first", "first gear=9")
    assert "the gear slips" in gap["reason"]
    page = (tmp_path / "flowos-report/suite.html").read_text()
    of_run = (tmp_path / "flowos-report/runs/first/report.html").read_text()
    row = "<strong>first: gear 9</strong> - " + html.escape(gap["reason"])
    for shown in (page, of_run):
        _, listed = shown.split("<h3>Not measured</h3>")
        assert row in listed.partition("</ul>")[0]
    (tmp_path / "slips").unlink()
    whole, _ = tiny().communicate()
    assert [each["gaps"] for each in json.loads(whole)["figures"]] == [[gap], [], []]


def test_a_suite_that_measured_nothing_is_a_failure(
    tiny: Callable[..., "subprocess.Popen[str]"],
) -> None:
    done = tiny("--minutes", "1e-9")
    out, said = done.communicate()
    assert not any(figure.get("measurements") for figure in json.loads(out)["figures"]), said
    assert done.returncode == 1, said


def test_a_suite_is_measured_on_nodes_of_a_pool_apart_from_that_of_this_machine(
    tiny: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    out, said = tiny("--pool", "local", "--nodes", "1").communicate()
    one, two, _ = json.loads(out)["figures"]
    assert one["measurements"], said
    assert two["measurements"]
    with open_store(str(tmp_path / "data/flowos/flowos.db")) as store:
        places = [run.deployment for run in store.runs()]
    assert [place.pool for place in places if place] == ["local", "local"]
    assert places[0] == places[1], "its nodes are held once"
    node = places[0].nodes[0].name if places[0] else ""
    page = (tmp_path / "flowos-report/suite.html").read_text()
    assert f"{one['runs'][0]}, on {node}" in page
    assert "measured already" in tiny("--pool", "local", "--nodes", "1").communicate()[1]


def test_a_suite_whose_nodes_are_lost_is_a_failure_and_says_how_to_go_on(
    tiny: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    script = '[pools.two]\nkind = "fake"\nnodes = 1\nscript = ["end after 5"]\n'
    (tmp_path / "flowos.toml").write_text(script)
    done = tiny("--pool", "two", "--nodes", "1")
    said = done.communicate()[1]
    assert "its slice ended after 5 s: the same command measures what is left" in said
    assert done.returncode == 1, said


def _runs(folder: Path) -> list[tuple[str, str]]:
    """(probe, id) of the runs in the store that ended, the newest first."""
    with open_store(str(folder / "data/flowos/flowos.db")) as store:
        return [
            (run.request.suite.probe, run.id)
            for run in store.runs()
            if run.ended and run.request.suite
        ]


def _check_table(file: Path, number: dict[str, Any]) -> None:
    """number: the one that the paper has, as the JSON says it."""
    with file.open(newline="") as text:
        published, *_, lacking = csv.DictReader(text)
    assert (float(published["measured"]), float(published["ratio"])) == (3.0, 0.5)
    there = (str(number["value"]), number["where"])
    assert (published["published"], published["source"]) == there
    assert (lacking["figure"], lacking["not_measured"]) == ("3", "it needs a GPU")
