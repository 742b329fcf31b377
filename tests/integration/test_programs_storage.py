"""metadata.c and parallel_io.c: checked answers, one line for what is wrong, nothing left."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flowos.probes import metadata
from flowos.probes._base import CANNOT_MEASURE_HERE

PROGRAMS = Path(metadata.__file__).parent / "programs"
NAMES = ("metadata", "parallel_io")
SHORT = {
    "metadata": ("--items", "20", "--repetitions", "2"),
    "parallel_io": ("--bytes", "262144", "--transfer", "65536", "--repetitions", "2"),
}
LAYOUTS = {
    "metadata": (("--directory", "unique"), ("--directory", "shared")),
    "parallel_io": (("--files", "own"), ("--files", "shared")),
}
COUNT = {"metadata": "--processes", "parallel_io": "--clients"}
OPERATIONS = [
    *(f"file {phase}" for phase in ("create", "stat", "read", "remove")),
    *(f"directory {phase}" for phase in ("create", "stat", "remove")),
]
both = pytest.mark.parametrize("name", NAMES)
Compile = Callable[..., Path]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """A program, or one with a mistake: `right` in its source (or a header) is `wrong`."""
    folder = tmp_path_factory.mktemp("programs")
    done: dict[tuple[str, ...], Path] = {}

    def compile_(
        name: str, right: str = "", wrong: str = "", compiler: str = "gcc", *flags: str
    ) -> Path:
        key = (name, right, wrong, compiler, *flags)
        if key not in done:
            source = folder / f"{name}-{len(done)}.c"
            text = (PROGRAMS / f"{name}.c").read_text()
            assert right in text
            source.write_text(text.replace(right, wrong, 1) if right else text)
            done[key] = source.with_suffix("")
            argv = [compiler, "-O2", *flags, f"-I{PROGRAMS}", str(source), "-o", str(done[key])]
            subprocess.run(argv, check=True, capture_output=True)
        return done[key]

    return compile_


def run(program: Path, folder: Path, *words: str, direct: str = "no") -> Any:
    if "parallel_io" in program.name:
        words = ("--direct", direct, *words)
    argv = [str(program), "--folder", str(folder), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)


def readings(done: Any) -> list[dict[str, Any]]:
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)["readings"]
    return found


# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("clients", ["1", "2", "3"])
@both
def test_every_phase_has_a_rate_and_nothing_is_left(
    compiled: Compile, tmp_path: Path, name: str, clients: str, layout: int
) -> None:
    words = (*SHORT[name], *LAYOUTS[name][layout], COUNT[name], clients)
    found = readings(run(compiled(name), tmp_path, *words))
    levels = [level for r in found for level in r["levels"].values()]
    io = ["sequential write", "sequential read"]
    assert levels == (OPERATIONS if name == "metadata" else io)
    assert all(len(r["values"]) == 2 and min(r["values"]) > 0 for r in found)
    count = int(clients)
    done = {r["notes"].get("made", r["notes"].get("moved_bytes")) for r in found}
    assert done == {str(20 * count if name == "metadata" else 262144 * count)}
    assert list(tmp_path.iterdir()) == []


def test_files_with_content_are_written_and_compared(compiled: Compile, tmp_path: Path) -> None:
    words = (*SHORT["metadata"], "--bytes", "3901", "--directory", "shared")
    assert len(readings(run(compiled("metadata"), tmp_path, *words))) == len(OPERATIONS)


def test_direct_io_is_used_where_the_file_system_has_it(compiled: Compile, tmp_path: Path) -> None:
    done = run(compiled("parallel_io"), tmp_path, *SHORT["parallel_io"], direct="yes")
    if done.returncode == CANNOT_MEASURE_HERE:
        assert "client 0 cannot open a file by direct I/O" in done.stdout
    else:
        assert len(readings(done)) == 2


@both
def test_nothing_more_is_made_after_the_stonewall(
    compiled: Compile, tmp_path: Path, name: str
) -> None:
    """Each client does one at least, and what it did is what the other phases find."""
    many = {"metadata": ("--items", "10000"), "parallel_io": ("--bytes", str(64 << 20))}
    words = (*many[name], "--stonewall", "0.000001", "--repetitions", "1")
    found = readings(run(compiled(name), tmp_path, *words))
    done = {int(r["notes"].get("made", r["notes"].get("moved_bytes"))) for r in found}
    assert done <= {2, 3, 4} if name == "metadata" else done == {2 << 20}


@both
def test_no_repetition_begins_when_the_time_is_over(
    compiled: Compile, tmp_path: Path, name: str
) -> None:
    words = (*SHORT[name], "--repetitions", "50", "--seconds", "0.0001")
    found = readings(run(compiled(name), tmp_path, *words))
    assert {len(r["values"]) for r in found} == {1}


# --- checks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "right", "wrong", "complaint"),
    [
        (
            "metadata",
            'if (mkdir(path, 0755)) fm_refused("make a directory"',
            'if (number != 7 && mkdir(path, 0755)) fm_refused("make a directory"',
            "20 entries of kind directory expected, 19 found",
        ),
        (
            "metadata",
            "? rmdir(path) : unlink(path)",
            '? rmdir(path) : !strstr(path, ".7") && unlink(path)',
            "0 entries of kind file expected, 1 found",
        ),
        (
            "metadata",
            "write(file, content, (size_t)run->bytes)",
            "write(file, content + 1, (size_t)run->bytes)",
            "wrong data came from ",
        ),
        (
            "metadata",
            "found.st_size != run->bytes",
            "found.st_size != run->bytes + 1",
            "a file is not as it was made",
        ),
        (
            "parallel_io",
            "data[i] = stamp(client, at + 8 * i, repetition)",
            "data[i] = stamp(client, at + 8 * i - 4096, repetition)",
            "wrong data came from client",
        ),
        (
            "parallel_io",
            "if (workload == READ) check_stamps",
            "data[1] += workload == READ; if (workload == READ) check_stamps",
            "wrong data came from client",
        ),
        (
            "parallel_io",
            "if (workload == WRITE) put_stamps(run, client, at, repetition, data);",
            "if (workload == WRITE) put_stamps(run, client, at, 0, data);",
            "wrong data came from client",
        ),
    ],
)
def test_a_wrong_answer_is_one_line(
    compiled: Compile, tmp_path: Path, name: str, right: str, wrong: str, complaint: str
) -> None:
    content = ("--bytes", "100") if name == "metadata" else ()
    done = run(compiled(name, right, wrong), tmp_path, *SHORT[name], *content)
    said = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 1
    assert len(said) == 1, said
    assert said[0].startswith(f"{name}: client ")
    assert complaint in said[0]


@contextmanager
def small_disk(at: Path, options: str) -> Iterator[Path]:
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(at)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


FULL = "free some space, or choose another folder with --scratch"


@pytest.mark.parametrize(
    ("name", "options", "words", "reason"),
    [
        ("metadata", "nr_inodes=64", ("--items", "50"), "cannot create so many files"),
        ("metadata", "size=64k", ("--bytes", "3901"), "cannot write a file: No space left"),
        ("parallel_io", "size=64k", SHORT["parallel_io"], "cannot write so much: No space left"),
    ],
)
def test_a_full_disk_is_one_line_with_its_remedy(
    compiled: Compile,
    tmp_path: Path,
    name: str,
    options: str,
    words: tuple[str, ...],
    reason: str,
) -> None:
    with small_disk(tmp_path / "small", options) as folder:
        done = run(compiled(name), folder, *words)
    assert (done.returncode, done.stderr) == (CANNOT_MEASURE_HERE, "")
    said = json.loads(done.stdout)
    assert reason in said["cannot"]
    assert said["remedy"] == FULL


def test_a_disk_that_fills_up_meanwhile_ends_all_clients(compiled: Compile, tmp_path: Path) -> None:
    unaware = compiled(
        "parallel_io", "room.f_bavail * (double)room.f_frsize", "room.f_bavail * 1e30"
    )
    with small_disk(tmp_path / "small", "size=1m") as folder:
        done = run(unaware, folder, *SHORT["parallel_io"], "--clients", "4", "--bytes", "1048576")
    assert (done.returncode, done.stderr) == (CANNOT_MEASURE_HERE, "")
    said = json.loads(done.stdout)
    assert "cannot write a file: No space left on device" in said["cannot"]
    assert said["remedy"] == FULL


@both
def test_a_read_only_file_system_is_one_line_with_its_remedy(
    compiled: Compile, tmp_path: Path, name: str
) -> None:
    with small_disk(tmp_path / "small", "ro") as folder:
        done = run(compiled(name), folder, *SHORT[name])
    assert (done.returncode, done.stderr) == (CANNOT_MEASURE_HERE, "")
    said = json.loads(done.stdout)
    assert said["cannot"] == "client 0 cannot make a folder: Read-only file system"
    assert said["remedy"] == "choose another folder with --scratch"


@pytest.mark.parametrize(
    ("name", "words", "complaint"),
    [
        *((name, (), "client 0 cannot make a folder: No such file") for name in NAMES),
        *((name, ("--odd", "1"), f"{name}: --odd: there is no such option") for name in NAMES),
        *((name, ("--seconds", "0"), f"{name}: usage: ") for name in NAMES),
        *((name, ("--repetitions", "101"), f"{name}: usage: ") for name in NAMES),
        *(
            ("metadata", words, "metadata: usage: ")
            for words in (("--processes", "0"), ("--items", "-1"), ("--bytes", "1048577"))
        ),
        ("metadata", ("--directory", "odd"), "metadata: --directory: there is no such"),
        *(
            ("parallel_io", words, "parallel_io: usage: ")
            for words in (("--clients", "4097"), ("--transfer", "5000"), ("--bytes", "1048577"))
        ),
        ("parallel_io", ("--files", "odd"), "parallel_io: --files: there is no such"),
    ],
)
def test_odd_arguments_are_refused_in_one_line(
    compiled: Compile, tmp_path: Path, name: str, words: tuple[str, ...], complaint: str
) -> None:
    done = run(compiled(name), tmp_path / "none", *words)
    assert done.returncode in (1, CANNOT_MEASURE_HERE)
    said = (done.stdout + done.stderr).splitlines()
    assert complaint in said[0]
    assert len(said) == 1


# --- ends ------------------------------------------------------------------------------------

LONG = ("--repetitions", "100", "--seconds", "600")
SIZES = {"metadata": ("--items", "2000"), "parallel_io": ("--bytes", str(64 << 20))}


def clients_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(pid) for pid in children.split()]


@contextmanager
def started(program: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A long run of two clients, under way."""
    name = program.name.partition("-")[0]
    argv = [str(program), "--folder", str(folder), *LONG, *SIZES[name]]
    argv += ["--direct", "no"] if name == "parallel_io" else []
    pipe = subprocess.PIPE
    running = subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True)
    try:
        wait_for(lambda: len(clients_of(running.pid)) == 2 and any(folder.glob("*/*")))
        yield running, clients_of(running.pid)
    finally:
        running.kill()
        running.communicate()
        shutil.rmtree(folder)


def wait_for(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def is_over(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return True


@both
def test_if_one_client_is_killed_all_end_with_one_line(
    compiled: Compile, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with started(compiled(name), folder) as (running, clients):
        os.kill(clients[1], signal.SIGKILL)
        out, said = running.communicate(timeout=300)
        assert (running.returncode, out) == (1, "")
        assert said == f"{name}: client 1 was ended by: Killed\n"
        assert all(map(is_over, clients))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@both
def test_if_the_program_is_ended_its_clients_end(
    compiled: Compile, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with started(compiled(name), folder) as (running, clients):
        running.send_signal(number)
        assert running.wait(timeout=300) == -number
        wait_for(lambda: all(map(is_over, clients)))
