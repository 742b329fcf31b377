"""Runs every benchmark, one after the other; takes hours, and needs a quiet machine.

`python benchmarks/all.py [NAME ...]`
The JSON of each benchmark is written to build/benchmarks/NAME.json and printed.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    "engine",
    "workers",
    "engines",
    "sort",
    "languages",
    "slices",
    "kept_results",
    "programs",
    "stream",
    "gemm",
    "linpack",
    "mpi",
    "fio",
    "parallel_files",
    "command",
    "trust",
    "aa",
    "environments",
    "boots",
    "leftovers",
    "feed",
    "training",
    "training_on_nodes",
    "solve",
    "solve_busy",
    "serve",
)


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    kept = HERE.parent / "build" / "benchmarks"
    kept.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names or NAMES if not _ran(name, kept)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _ran(name: str, kept: Path) -> bool:
    print(f"== {name}", flush=True)
    words = [sys.executable, str(HERE / f"{name}.py"), "--json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    (kept / f"{name}.json").write_text(done.stdout)
    print(done.stdout, flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
