"""The real fio by the probe's own commands: whole files, honest refusals, nothing left behind."""

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.engine import utc
from flowos.model import (
    Case,
    Exited,
    Facts,
    MeasurementRequest,
    Outcome,
    Reading,
    Run,
    Sample,
    Tried,
    Unmeasured,
)
from flowos.operations._facts import facts
from flowos.operations.measure import measure
from flowos.probes._fio_job import MIN_BYTES
from flowos.probes.fio import Fio

FIO = shutil.which("fio") or ""
pytestmark = pytest.mark.skipif(not FIO, reason="apt install fio")
PROBE = Fio()
IO_URING_SETUP, ENOSYS = 425, 38


@pytest.fixture(scope="module")
def node() -> Facts:
    """This node, with room for the smallest file only."""
    found = facts()
    return replace(found, storage=replace(found.storage, free_bytes=2 * MIN_BYTES))


@pytest.fixture(scope="module")
def laid_out(node: Facts, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A folder after the first case, and what fio said."""
    folder = tmp_path_factory.mktemp("scratch")
    return folder, run(cases(node)[0], folder)


def cases(node: Facts, scratch: Path = Path("/tmp")) -> tuple[Case, ...]:
    found = PROBE.cases(node, MeasurementRequest(effort="quick", scratch=scratch))
    assert not isinstance(found, Unmeasured), found
    return found


def words(case: Case, folder: Path) -> list[str]:
    return [word.replace("{scratch}", str(folder)) for word in PROBE.program(case).argv]


def run(case: Case, folder: Path, before: Callable[[], None] | None = None) -> Outcome:
    done = subprocess.run(
        words(case, folder),
        capture_output=True,
        check=False,
        timeout=300,
        preexec_fn=before,
    )
    return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)


def read(case: Case, outcome: Outcome) -> tuple[Reading, ...]:
    found = PROBE.read(case, outcome)
    assert not isinstance(found, Unmeasured), found
    return found


# --- the file --------------------------------------------------------------------------------


def test_the_first_case_writes_the_whole_file_with_no_hole_and_no_unwritten_extent(
    laid_out: tuple[Path, Outcome],
) -> None:
    """A hole, and an extent that is only reserved, would be answered without the device."""
    file = laid_out[0] / "flowos-data"
    assert file.stat().st_size == MIN_BYTES
    assert file.stat().st_blocks * 512 >= MIN_BYTES
    with file.open("rb") as opened:
        assert os.lseek(opened.fileno(), 0, os.SEEK_HOLE) == MIN_BYTES
        while block := opened.read(1 << 20):
            assert all(any(block[at : at + 4096]) for at in range(0, len(block), 4096))
    if filefrag := shutil.which("filefrag", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        said = subprocess.run([filefrag, "-v", file], capture_output=True, check=False, text=True)
        assert "unwritten" not in said.stdout


def test_writing_the_file_lies_outside_of_what_is_timed(
    node: Facts, laid_out: tuple[Path, Outcome]
) -> None:
    """The first case has windows for as long as it was to measure, as the next has; fewer where
    the machine stalls, for one is 50 ms."""
    folder, first = laid_out
    case = cases(node)[0]
    before, after = read(case, first)[0], read(case, run(case, folder))[0]
    assert 1 <= len(before.values) <= 5
    assert 1 <= len(after.values) <= 5


def test_the_file_is_written_once_for_all_cases(
    node: Facts, laid_out: tuple[Path, Outcome]
) -> None:
    folder, _ = laid_out
    file = folder / "flowos-data"
    made = file.stat().st_ino
    found = {}
    for case in cases(node)[1:]:
        for reading in read(case, run(case, folder)):
            swept = case.at(**dict(reading.levels))
            found[(reading.metric, swept.level("workload"), swept.level("iodepth"))] = reading
    assert file.stat().st_ino == made
    expected = {("bandwidth", "sequential write", "16")}
    expected |= {
        ("iops", f"{kind} {op}", depth)
        for kind in ("random", "mixed")
        for op in ("read", "write")
        for depth in ("1", "16")
    }
    assert found.keys() >= expected
    assert {
        (f"latency_{p}", *case[1:]) for case in expected for p in ("p50", "p99")
    } <= found.keys()
    assert all(max(reading.values) > 0 for reading in found.values())
    assert list(folder.iterdir()) == [file]


def test_rates_and_latencies_of_depth_one_agree_with_each_other(
    node: Facts, laid_out: tuple[Path, Outcome]
) -> None:
    """Little's law: one request at a time, each of them as long as the latency says. But for what a
    shared disk does: half of the requests may take ten times as long as the others."""
    case = next(c for c in cases(node) if c.at(workload="random read", iodepth="1") == c)
    rate, typical, _ = read(case, run(case, laid_out[0]))
    assert 0.02 < max(rate.values) * typical.values[0] < 15


# --- refusals --------------------------------------------------------------------------------


def forbid_io_uring() -> None:
    """As a container's seccomp profile does; for the process that is about to start."""
    load, equal, answer = 0x20, 0x15, 0x06
    refuse, allow = 0x00050000 | ENOSYS, 0x7FFF0000
    steps = [(load, 0, 0, 0), (equal, 0, 1, IO_URING_SETUP), (answer, 0, 0, refuse)]
    program = b"".join(struct.pack("HBBI", *step) for step in (*steps, (answer, 0, 0, allow)))
    held = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, by_filter, filters, 0, 0) == 0


def test_an_engine_that_the_kernel_blocks_is_unmeasured_never_zero(
    node: Facts, laid_out: tuple[Path, Outcome]
) -> None:
    allowed = replace(node, tried=(Tried(name="io_uring", works=True),))
    case = cases(allowed)[0]
    found = PROBE.read(case, run(case, laid_out[0], before=forbid_io_uring))
    assert isinstance(found, Unmeasured)
    assert found.reason.startswith("io_uring is blocked here: ")
    assert "seccomp" in found.remedy


def test_where_io_uring_is_known_to_be_blocked_libaio_measures(
    node: Facts, laid_out: tuple[Path, Outcome]
) -> None:
    case = cases(replace(node, tried=()))[0]
    assert case.level("engine") == "libaio"
    assert max(read(case, run(case, laid_out[0], before=forbid_io_uring))[0].values) > 0


def test_where_direct_io_is_known_to_be_refused_the_page_cache_is_measured_and_said(
    node: Facts, laid_out: tuple[Path, Outcome]
) -> None:
    refused = Tried(name="direct I/O", works=False)
    case = cases(replace(node, tried=(refused,)))[0]
    for reading in read(case, run(case, laid_out[0])):
        assert "the page cache answers" in dict(reading.notes)["suspicious"]


def test_a_file_system_in_memory_is_noted(node: Facts) -> None:
    if shutil.disk_usage("/dev/shm").free < 4 * MIN_BYTES:
        pytest.skip("/dev/shm is too small")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        there = replace(node, storage=facts(MeasurementRequest(scratch=Path(folder))).storage)
        case = cases(replace(there, storage=replace(there.storage, free_bytes=2 * MIN_BYTES)))[0]
        readings = read(case, run(case, Path(folder)))
    assert all("in memory (tmpfs)" in dict(r.notes)["suspicious"] for r in readings)


@contextmanager
def mounted(at: Path, kind: str, *options: str) -> Iterator[None]:
    at.mkdir()
    command = ["mount", "-t", kind, *options, "none", str(at)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


def test_a_file_system_without_direct_io_is_one_clear_line(node: Facts, tmp_path: Path) -> None:
    believed = replace(node, tried=())
    with mounted(tmp_path / "ram", "ramfs"):
        case = cases(believed)[0]
        found = PROBE.read(case, run(case, tmp_path / "ram"))
    assert isinstance(found, Unmeasured)
    assert found.reason.startswith("direct I/O is refused: ")


def test_a_disk_that_fills_up_costs_its_case_and_leaves_no_file_full_of_holes(
    node: Facts, tmp_path: Path
) -> None:
    """fio would read the holes that it left, at a rate of no device."""
    small = tmp_path / "small"
    with mounted(small, "tmpfs", "-o", "size=64m"):
        result, samples = measured(node, small)
    assert not samples
    fio = {case: why for case, why in result.unmeasured if case.probe == "fio"}
    assert len(fio) == 8
    for why in fio.values():
        assert why.reason == "no room for a file of 256 MiB: No space left on device"
        assert "--scratch" in why.remedy


def measured(node: Facts, scratch: Path) -> tuple[Run, list[Sample]]:
    """The whole way of `flowos measure`, with facts that hold a mistake about the room."""
    samples: list[Sample] = []
    request = MeasurementRequest(probes=("fio",), effort="quick", scratch=scratch)
    asked = Run(id="r", started=utc(), host="n", version="1", request=request, facts=node)
    return measure(asked, keep=samples.append, on_progress=lambda _: None, seconds=400), samples


# --- ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_file_is_written_leaves_none_half_written(
    node: Facts, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "flowos-data"
    case = cases(replace(node, storage=replace(node.storage, free_bytes=None)))[0]
    for _ in range(5):
        child = subprocess.Popen(words(case, tmp_path), stdout=subprocess.DEVNULL)
        wait_for(lambda: file.exists() and file.stat().st_blocks > 0)
        child.send_signal(number)
        assert child.wait(timeout=300) != 0
        if not file.exists():
            return
        whole = int(case.detail("file_bytes"))  # it was ready before the signal: once more
        assert file.stat().st_size == whole <= file.stat().st_blocks * 512
        file.unlink()
    pytest.fail("it was never caught while it wrote")


def wait_for(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)
