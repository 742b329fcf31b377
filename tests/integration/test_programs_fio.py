"""fio_run.py with the real fio: the whole set, honest refusals, nothing left behind."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from flowos.model import Case, Exited, Outcome, Reading, Unmeasured
from flowos.probes import fio
from flowos.probes.fio import Fio

PROGRAM = Path(fio.__file__).parent / "programs" / "fio_run.py"
FIO = shutil.which("fio") or ""
pytestmark = pytest.mark.skipif(not FIO, reason="apt install fio")
MIB = 1 << 20


def argv(folder: Path, *words: str, size: int = 256 * MIB, seconds: str = "0.5") -> list[str]:
    start = [sys.executable, str(PROGRAM), "--folder", str(folder)]
    return [*start, "--bytes", str(size), "--seconds", seconds, *words]


def run(command: list[str]) -> Outcome:
    done = subprocess.run(command, capture_output=True, check=False, timeout=100)
    return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)


def read(outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
    return Fio().read(Case("fio"), outcome)


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """Takes fio's place: does what was told by `behave`, then runs the real fio, but briefly."""
    path = tmp_path / "stand-in"
    brief = "--ramp_time=0ms"
    path.write_text(
        f"""#!/bin/sh
. "{tmp_path}/behaviour"
case "$*" in *time_based*) exec {FIO} "$@" {brief};; esac
exec {FIO} "$@"
"""
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    behave(path, "")
    return path


def answer_with(stand_in: Path, words: str, jobs: object, code: int = 0) -> None:
    """Commands that hold these words are answered with this JSON; fio is not run."""
    text = json.dumps({"jobs": jobs})
    script = f"""case "$*" in *{words}*)
  for word; do case "$word" in --output=*) to=${{word#--output=}};; esac; done
  echo '{text}' > "$to"; exit {code};; esac"""
    behave(stand_in, script)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Reading, ...]]:
    """The folder of a whole run, and what was read."""
    folder = tmp_path_factory.mktemp("plain")
    readings = read(run(argv(folder)))
    assert not isinstance(readings, Unmeasured), readings
    return folder, readings


def behave(stand_in: Path, script: str) -> None:
    (stand_in.parent / "behaviour").write_text(script)


def test_the_whole_set_is_measured_and_nothing_is_left_behind(
    plain: tuple[Path, tuple[Reading, ...]],
) -> None:
    folder, readings = plain
    found = {(r.metric, dict(r.levels)["workload"], dict(r.levels)["iodepth"]) for r in readings}
    wanted = {("bandwidth", f"sequential {op}", "16") for op in ("read", "write")}
    wanted |= {
        ("iops", f"{kind} {op}", depth)
        for kind in ("random", "mixed")
        for op in ("read", "write")
        for depth in ("1", "16")
    }
    assert found >= wanted
    assert {(f"latency_{p}", *case[1:]) for case in wanted for p in ("p50", "p99")} <= found
    assert all(min(r.values) > 0 for r in readings)
    assert {dict(r.notes)["file_bytes"] for r in readings} == {str(256 * MIB)}
    assert len({(dict(r.levels)["engine"], dict(r.levels)["direct"]) for r in readings}) == 1
    assert list(folder.iterdir()) == []


def test_rates_and_latencies_of_depth_one_agree_with_each_other(
    plain: tuple[Path, tuple[Reading, ...]],
) -> None:
    """Little's law: one request at a time, each of them as long as the latency says."""
    _, readings = plain
    at = {(r.metric, *dict(r.levels).values()): r for r in readings}
    way = tuple(dict(readings[0].levels)[name] for name in ("engine", "direct"))
    rate = max(at[("iops", "random read", "1", *way)].values)
    typical = at[("latency_p50", "random read", "1", *way)].values[0]
    assert 0.2 < rate * typical < 1.5


def test_a_file_system_in_memory_is_noted(stand_in: Path) -> None:
    if shutil.disk_usage("/dev/shm").free < 1024 * MIB:
        pytest.skip("/dev/shm is too small")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        readings = read(run(argv(Path(folder), "--fio", str(stand_in), seconds="0.2")))
        assert list(Path(folder).iterdir()) == []
    assert not isinstance(readings, Unmeasured), readings
    assert all("in memory (tmpfs)" in dict(r.notes)["suspect"] for r in readings)


def test_an_engine_that_is_blocked_is_passed_over_for_all_jobs(
    tmp_path: Path, stand_in: Path
) -> None:
    behave(
        stand_in, 'case "$*" in *ioengine=libaio*) echo "fio: no such engine" >&2; exit 1;; esac'
    )
    readings = read(run(argv(tmp_path, "--fio", str(stand_in), seconds="0.2")))
    assert not isinstance(readings, Unmeasured), readings
    engines = {dict(r.levels)["engine"] for r in readings}
    assert engines <= {"io_uring", "psync"}
    assert len(engines) == 1


def test_refused_direct_io_falls_back_to_the_page_cache_and_says_so(
    tmp_path: Path, stand_in: Path
) -> None:
    behave(stand_in, 'case "$*" in *direct=1*) echo "fio: Invalid argument" >&2; exit 1;; esac')
    readings = read(run(argv(tmp_path, "--fio", str(stand_in), seconds="0.2")))
    assert not isinstance(readings, Unmeasured), readings
    assert {dict(r.levels)["direct"] for r in readings} == {"no"}
    assert all("the page cache answers" in dict(r.notes)["suspect"] for r in readings)


def test_no_engine_at_all_cannot_be_measured(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, 'echo "fio: engine blocked" >&2; exit 1')
    answer = read(run(argv(tmp_path, "--fio", str(stand_in), seconds="0.2")))
    assert isinstance(answer, Unmeasured)
    assert answer.reason.startswith("no I/O engine works in ")
    assert "engine blocked" in answer.reason


ANSWER = {"error": 0, "read": {"total_ios": 0}, "write": {"total_ios": 0}}
NO_WRITES = {**ANSWER, "read": {"total_ios": 1}}


@pytest.mark.parametrize(
    ("job", "code", "complaint"),
    [
        ({**ANSWER, "error": 38}, 0, "fio ended with 0"),
        (ANSWER, 0, "fio did no I/O at all"),
        (ANSWER, 1, "fio ended with 1"),
        ("no job", 0, "fio ended with 0"),
    ],
)
def test_json_that_looks_whole_does_not_hide_an_error(
    tmp_path: Path, stand_in: Path, job: object, code: int, complaint: str
) -> None:
    """Layout and trial are real; then fio answers as it did when io_uring was blocked."""
    answer_with(stand_in, "time_based", [job] if isinstance(job, dict) else job, code)
    answer = read(run(argv(tmp_path, "--fio", str(stand_in), seconds="0.2")))
    assert isinstance(answer, Unmeasured)
    assert complaint in answer.reason
    assert not list(tmp_path.glob("flowos-fio-*"))


def test_storage_that_stalls_is_given_more_time_once(tmp_path: Path, stand_in: Path) -> None:
    """At first fio's answer to the mix holds no writes, as when the device is busy with others."""
    answer_with(stand_in, "randrw*runtime=200ms", [NO_WRITES])
    readings = read(run(argv(tmp_path, "--fio", str(stand_in), seconds="0.2")))
    assert not isinstance(readings, Unmeasured), readings
    assert {dict(r.levels)["workload"] for r in readings} >= {"mixed read", "mixed write"}


def test_storage_that_never_answers_is_a_failure_that_names_the_job(
    tmp_path: Path, stand_in: Path
) -> None:
    answer_with(stand_in, "randrw", [NO_WRITES])
    answer = read(run(argv(tmp_path, "--fio", str(stand_in), seconds="0.2")))
    assert isinstance(answer, Unmeasured)
    assert "mixed write: nothing was done in 0.8 s" in answer.reason


def test_a_full_file_system_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        answer = read(run(argv(small)))
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert isinstance(answer, Unmeasured)
    assert answer.reason == f"{small} has room for a file of 32 MiB; 256 MiB are needed"
    assert "--scratch" in answer.remedy


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    answer = read(run(argv(tmp_path / "nowhere")))
    assert isinstance(answer, Unmeasured)
    assert answer.reason == f"cannot write in {tmp_path}/nowhere: No such file or directory"


def test_a_missing_fio_says_what_to_install(tmp_path: Path) -> None:
    answer = read(run(argv(tmp_path, "--fio", "/nowhere/fio")))
    assert answer == Unmeasured(reason="/nowhere/fio was not found", remedy="apt install fio")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_fio_and_removes_the_file(tmp_path: Path, number: signal.Signals) -> None:
    command = argv(tmp_path, "--fio", FIO, seconds="20")
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    wait_for(lambda: any(tmp_path.glob("flowos-fio-*/data")) and fios_in(tmp_path))
    child.send_signal(number)
    child.communicate(timeout=20)
    assert child.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert fios_in(tmp_path) == []


def fios_in(folder: Path) -> list[int]:
    """The processes whose command line names the folder, except the driver itself."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in line and line.startswith(FIO.encode()):
            found.append(int(entry.name))
    return found


def wait_for(happened: object, seconds: float = 20.0) -> None:
    assert callable(happened)
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
