"""What no test of a pure room notices when it is changed: one number or operator at a time.

`python tools/mutants.py [--seconds S] [flowos.plan._trust flowos.model ...]`; without names all
pure rooms, for hours. cosmic-ray's operators change a module in memory. A forked process imports
it and runs the tests that coverage saw in that module, those of the changed line first, up to the
first failure. Each survivor is a missing test, or a change without meaning. Where time is limited
mutants are drawn.
"""

import argparse
import ast
import difflib
import hashlib
import importlib.util
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType

import hypothesis
import pytest
import scipy.stats  # noqa: F401 - what tests import and takes long, so that no process need
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider
from coverage import CoverageData

COVERAGE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flowos/mutants"
TESTS = {
    "model": ("tests/unit/model", "tests/unit/flow", "tests/contract"),
    "plan": ("tests/unit/plan", "tests/unit/flow"),
    "drivers": ("tests/unit/drivers", "tests/contract"),
    "probes": ("tests/unit/probes",),
    "report": ("tests/unit/report",),
}
OPERATORS = re.compile(
    r"BinaryOperator_((Add|Sub|Mul|Div)_(Add|Sub|Mul|Div)|(FloorDiv|Mod|Pow)_Mul)$"
    r"|ComparisonOperator_(Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|Lt_(LtE|GtE)|LtE_(Lt|Gt)"
    r"|Gt_(GtE|LtE)|GtE_(Gt|Lt))$"
    r"|UnaryOperator_Delete_|AddNot|True|With(And|Or|Break|Continue)|Number|Exception|ZeroIteration"
    r"|RemoveDecorator"
)
"""One of each kind: that others, such as shifts of floats, are noticed says nothing."""
OF_TYPES = re.compile(r"@(overload|dataclass|staticmethod|final)|TYPE_CHECKING|Literal\[")
"""Lines at which mypy looks."""
LARGE = re.compile(r"\d{4,}(\.\d*)?|[\d.]+e\d+")
"""Numbers of which one more or less says nothing."""


@dataclass(frozen=True)
class Mutant:
    """A module's source with one change, and the line that it is in."""

    line: int
    source: str


@dataclass(frozen=True)
class Seen:
    """Which tests ran a module, and which of them each of its lines; the seconds for all."""

    tests: frozenset[str]
    by_line: dict[int, frozenset[str]]
    seconds: float = 60.0

    def files(self) -> list[str]:
        return sorted({test.split("::")[0] for test in self.tests})


@dataclass
class Count:
    """How many mutants there are, were tried, and survived."""

    all: int = 0
    tried: int = 0
    survived: int = 0

    def __str__(self) -> str:
        share = f" ({self.survived / self.tried:.0%})" if self.tried else ""
        return f"{self.survived} of {self.tried} mutants survive{share}, {self.all} there are"


def modules(names: Sequence[str]) -> Iterator[Path]:
    """The files of these modules and rooms."""
    for name in names or [f"flowos.{room}" for room in TESTS]:
        path = Path("src", *name.split("."))
        found = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        if path.parts[2:3] == () or path.parts[2] not in TESTS or not found[0].exists():
            sys.exit(f"{name} is no module of a pure room: give flowos.{'|'.join(TESTS)}")
        yield from (file for file in found if "programs" not in file.parts)


def mutants(source: str) -> Iterator[Mutant]:
    lines, tree, meaning = source.splitlines(), get_ast(source), ast.dump(ast.parse(source))
    provider = OperatorProvider()
    for operator in (provider[name]() for name in provider if OPERATORS.search(name)):
        nodes = ((n, at) for n in ast_nodes(tree) for at, _ in operator.mutation_positions(n))
        for occurrence, (node, (line, _)) in enumerate(nodes):
            if OF_TYPES.search(lines[line - 1]) or LARGE.fullmatch(node.get_code().strip()):
                continue
            changed = mutate_code(source, operator, occurrence)
            if changed and has_other(changed, meaning):
                yield Mutant(line, changed)


def has_other(source: str, meaning: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) != meaning
    except SyntaxError:
        return False


@cache
def covered(room: str) -> CoverageData:
    """What each test of the room's ran of it; kept by the content of sources and tests."""
    file = COVERAGE / f"{room}-{digest('src/flowos', *TESTS[room])}"
    if not file.exists():
        COVERAGE.mkdir(parents=True, exist_ok=True)
        cover(room, file)
    data = CoverageData(str(file))
    data.read()
    return data


def digest(*folders: str) -> str:
    files = (file for folder in folders for file in sorted(Path(folder).rglob("*.py")))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def cover(room: str, file: Path) -> None:
    print(f"{room}: which test runs which line ...", flush=True)
    words = ["-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not no_cover", "--cov-report="]
    words += [f"--cov=src/flowos/{room}", "--cov-context=test"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *TESTS[room]],
        env={**os.environ, "COVERAGE_FILE": str(file)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        file.unlink(missing_ok=True)
        sys.exit(f"the tests fail as it is:\n{done.stdout[-2000:]}")


def seen(module: Path) -> Seen:
    contexts = covered(module.parts[2]).contexts_by_lineno(str(module.resolve()))
    by_line = {
        line: frozenset(name.split("|")[0] for name in names if name)
        for line, names in contexts.items()
    }
    return Seen(frozenset().union(*by_line.values()), by_line)


class Chosen:
    """Plugin of pytest: these tests, the line's own first; properties get the same examples."""

    def __init__(self, tests: frozenset[str], first: frozenset[str]) -> None:
        self.tests, self.first = tests, first

    def pytest_collection(self) -> None:
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", hypothesis.settings(), phases=phases, database=None, derandomize=True
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.tests),
            key=lambda item: item.nodeid not in self.first,
        )


class OneModule(SourceFileLoader):
    """Imports one module from this source; an editable install's finder comes after it."""

    def __init__(self, path: Path, source: str) -> None:
        parts = path.with_suffix("").parts[1:]
        super().__init__(".".join(parts[:-1] if parts[-1] == "__init__" else parts), str(path))
        self.source = source

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != self.name:
            return None
        folder = [str(Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=folder
        )

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - that of the base
        return compile(self.source, self.path, "exec")


def started(module: Path, mutant: Mutant, seen: Seen, scratch: Path) -> int:
    """The process that tries it; exit 0 where no test noticed."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        limit = int(seen.seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        signal.alarm(20 * limit)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        sys.meta_path.insert(0, OneModule(module, mutant.source))
        first = seen.by_line.get(mutant.line, frozenset())
        words = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={scratch / str(os.getpid())}"]
        words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", *seen.files()]
        said = pytest.main(words, plugins=[Chosen(seen.tests, first)])
        code = 0 if said in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else 1
    finally:
        os._exit(code)


def ended(scratch: Path) -> tuple[int, bool, float]:
    """Waits for one: its process, whether no test noticed, and its processor seconds."""
    pid, status, used = os.wait4(-1, 0)
    shutil.rmtree(scratch / str(pid), ignore_errors=True)
    return pid, status == 0, used.ru_utime + used.ru_stime


def measured(module: Path, seen: Seen, scratch: Path) -> Seen:
    """With the time that a mutant may take: more is noticed, too."""
    started(module, Mutant(0, module.read_text()), seen, scratch)
    _, passed, seconds = ended(scratch)
    if not passed:
        sys.exit(f"{module}: its tests fail as it is: {' '.join(seen.files())}")
    return Seen(seen.tests, seen.by_line, 3 * seconds + 5)


def tried(module: Path, until: float, scratch: Path) -> Count:
    """Shows the survivors of a module, and how far it is."""
    original = module.read_text()
    todo = list(mutants(original))
    random.Random(0).shuffle(todo)
    count, running, shown = Count(len(todo)), dict[int, Mutant](), time.monotonic()
    if not todo:
        return count
    known = measured(module, seen(module), scratch)
    while todo or running:
        if time.monotonic() > until:
            todo.clear()
        while todo and len(running) < 2:
            mutant = todo.pop()
            running[started(module, mutant, known, scratch)] = mutant
        if running:
            pid, survived, _ = ended(scratch)
            count.tried += 1
            mutant = running.pop(pid)
            if survived:
                count.survived += 1
                print(f"{module}:{mutant.line}\n{changed(original, mutant.source)}\n", flush=True)
        if time.monotonic() > shown + 15:
            print(f"{module}: {count} ...", flush=True)
            shown = time.monotonic()
    return count


def changed(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all of them")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    asked = parser.parse_args()
    until = time.monotonic() + asked.seconds
    files, total = list(modules(asked.modules)), Count()
    with TemporaryDirectory(prefix="mutants-") as folder:
        os.environ["XDG_DATA_HOME"] = folder
        for number, module in enumerate(files):
            share = (until - time.monotonic()) / (len(files) - number)
            count = tried(module, time.monotonic() + share, Path(folder))
            print(f"{module}: {count}\n", flush=True)
            total = Count(*(getattr(total, n) + getattr(count, n) for n in vars(count)))
    print(f"in all {total}")


if __name__ == "__main__":
    main()
