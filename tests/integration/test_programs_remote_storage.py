"""Storage through a server: measured by the real nbdkit and fio, and nothing of them stays."""

import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path, PurePath

import pytest

from flowos.engine import utc
from flowos.model import (
    Effort,
    Exited,
    Facts,
    FileSystemFacts,
    MeasurementRequest,
    Outcome,
    Run,
    Tool,
)
from flowos.operations.measure import measure
from flowos.probes._fio_job import MIN_BYTES
from flowos.probes.remote_storage import RemoteStorage
from tests.waiting import PATIENCE_SECONDS, comes

TOOLS = {name: shutil.which(name) for name in ("fio", "nbdkit")}
pytestmark = pytest.mark.skipif(not all(TOOLS.values()), reason="apt install fio nbdkit")


def node() -> Facts:
    """Of this machine only what the probe asks for, and room for the smallest file."""
    return Facts(
        host="n",
        system="Linux",
        kernel="6",
        architecture="x86_64",
        cpu_model="?",
        cpus=(),
        allowed=(),
        memory_bytes=8 << 30,
        tools=tuple(Tool(name=n, version="1", path=PurePath(p)) for n, p in TOOLS.items() if p),
        storage=FileSystemFacts(file_system="ext4", free_bytes=2 * MIN_BYTES),
    )


def request(scratch: Path, effort: Effort = "quick") -> MeasurementRequest:
    return MeasurementRequest(probes=("remote_storage",), effort=effort, scratch=scratch)


def measured(scratch: Path) -> None:
    """The whole way of `flowos measure`."""
    run = Run(id="r", started=utc(), host="n", version="1", request=request(scratch), facts=node())
    measure(run, keep=lambda _: None, on_progress=lambda _: None, seconds=60)


def running(what: Path) -> list[str]:
    """Command lines of processes that name it."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if str(what) in line]


def sockets() -> set[Path]:
    """Folders that nbdkit makes for the sockets of its own choice, also for other tests."""
    return set(Path("/tmp").glob("nbdkit??????"))


def sockets_below(pid: int) -> set[Path]:
    """Those that clients name which this process has started, or which these have."""
    found = set()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                line = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
                found |= {Path(name) for name in re.findall(r"/tmp/nbdkit\w{6}\b", line)}
                found |= sockets_below(child)
    return found


def test_all_sides_measure_one_file_also_if_a_server_is_the_first(tmp_path: Path) -> None:
    before = sockets()
    probe = RemoteStorage()
    cases = probe.cases(node(), request(tmp_path, "normal"))
    assert isinstance(cases, tuple)
    for case in reversed(cases[:3]):
        words = [word.replace("{scratch}", str(tmp_path)) for word in probe.program(case).argv]
        done = subprocess.run(words, capture_output=True)
        found = Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)
        readings = probe.read(case, found)
        assert isinstance(readings, tuple), readings
        assert [reading.metric for reading in readings] == ["iops", "latency_p50", "latency_p99"]
        assert min(value for reading in readings for value in reading.values) > 0
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size == MIN_BYTES <= file.stat().st_blocks * 512
    assert not running(tmp_path)
    left = sockets() - before
    assert comes(lambda: not left & sockets())


PROGRAM = """
import sys
from pathlib import Path
from tests.integration.test_programs_remote_storage import measured
measured(Path(sys.argv[1]))
"""


def test_if_flowos_is_killed_its_server_ends_too(tmp_path: Path) -> None:
    own: set[Path] = set()
    with subprocess.Popen((sys.executable, "-c", PROGRAM, str(tmp_path))) as victim:

        def served() -> bool:
            own.update(sockets_below(victim.pid))  # of a client, so it is up
            return bool(own)

        assert comes(served, 6 * PATIENCE_SECONDS)
        victim.send_signal(signal.SIGKILL)
    assert comes(lambda: not running(tmp_path)), running(tmp_path)
    assert comes(lambda: not own & sockets())
