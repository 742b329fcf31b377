"""How many cores a slice holds: cpuset and quotas are respected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.engine.local._processors import gpu_count, memory_bytes, usable_cores, usable_gpus

ALLOWED = len(os.sched_getaffinity(0))


def tree(root: Path, version: int, files: dict[str, str]) -> Path:
    """A machine whose process is in cgroup /job/step, with these files."""
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    if version == 2:
        proc.joinpath("cgroup").write_text("0::/job/step\n")
        mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    else:
        proc.joinpath("cgroup").write_text("4:memory:/x\n3:cpu,cpuacct:/job/step\n0::/\n")
        mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu,cpuacct\n"
    proc.joinpath("mountinfo").write_text(mount)
    for name, text in files.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("version", "files", "cores"),
    [
        (2, {"job/step/cpu.max": "max 100000"}, ALLOWED),
        (2, {"job/step/cpu.max": "100000 100000"}, 1),
        (2, {"job/step/cpu.max": "150000 100000"}, 1),
        (2, {"job/step/cpu.max": "10000 100000"}, 1),
        (2, {"job/step/cpu.max": "max 100000", "job/cpu.max": "100000 100000"}, 1),
        (2, {"job/step/cpu.max": "99900000 100000"}, ALLOWED),
        (1, {"job/step/cpu.cfs_quota_us": "-1", "job/step/cpu.cfs_period_us": "100000"}, ALLOWED),
        (1, {"job/step/cpu.cfs_quota_us": "100000", "job/step/cpu.cfs_period_us": "100000"}, 1),
        (1, {"job/cpu.cfs_quota_us": "50000", "job/cpu.cfs_period_us": "50000"}, 1),
        (2, {}, ALLOWED),
    ],
)
def test_a_quota_bounds_the_cores(
    version: int, files: dict[str, str], cores: int, tmp_path: Path
) -> None:
    assert usable_cores(tree(tmp_path, version, files)) == cores


def test_a_machine_without_cgroups_has_its_cpuset(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == ALLOWED


def test_a_slice_holds_no_more_cores_than_its_cpuset() -> None:
    one = min(os.sched_getaffinity(0))
    program = (
        f"import os; os.sched_setaffinity(0, {{{one}}})\n"
        "import flowos as fo\n"
        "a = fo.flow_input('a', fo.any_)\n"
        "print(repr(fo.slice(a)))\n"
        "fo.slice(a, cores=2)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "places: 1>" in done.stdout
    assert "SliceRefused: slice: 2 cores asked for, this node has 1 for us" in done.stderr


def test_the_node_tells_its_memory_and_gpus() -> None:
    kilobytes = int(Path("/proc/meminfo").read_text().split()[1])
    assert memory_bytes() == kilobytes * 1024
    assert gpu_count() == len(list(Path("/dev").glob("nvidia[0-9]*")))


@pytest.mark.parametrize(
    ("listed", "gpus"),
    [
        (None, ("0", "1", "2")),
        ("", ()),
        ("2, 0,0", ("2", "0")),
        ("1,3,0", ("1",)),
        ("-1", ()),
        ("GPU-1f,MIG-2e,0", ("GPU-1f", "MIG-2e", "0")),
        ("NoDevFiles", ()),
    ],
)
def test_the_gpus_that_cuda_would_see_are_ours(
    listed: str | None, gpus: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowos.engine.local._processors.gpu_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert usable_gpus() == gpus
    monkeypatch.setattr("flowos.engine.local._processors.gpu_count", lambda: 0)
    assert usable_gpus() == ()
