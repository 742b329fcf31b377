"""Every claim can be found and is run: the page of benchmarks, `make bench`, the files."""

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


@pytest.mark.parametrize("name", ["engines", "languages"])
@pytest.mark.parametrize("rounds", ["1", "0", "-3", "many"])
def test_too_few_rounds_are_refused_in_one_line(name: str, rounds: str) -> None:
    command = [sys.executable, str(ROOT / f"benchmarks/{name}.py"), f"--rounds={rounds}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = f"{name}.py: error: argument --rounds: '{rounds}': give 2 or more, for a median"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, said)


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
