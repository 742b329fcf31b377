"""Every claim can be found and is run: the page of benchmarks, `make bench`, the files."""

import argparse
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = {file.stem for file in (ROOT / "benchmarks").glob("[a-z]*.py")} - {"all"}


def test_the_page_of_benchmarks_has_each_of_them_once() -> None:
    told = re.findall(
        r"^\| `benchmarks/(\w+)\.py` \| .+ \|$",
        (ROOT / "docs/guide/benchmarks.md").read_text(),
        re.M,
    )
    assert sorted(told) == sorted(BENCHMARKS)


def test_make_bench_runs_every_benchmark_once() -> None:
    names = runpy.run_path(str(ROOT / "benchmarks/all.py"))["NAMES"]
    assert sorted(names) == sorted(BENCHMARKS)


@pytest.mark.parametrize(
    ("name", "option", "value", "why"),
    [
        ("engines", "--rounds", "1", "a whole number, 2 or more, for a median"),
        ("solve_busy", "--rounds", "1", "a whole number, 2 or more, for quartiles"),
        ("aa", "--simulated", "0", "a whole number, 1 or more"),
        ("training", "--workers", "2,-1", "a whole number, 0 or more"),
        ("training_on_nodes", "--round-trip-ms", "-1", "a number 0 or more"),
        ("feed", "--rounds", "0", "a whole number, 1 or more"),
        ("solve", "--rounds", "many", "a whole number, 1 or more"),
        ("feed/decode", "--files", "0", "a whole number, 1 or more"),
    ],
)
def test_a_number_that_nothing_is_measured_with_is_refused_in_one_line(
    name: str, option: str, value: str, why: str
) -> None:
    command = [sys.executable, str(ROOT / f"benchmarks/{name}.py"), f"{option}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = f"{Path(name).name}.py: error: argument {option}: '{value.split(',')[-1]}': give {why}"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, said)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("whole_number", {"1": 1, " 7": 7}, ["0", "-3", "1.5", "1e3", "", "²", "9" * 5000]),
        ("whole_numbers", {"4,5": [4, 5]}, ["", "4,", "4,0"]),
        ("positive", {"0.5": 0.5, "1e3": 1000.0}, ["0", "-1", "nan", "inf", "1,5", ""]),
        ("not_negative", {"0": 0.0, "2": 2.0}, ["-1e-9", "nan", "inf", "five"]),
    ],
)
def test_numbers_of_command_lines_are_read_or_refused(
    kind: str, good: dict[str, object], bad: list[str]
) -> None:
    found = runpy.run_path(str(ROOT / "benchmarks/_numbers.py"))[kind]
    read = found() if kind.startswith("whole") else found
    assert {text: read(text) for text in good} == good
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError, match=r"^'.{0,40}': give a "):
            read(text)


def test_no_benchmark_takes_any_number_but_a_seed() -> None:
    taken = [
        line.strip()
        for file in (ROOT / "benchmarks").rglob("*.py")
        for line in file.read_text().splitlines()
        if re.search(r"type=(int|float)\b", line)
    ]
    assert [line.partition(",")[0] for line in taken] == ['parser.add_argument("--seed"']


def test_a_rate_that_misses_its_claim_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    rate = runpy.run_path(str(ROOT / "benchmarks/aa.py"))["rate"]
    found = rate("called different", 1, 10, 0, 0.05)
    assert (found["claim"], found["holds"]) == ("0..0.05", False)
    assert found["low"] < found["rate"] < found["high"]
    assert rate("called different", 1, 20, 0, 0.05)["holds"]


def test_the_stated_error_rates_are_those_of_all_that_is_simulated_and_below_five_percent() -> None:
    """The rows are what `benchmarks/aa.py --table` printed."""
    kinds = runpy.run_path(str(ROOT / "benchmarks/_simulated_kinds.py"))["KINDS"]
    lines = (ROOT / "docs/comparisons.md").read_text().partition("## Error rates")[2].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")][2:]
    assert [row[0] for row in rows] == [kind.name for kind in kinds]
    for (name, equal, different, inconclusive, _), kind in zip(rows, kinds, strict=True):
        told = {"equal": float(equal), "slower": float(different)}
        assert told[next(iter(kind.wrong))] <= 5, name
        assert sum(told.values()) + float(inconclusive) == pytest.approx(100), name
