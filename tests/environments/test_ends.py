"""What ends under a launch in an image, its FUSE server or its command, and what is said of it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from flowos.engine import Here, here
from flowos.model import Environment, Exited, Launch, RuntimeFailed
from tests.waiting import PATIENCE_SECONDS, comes

from .conftest import (
    HAS_APPTAINER,
    INSIDE,
    Images,
    all_gone,
    descendants,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BY_FUSE = ("ch-run", "bwrap", *("apptainer",) * HAS_APPTAINER)


def await_file(path: Path) -> None:
    assert comes(path.exists), f"{path} never came"


def fuse_servers() -> set[int]:
    """Also that of the image which other tests of this session share."""
    below = descendants().items()
    return {pid for pid, words in below if "squashfuse" in words and " -- " not in words}


def test_the_fuse_server_of_one_node_is_not_that_of_another(images: Images) -> None:
    env = Environment(image=here().image_at(images.squashfs), runtime="bwrap")
    before = fuse_servers()
    with Here("one").ready(env) as one, Here("other").ready(env) as other:
        assert one.env.image != other.env.image
        assert len(fuse_servers() - before) == 2
        one.close()
        assert len(fuse_servers() - before) == 1
        assert other.env.image
        assert os.path.ismount(other.env.image.source)


@pytest.mark.parametrize("runtime", BY_FUSE)
def test_a_command_whose_fuse_server_is_killed_is_ended_and_told(
    images: Images, runtime: str, tmp_path: Path
) -> None:
    env = Environment(
        image=here().image_at(images.squashfs),
        runtime=runtime,
        binds=((str(tmp_path), "/mnt/new"),),
    )
    before = fuse_servers()
    with here().ready(env) as ready:
        words = ("/bin/sh", "-c", "trap '' TERM; echo x >/mnt/new/x; while :; do :; done")
        running = here().start(Launch(argv=words, env=ready.env, variables=INSIDE))
        await_file(tmp_path / "x")
        (server,) = fuse_servers() - before
        os.kill(server, 9)
        outcome = running.wait(60)
    assert isinstance(outcome.end, RuntimeFailed), outcome
    assert f"@{runtime}: squashfuse, which showed the image, has ended" in outcome.end.reason
    assert "\n" not in outcome.end.reason


@pytest.mark.parametrize("runtime", BY_FUSE)
def test_exec_whose_fuse_server_is_killed_ends_in_125_with_a_line(
    images: Images, runtime: str, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "flowos", "exec", "--env", f"{images.squashfs}@{runtime}"]
    script = ("--", "sh", "-c", "echo x > x; while :; do sleep 0.1; done")
    before = fuse_servers()
    with subprocess.Popen([*words, *script], cwd=tmp_path, stderr=subprocess.PIPE) as exec_:
        try:
            await_file(tmp_path / "x")
            (server,) = fuse_servers() - before
            os.kill(server, 9)
            _, told = exec_.communicate(timeout=300)
        finally:
            exec_.terminate()  # it runs for ever otherwise; a no-op once it has ended
    last = told.decode().splitlines()[-1]
    assert (exec_.returncode, "lost its root" in last) == (125, True), told


def test_a_command_that_ended_well_before_its_server_did_ended_well(images: Images) -> None:
    with here().ready(
        Environment(image=here().image_at(images.squashfs), runtime="bwrap")
    ) as ready:
        done = here().run(Launch(argv=("/bin/true",), env=ready.env))
        failed = here().run(Launch(argv=("/bin/false",), env=ready.env))
    assert (done.end, failed.end) == (Exited(0), Exited(1))


@pytest.mark.parametrize("runtime", [*BY_FUSE, "podman"])
@pytest.mark.parametrize("code", [0, 7])
def test_a_runtime_that_never_ends_after_its_command_costs_no_result(
    images: Images, runtime: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowos.engine.launch._running._HUNG_SECONDS", 0.5)
    env = Environment(
        image=here().image_at(images.squashfs),
        runtime=runtime,
        binds=((str(tmp_path), "/mnt/new"),),
    )
    wait = "echo x >/mnt/new/x; until test -e /mnt/new/y; do sleep 0.1; done"
    script = f"{wait}; echo said; exit {code}"
    with here().ready(env) as ready:
        running = here().start(
            Launch(argv=("/bin/sh", "-c", script), env=ready.env, variables=INSIDE)
        )
        await_file(tmp_path / "x")
        os.kill(running.pid, signal.SIGSTOP)
        (tmp_path / "y").touch()
        outcome = running.wait(PATIENCE_SECONDS)
    assert (outcome.end, outcome.stdout) == (Exited(code), b"said\n")


def test_a_podman_that_outlives_its_flowos_is_ended_before_its_files_go(
    images: Images, tmp_path: Path
) -> None:
    """Its files gone, it would hang with a lock that later containers need."""
    words = [sys.executable, "-m", "flowos", "exec", "--env", f"{images.squashfs}@podman", "--"]
    before = descendants().keys()
    with subprocess.Popen([*words, "sh", "-c", "echo x > x; sleep 60"], cwd=tmp_path) as killed:
        await_file(tmp_path / "x")
        new = {pid: line for pid, line in descendants().items() if pid not in before}
        podmans = [pid for pid, line in new.items() if "/podman" in line and " run --rm " in line]
        assert podmans
        for pid in podmans:
            os.kill(pid, signal.SIGSTOP)
        killed.kill()
    done = subprocess.run([*words, "echo", "well"], cwd=tmp_path, capture_output=True, timeout=300)
    for pid in podmans:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert (done.stdout, done.returncode) == (b"well\n", 0), done.stderr
    assert all_gone(podmans)
