"""What no test of a pure room notices when it is changed: one number or operator at a time.

`python tools/mutants.py [--seconds S] [flowos.plan._trust flowos.model ...]`; without names all
pure rooms, for hours. cosmic-ray's operators change a module in memory. Two processes collect the
tests that coverage saw in that module; each change of a function is made in a fork of one of them,
which runs the tests of the changed line, the quickest first, up to the first failure. What survives
so, and each change of what runs at import, is tried in a process that imports the changed module:
the latter with the room's other tests too. A survivor is a missing test, or a change without
meaning. Where time is limited mutants are drawn.
"""

import argparse
import difflib
import functools
import gc
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from xml.etree import ElementTree

import hypothesis
import pytest
import scipy.stats  # noqa: F401 - what tests import and takes long, so that no process need
from changed_modules import OneModule, Place, changed_functions, place
from coverage import CoverageData
from mutations import Mutant, mutants

COVERAGE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flowos/mutants"
TESTS = {
    "model": ("tests/unit/model", "tests/unit/flow", "tests/contract"),
    "plan": ("tests/unit/plan", "tests/unit/flow"),
    "drivers": ("tests/unit/drivers", "tests/contract"),
    "probes": ("tests/unit/probes",),
    "report": ("tests/unit/report",),
}
SERVERS = 2
IMPORT_SECONDS = 30.0


@dataclass(frozen=True)
class Seen:
    """Which tests ran a module, and which of them each of its lines; the seconds of each test.

    Where no test ran a function of the module, all of the room's: what an import makes is used.
    """

    tests: frozenset[str]
    room: frozenset[str]
    by_line: dict[int, frozenset[str]]
    seconds: dict[str, float]

    def files(self) -> list[str]:
        return sorted({test.split("::")[0] for test in self.tests})

    def of(self, lines: Sequence[int]) -> list[str]:
        """The tests that ran one of these lines, or all; the quickest first."""
        found = frozenset[str]().union(*(self.by_line.get(line, ()) for line in lines))
        return sorted(found or self.tests, key=self.time_of)

    def others(self) -> list[str]:
        """The other tests of the room: they may use what an import of the module makes."""
        return sorted(self.room - self.tests, key=self.time_of)

    def time_of(self, test: str) -> float:
        return self.seconds.get(test, 1.0)

    def limit(self, test: str) -> float:
        """Processor seconds: what it took under coverage, and some. More is noticed, too."""
        return self.time_of(test) + 3


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


@cache
def seconds_of_tests(room: str) -> dict[str, float]:
    file = COVERAGE / f"{room}-{digest('src/flowos', *TESTS[room])}.xml"
    cases = ElementTree.parse(file).iter("testcase")
    return {
        f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}": float(
            case.attrib["time"]
        )
        for case in cases
    }


def digest(*folders: str) -> str:
    files = (file for folder in folders for file in sorted(Path(folder).rglob("*.py")))
    here = str(Path.cwd()).encode()  # what is covered is noted by its whole path
    return hashlib.sha256(b"\0".join([here, *map(Path.read_bytes, files)])).hexdigest()[:16]


def cover(room: str, file: Path) -> None:
    print(f"{room}: which test runs which line ...", flush=True)
    words = ["-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not no_cover", "--cov-report="]
    words += [f"--cov=src/flowos/{room}", "--cov-context=test", f"--junitxml={file}.xml"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *TESTS[room]],
        env={**os.environ, "COVERAGE_FILE": str(file)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        file.unlink(missing_ok=True)
        sys.exit(f"the tests fail as it is:\n{done.stdout[-2000:]}")


def seen(module: Path, slowest: float) -> Seen:
    contexts = covered(module.parts[2]).contexts_by_lineno(str(module.resolve()))
    by_line = {
        line: frozenset(name.rpartition("|")[0] for name in names if name)
        for line, names in contexts.items()
    }
    seconds = seconds_of_tests(module.parts[2])
    room = frozenset(test for test, took in seconds.items() if took <= slowest)
    ran = frozenset[str]().union(*by_line.values()) or room
    tests = frozenset(test for test in ran if seconds.get(test, 0.0) <= slowest)
    return Seen(tests, room, {line: own & tests for line, own in by_line.items()}, seconds)


class Chosen:
    """Plugin of pytest: these tests in this order; properties get the same examples."""

    def __init__(self, tests: Sequence[str], seen: Seen) -> None:
        self.rank, self.seen = {test: number for number, test in enumerate(tests)}, seen

    def pytest_collection(self) -> None:
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", hypothesis.settings(), phases=phases, database=None, derandomize=True
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, self.seen.limit(nodeid))
        signal.alarm(int(10 * self.seen.limit(nodeid)))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = (item for item in items if item.nodeid in self.rank)
        items[:] = sorted(chosen, key=lambda item: self.rank[item.nodeid])


@dataclass(frozen=True)
class Trial:
    """A mutant, the functions that it changes (None: what an import runs), and tests to notice.

    others: tests that are tried where the first notice nothing.
    """

    mutant: Mutant
    functions: dict[Place, CodeType] | None
    tests: tuple[str, ...]
    others: tuple[str, ...] = ()


def trials(module: Path, todo: Sequence[Mutant], seen: Seen) -> Iterator[Trial]:
    old = compile(module.read_text(), str(module), "exec")
    for mutant in todo:
        new = changed_functions(old, compile(mutant.source, str(module), "exec"))
        lines = [line for code in (new or {}).values() for *_, line in code.co_lines() if line]
        own = [mutant.line] if mutant.line in seen.by_line else lines
        others = () if new else tuple(seen.others())
        yield Trial(mutant, new or None, tuple(seen.of(own if new else [])), others)


class Server(Chosen):
    """Plugin of pytest: forks for each of these trials, and writes which survive to a pipe."""

    def __init__(
        self, module: Path, todo: Sequence[tuple[int, Trial]], seen: Seen, until: float, to: int
    ) -> None:
        super().__init__(seen.of([]), seen)
        self.file, self.todo, self.until, self.to = str(module.resolve()), todo, until, to

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = [f for f in gc.get_objects() if type(f) is FunctionType and self.owns(f)]
        caches = [f for f in gc.get_objects() if type(f) is functools._lru_cache_wrapper]
        gc.freeze()
        for number, trial in self.todo:
            if time.monotonic() > self.until:
                break

            def survives(trial: Trial = trial) -> bool:
                for function in functions:
                    code = function.__code__
                    function.__code__ = (trial.functions or {}).get(place(code), code)
                for each in caches:
                    each.cache_clear()
                return all_pass(session, [items[test] for test in trial.tests if test in items])

            _, status = os.waitpid(forked(survives), 0)
            os.write(self.to, f"{number} {int(status == 0)}\n".encode())
        return True

    def owns(self, function: FunctionType) -> bool:
        return function.__code__.co_filename == self.file


def all_pass(session: pytest.Session, items: Sequence[pytest.Item]) -> bool:
    for item, after in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return False
    return True


def forked(survives: Callable[[], bool]) -> int:
    """The process that asks this; exit 0 where it says yes."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        code = 0 if survives() else 1
    finally:
        os._exit(code)


def tested(plugin: Chosen, files: Sequence[str], scratch: Path) -> bool:
    """Whether the tests of this plugin pass, in this process, in silence."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    words = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={scratch / str(os.getpid())}"]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", *files]
    said = pytest.main(words, plugins=[plugin])
    return said in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def survives_import(module: Path, trial: Trial, seen: Seen, scratch: Path) -> bool:
    """Whether no test notices the changed module, which this process imports."""
    signal.setitimer(signal.ITIMER_PROF, IMPORT_SECONDS)
    sys.meta_path.insert(0, OneModule(module, trial.mutant.source))
    parts = (tests for tests in (trial.tests, trial.others) if tests)
    return all(
        tested(Chosen(tests, seen), sorted({t.split("::")[0] for t in tests}), scratch)
        for tests in parts
    )


def served(
    module: Path, todo: Sequence[tuple[int, Trial]], seen: Seen, until: float, scratch: Path
) -> Iterator[tuple[int, bool]]:
    """The number of each trial, as it ends, and whether it survived."""
    reads, writes = os.pipe()
    for first in range(SERVERS):
        server = Server(module, todo[first::SERVERS], seen, until, writes)
        forked(functools.partial(tested, server, seen.files(), scratch))
    os.close(writes)
    with os.fdopen(reads) as lines:
        for number, survived in map(str.split, lines):
            yield int(number), survived == "1"
    for _ in range(SERVERS):
        ended(scratch)


def imported(
    module: Path, todo: Sequence[tuple[int, Trial]], seen: Seen, until: float, scratch: Path
) -> Iterator[tuple[int, bool]]:
    left, running = list(reversed(todo)), dict[int, int]()
    while running or (left and time.monotonic() < until):
        while left and len(running) < SERVERS and time.monotonic() < until:
            number, trial = left.pop()
            survives = functools.partial(survives_import, module, trial, seen, scratch)
            running[forked(survives)] = number
        pid, survived = ended(scratch)
        yield running.pop(pid), survived


def ended(scratch: Path) -> tuple[int, bool]:
    """Waits for a process; whether no test noticed."""
    pid, status = os.wait()
    shutil.rmtree(scratch / str(pid), ignore_errors=True)
    return pid, status == 0


def tried(module: Path, until: float, slowest: float, scratch: Path) -> Count:
    """Shows the survivors of a module, and how far it is."""
    original, known = module.read_text(), seen(module, slowest)
    todo = list(mutants(original))
    random.Random(0).shuffle(todo)
    count, all_trials = Count(len(todo)), list(enumerate(trials(module, todo, known)))
    of_functions = [each for each in all_trials if each[1].functions]
    of_imports = [each for each in all_trials if not each[1].functions]
    survivors = list[tuple[int, Trial]]()
    halfway = (time.monotonic() + until) / 2 if of_imports else until
    for number, survived in served(module, of_functions, known, halfway, scratch):
        count.tried += not survived
        survivors += [all_trials[number]] if survived else []
    confirmed = imported(module, survivors, known, float("inf"), scratch)
    for number, survived in chain(confirmed, imported(module, of_imports, known, until, scratch)):
        count.tried += 1
        count.survived += survived
        if survived:
            mutant = todo[number]
            print(f"{module}:{mutant.line}\n{changed(original, mutant.source)}\n", flush=True)
    return count


def changed(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all mutants")
    parser.add_argument("--slowest", type=float, default=float("inf"), help="test, in seconds")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    asked = parser.parse_args()
    files, total = list(modules(asked.modules)), Count()
    for module in files:
        covered(module.parts[2])
    until = time.monotonic() + asked.seconds
    with TemporaryDirectory(prefix="mutants-") as folder:
        os.environ["XDG_DATA_HOME"] = folder
        for number, module in enumerate(files):
            share = (until - time.monotonic()) / (len(files) - number)
            count = tried(module, time.monotonic() + share, asked.slowest, Path(folder))
            print(f"{module}: {count}\n", flush=True)
            total = Count(*(getattr(total, n) + getattr(count, n) for n in vars(count)))
    print(f"in all {total}")


if __name__ == "__main__":
    main()
