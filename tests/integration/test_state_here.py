"""The machine's state: counters read from recorded trees and here, the spinning program, and both
together with a planted disturber."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flowos.engine import Look, state_between
from flowos.engine.local._cgroups import cpu_cgroups
from flowos.engine.local._state import look
from flowos.model import Exited, Facts, Outcome, Unmeasured, Usage
from flowos.operations._facts import facts
from flowos.probes import state

ROOT = Path(__file__).parents[2]
SOURCE = Path(state.__file__).parent / "programs" / "state.c"
CPU_LINE = "cpu  1000 200 300 5000 60 7 8 50 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"


def seen(**counters: float | None) -> Look:
    known: dict[str, float | None] = {
        "at": 0,
        "ours": 0,
        "busy": 0,
        "idle": 0,
        "steal": 0,
        "throttled": 0,
        "load": 0,
    }
    return Look(**{**known, **counters})  # type: ignore[arg-type]


def tree(root: Path, **files: str) -> Path:
    """A root folder with these files; `__` in a name stands for a slash."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_work_of_others_is_what_is_neither_ours_nor_idle() -> None:
    state = state_between(seen(), seen(at=2.0, ours=1.5, busy=3.5, idle=0.5))
    assert state.others_cpus == pytest.approx(1.0, abs=0.02)


def test_what_lies_within_the_error_of_counting_ticks_is_nobodys_work() -> None:
    assert state_between(seen(), seen(at=0.1, ours=0.1, busy=0.12)).others_cpus == 0


def test_a_launch_that_was_no_child_of_ours_counts_as_ours_by_its_usage() -> None:
    used = Usage(user_seconds=2.5, system_seconds=0.5)
    after = seen(at=2.0, ours=0.1, busy=3.0, idle=1.0)
    assert state_between(seen(), after, used).others_cpus == 0


def test_the_steal_share_is_of_the_time_of_all_cpus() -> None:
    assert state_between(seen(), seen(at=2.0, busy=3.0, idle=0.8, steal=0.2)).steal_share == 0.05


def test_what_cannot_be_read_is_unknown_and_not_zero(tmp_path: Path) -> None:
    nothing = look(tmp_path)
    assert (nothing.busy, nothing.idle, nothing.steal) == (None, None, None)
    assert (nothing.throttled, nothing.load) == (None, None)
    state = state_between(nothing, nothing)
    assert (state.others_cpus, state.steal_share, state.load) == (None, None, None)
    assert state.throttled_seconds is None


def test_the_counters_of_proc_are_read_in_seconds(tmp_path: Path) -> None:
    found = look(tree(tmp_path, proc__stat=CPU_LINE, proc__loadavg="1.25 0.9 0.5 1/9 42\n"))
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert found.busy == pytest.approx(1515 * tick)
    assert found.idle == pytest.approx(5060 * tick)
    assert found.steal == pytest.approx(50 * tick)
    assert found.load == 1.25


V2 = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = "32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
HYBRID = V1.format(top="/") + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


def test_cgroup_v2_quotas_count_at_every_level_up_to_the_mount(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        proc__self__cgroup="0::/user.slice/job\n",
        proc__self__mountinfo=V2,
        **{
            "sys__fs__cgroup__user.slice__cpu.stat": "nr_throttled 3\nthrottled_usec 250000\n",
            "sys__fs__cgroup__user.slice__job__cpu.stat": "usage_usec 9\nthrottled_usec 500000\n",
            "sys__fs__cgroup__cpu.stat": "usage_usec 9\n",
        },
    )
    assert look(root).throttled == pytest.approx(0.75)


def test_cgroup_v1_counts_nanoseconds_and_the_unified_half_of_a_hybrid_is_read_too(
    tmp_path: Path,
) -> None:
    root = tree(
        tmp_path,
        proc__self__cgroup="3:cpu,cpuacct:/job\n2:memory:/other\n0::/\n",
        proc__self__mountinfo=HYBRID,
        **{
            "sys__fs__cgroup__cpu,cpuacct__job__cpu.stat": "throttled_time 500000000\n",
            "sys__fs__cgroup__cpu,cpuacct__cpu.stat": "throttled_time 0\n",
            "sys__fs__cgroup__unified__cpu.stat": "throttled_usec 1000\n",
        },
    )
    assert look(root).throttled == pytest.approx(0.501)


def test_in_a_container_the_mounted_part_of_the_hierarchy_is_ours(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        proc__self__cgroup="3:cpu,cpuacct:/docker/abc\n",
        proc__self__mountinfo=V1.format(top="/docker/abc"),
        **{"sys__fs__cgroup__cpu,cpuacct__cpu.stat": "throttled_time 2000000000\n"},
    )
    assert look(root).throttled == 2.0


def test_a_cgroup_mounted_beside_ours_is_read_at_its_top(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        proc__self__cgroup="0::/somewhere/else\n",
        proc__self__mountinfo=V2.replace(" / ", " /pod ", 1),
        **{"sys__fs__cgroup__cpu.stat": "throttled_usec 3000000\n"},
    )
    assert look(root).throttled == 3.0


def test_here_the_time_goes_on_and_a_busy_process_of_others_is_seen() -> None:
    until = time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            found = state_between(look(), after_a_while())
            while not (found.others_cpus or 0) > 0.2 and time.monotonic() < until:
                found = state_between(look(), after_a_while())
        finally:
            busy.kill()
    assert found.others_cpus is not None
    assert found.others_cpus > 0.2
    assert found.load is not None


def after_a_while() -> Look:
    time.sleep(0.8)
    return look()


@contextmanager
def quota() -> Iterator[Path]:
    """A cgroup under ours with a quota of 0.1 cpu; skips the test where none can be made."""
    made: Path | None = None
    for parent in cpu_cgroups(Path("/")):
        folder = parent / f"flowos-test-{os.getpid()}"
        try:
            folder.mkdir()
            made = folder
            v1 = (folder / "cpu.cfs_quota_us").exists()
            limit, words = ("cpu.cfs_quota_us", "10000") if v1 else ("cpu.max", "10000 100000")
            (folder / limit).write_text(words)
            break
        except OSError:
            if made is not None:
                made.rmdir()
                made = None
    if made is None:
        pytest.skip("no cgroup with a cpu quota can be made here")
    try:
        yield made
    finally:
        made.rmdir()


def test_here_a_quota_shows_as_throttled_time() -> None:
    program = (
        "from flowos.engine import here, state_between; import time; before = here().look()\n"
        "def throttled(): return state_between(before, here().look()).throttled_seconds or 0\n"
        "end = time.time() + 200\n"
        "while time.time() < end and not throttled() > 0.1: pass\n"
        "print(throttled())"
    )
    with quota() as cgroup:
        enter = f"echo $$ > {cgroup}/cgroup.procs && exec \"$0\" -c '{program}'"
        words = ["sh", "-c", enter, sys.executable]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    assert float(done.stdout) > 0.1


COMPILERS = [c for c in ("gcc", "clang", "clang-16") if shutil.which(c)]


@pytest.fixture(scope="module", params=COMPILERS)
def binary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("state") / "state")
    warnings = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
    words = [request.param, "-O2", "-pthread", *warnings, str(SOURCE), "-o", made]
    subprocess.run(words, check=True)
    return made


@pytest.fixture(scope="module")
def here() -> Facts:
    return facts()


def run(*words: str) -> Outcome:
    done = subprocess.run(words, capture_output=True, check=False, timeout=300)
    return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)


def test_the_spinning_program_answers_for_the_cpus_of_this_machine(
    binary: str, here: Facts
) -> None:
    program = state.program(here)
    assert not isinstance(program, Unmeasured)
    spin = state.read(run(binary, *program.argv))
    assert isinstance(spin, state.Spin)
    assert 1e8 < spin.clock_hz < 1e10
    assert 1 < spin.add_imul_ratio < 10
    assert spin.scaling > 0
    assert 0 <= spin.starved_share < 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "usage: state --cpus LIST"),
        (("--cpus",), "usage: state --cpus LIST"),
        (("--cpus", "x"), "--cpus x: "),
        (("--cpus", "8191"), "cannot run on cpu 8191"),
    ],
)
def test_a_wrong_call_of_the_spinning_program_is_one_clear_line(
    binary: str, words: tuple[str, ...], complaint: str
) -> None:
    outcome = run(binary, *words)
    assert outcome.end == Exited(1)
    assert outcome.stderr.decode().startswith(complaint)
    assert outcome.stderr.count(b"\n") == 1


def test_planted_disturbers_are_marked() -> None:
    trust = str(ROOT / "benchmarks" / "trust.py")
    words = [sys.executable, trust, "--trials", "1", "--units", "50"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    rates = {r["kind"]: r for r in json.loads(done.stdout)["rates"]}
    assert rates.pop("quiet")["trials"] == rates.pop("storage, quiet")["trials"] == 1
    assert {"spinner", "bandwidth hog", "storage, reader"} <= set(rates)
    assert all(r["marked"] == 1 for r in rates.values())
