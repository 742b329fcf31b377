"""What integration tests share."""

import fcntl
import gc
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

import pytest

from flowos.cli import main
from flowos.engine import here
from flowos.model import Facts, Launch
from flowos.operations._facts import facts
from flowos.store import open_store
from tests.waiting import PATIENCE_SECONDS

Flowos = Callable[..., subprocess.CompletedProcess[str]]
MadeOnce = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """What a test launches takes its processes, descriptors and folders along."""
    here().run(Launch(argv=("true",)))
    gc.collect()
    gc.freeze()  # what other tests have loaded (torch, jax) is not searched again for each test
    before = what_is_there()
    yield
    until = time.monotonic() + PATIENCE_SECONDS
    while (left := what_is_there() - before) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left


def what_is_there() -> "Counter[str]":
    """Also what is on its way out: of a test before, or in the kernel."""
    folders = (path.name for path in here().folder().iterdir() if path.is_dir())
    return Counter([*open_descriptors(), *children(), *(f"folder {name}" for name in folders)])


def open_descriptors() -> list[str]:
    """Closed ones drop out, and so does that of the listing itself."""
    found = [path.name for path in Path("/proc/self/fd").iterdir()]
    return [f"descriptor {fd}" for fd in found if Path(f"/proc/self/fd/{fd}").is_symlink()]


def children() -> list[str]:
    """Command lines of processes below this one, zombies too."""
    pids = [
        pid
        for task in Path("/proc/self/task").iterdir()
        for pid in read_or_nothing(task / "children").split()
    ]
    return [f"process {read_or_nothing(Path('/proc', pid, 'cmdline'))}" for pid in pids]


def read_or_nothing(file: Path) -> str:
    """A thread or a process may end while one looks at it."""
    with suppress(OSError):
        return file.read_text()
    return ""


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}


@pytest.fixture
def flowos(tmp_path: Path, variables: dict[str, str]) -> Flowos:
    """The command in this process, which is started once: what it says and its exit code."""
    return checked(lambda words: called_here(words, tmp_path, variables))


@pytest.fixture
def flowos_process(tmp_path: Path, variables: dict[str, str]) -> Flowos:
    """The command in a process of its own, as a person's shell starts it."""

    def call(words: list[str]) -> subprocess.CompletedProcess[str]:
        flowos = (sys.executable, "-m", "flowos")
        return subprocess.run(
            [*flowos, *words], cwd=tmp_path, env=variables, capture_output=True, text=True
        )

    return checked(call)


@pytest.fixture
def unseen_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks at this machine, which takes seconds, fails."""
    monkeypatch.setattr(
        "flowos.operations.measure._run.facts", lambda _: pytest.fail("looked at the node")
    )


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Gives a folder of this name, filled by the first of pytest's processes that needs it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, fill: Callable[[Path], None]) -> Path:
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (base / name).exists():
                begun = tmp_path_factory.mktemp(name)
                fill(begun)
                begun.rename(base / name)
        return base / name

    return made


@pytest.fixture(scope="session")
def look_of_here(made_once: MadeOnce) -> Path:
    """A file with the facts of this machine, looked at once for all that check other things."""

    def look(folder: Path) -> None:
        (folder / "facts").write_bytes(pickle.dumps(facts()))

    return made_once("look", look) / "facts"


@pytest.fixture
def looked_once(monkeypatch: pytest.MonkeyPatch, look_of_here: Path) -> Facts:
    """Commands in this process take these facts; to collect them takes most of their time."""
    found: Facts = pickle.loads(look_of_here.read_bytes())
    monkeypatch.setattr("flowos.operations.measure._run.facts", lambda _: found)
    return found


@pytest.fixture
def looked_flowos(look_of_here: Path) -> list[str]:
    """The words of `flowos` as a process that takes these facts, for `measure` and `doctor`."""
    program = Path(__file__).with_name("looked_flowos.py")
    return [sys.executable, "-P", str(program), str(look_of_here)]


@pytest.fixture(scope="session")
def measured(made_once: MadeOnce) -> Path:
    """The folder in which clock and flops were measured: `said.json`, the report, and the store."""

    def measure(folder: Path) -> None:
        words = ["measure", "--quick", "--only", "clock,flops", "--json"]
        words += ["--store", str(folder / "runs.db")]
        for minutes in ("0.1", "0.5", "2"):  # a busy machine does not come to all cases
            (folder / "runs.db").unlink(missing_ok=True)
            done = called_here([*words, "--minutes", minutes], folder, dict(os.environ))
            assert done.returncode == 0, done.stderr
            measured = json.loads(done.stdout)["report"]["measurements"]
            levels = {tuple(level) for each in measured for level in each["case"]["levels"]}
            if {("cores", "1"), ("cores", str(len(os.sched_getaffinity(0))))} <= levels:
                break
        (folder / "said.json").write_text(done.stdout)

    return made_once("measured", measure)


@pytest.fixture(scope="session")
def two_runs(made_once: MadeOnce, measured: Path) -> Path:
    """A store with what was measured, and the same a percent slower as a second run, to be read."""

    def fill(folder: Path) -> None:
        shutil.copy(measured / "runs.db", folder)
        with open_store(str(folder / "runs.db")) as store:
            (run,) = store.runs()
            again = replace(run, id=f"{run.id[:-6]}{'0' * 6}")
            store.begin(again)
            for sample in store.samples(run):
                values = tuple(value * 1.01 for value in sample.values)
                store.keep(replace(sample, run=again.id, values=values))
            store.finish(again)

    return made_once("two-runs", fill) / "runs.db"


@pytest.fixture
def kept_runs(two_runs: Path, variables: dict[str, str]) -> list[str]:
    """The same two in this test's own store; their names, the newest first."""
    own = Path(variables["XDG_DATA_HOME"]) / "flowos/flowos.db"
    own.parent.mkdir(parents=True)
    shutil.copy(two_runs, own)
    with open_store(str(own)) as store:
        return [run.id for run in store.runs()]


def checked(call: Callable[[list[str]], subprocess.CompletedProcess[str]]) -> Flowos:
    def called(
        *words: str | Path, code: int = 0, codes: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        done = call([str(word) for word in words])
        assert done.returncode in (codes or (code,)), done.stderr
        return done

    return called


def called_here(
    words: list[str], folder: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """What `main` changes of the process is as before afterwards."""
    out, said = TextIOWrapper(BytesIO(), "utf-8"), TextIOWrapper(BytesIO(), "utf-8")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with (
        chdir(folder),
        patch.dict(os.environ, variables, clear=True),
        patch.object(sys, "path", [*sys.path]),
        redirect_stdout(out),
        redirect_stderr(said),
    ):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(str(end.code or 0))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(words, code, written(out), written(said))


def written(stream: TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
