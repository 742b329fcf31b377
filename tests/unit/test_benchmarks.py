"""Every claim can be found and is run: the README's table, `make bench`, the files."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
BENCHMARKS = {file.stem for file in (ROOT / "benchmarks").glob("[a-z]*.py")} - {"all"}


def test_the_readme_tells_of_every_benchmark_once() -> None:
    told = re.findall(
        r"^\| `benchmarks/(\w+)\.py` \| .+ \|$", (ROOT / "README.md").read_text(), re.M
    )
    assert sorted(told) == sorted(BENCHMARKS)


def test_make_bench_runs_every_benchmark_once() -> None:
    names = runpy.run_path(str(ROOT / "benchmarks/all.py"))["NAMES"]
    assert sorted(names) == sorted(BENCHMARKS)
