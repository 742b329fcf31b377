"""An image booted with a kernel of its own, for real: what the promises of all runtimes leave open.

A boot takes seconds, so each launch here answers for much.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.drivers.runtimes.qemu import Qemu
from flowos.engine import RunningProcess, here
from flowos.engine.launch._prepared import prepare
from flowos.model import (
    Environment,
    EnvironmentRefused,
    Killed,
    Launch,
    LaunchFailed,
    LinuxKernel,
    Needs,
    Pairs,
    RuntimeFailed,
)
from tests.waiting import comes

from .conftest import BOOT_SECONDS, INSIDE, Images, ready_or_skip

pytestmark = pytest.mark.usefixtures("nothing_is_left")

_SILENT_SECONDS = 15.0
"""The boot, of which nothing is heard, must be shorter."""


@contextmanager
def booting(images: Images, binds: Pairs = ()) -> Iterator[Environment]:
    image = here().image_at(images.squashfs)
    with ready_or_skip(Environment(image=image, runtime="qemu", binds=binds)) as ready:
        yield ready.env


def launch(env: Environment, script: str) -> Launch:
    return Launch(argv=("/bin/sh", "-c", script), env=env, variables=INSIDE)


def machine_of(running: RunningProcess) -> int:
    """QEMU's process, once the command in its guest has started."""
    assert comes(lambda: (running.folder / "started.0").exists() or running.done, BOOT_SECONDS)
    return int((running.folder / "qemu.pid").read_text())


def test_streams_folder_user_kernel_and_words_are_those_asked_for(
    kernel: LinuxKernel, images: Images, tmp_path: Path
) -> None:
    here_too, read_only = tmp_path / "here", tmp_path / "only"
    here_too.mkdir()
    read_only.mkdir()
    (read_only / "file").write_text("read\n")
    binds = (
        (str(here_too), "/data"),
        (str(read_only), "/not/there"),
        (str(read_only / "file"), "/opt/file"),
    )
    script = """
        uname -r; id -u; id -g; pwd; ls /proc/self/fd | wc -l; cat /data/in
        cat /opt/file /not/there/file
        echo made >/data/out; touch /bin/x 2>/dev/null || echo read-only; printf '%s\\n' "$ODD"
        cat >&2; kill -USR1 $$"""
    (here_too / "in").write_text("in\n")
    odd, much = os.fsdecode(b"a b\xff'\""), os.urandom(3_000_000)
    with booting(images, binds=binds) as env:
        given = replace(launch(env, script), variables=(*INSIDE, ("ODD", odd)), cwd=here_too)
        outcome = here().run(given, stdin=much)
    said = outcome.stdout.split(b"\n")
    who = [str(os.geteuid()).encode(), str(os.getegid()).encode()]
    assert said[:4] == [kernel.release.encode(), *who, os.fsencode(here_too)]
    assert said[5:8] == [b"in", b"read", b"read"]
    assert said[8:10] == [b"read-only", os.fsencode(odd)]
    assert outcome.stderr == much
    assert outcome.end == Killed(signal.SIGUSR1)
    made = here_too / "out"
    assert (made.read_text(), made.stat().st_uid) == ("made\n", os.geteuid())


@pytest.mark.usefixtures("kernel")
def test_a_guest_that_hangs_is_named_and_ended(images: Images) -> None:
    with booting(images) as env:
        way = here()._runtimes.entering(env)
        assert isinstance(way, Qemu)
        way = replace(way, silent_seconds=_SILENT_SECONDS)
        running = prepare(launch(env, "sleep 300"), way, here()._session).start()
        os.kill(machine_of(running), signal.SIGSTOP)
        end = running.wait(BOOT_SECONDS).end
    assert end == RuntimeFailed("'/bin/sh': its guest said nothing for 15 s and was ended")


@pytest.mark.usefixtures("kernel")
def test_a_guest_that_dies_is_named_at_once(images: Images) -> None:
    with booting(images) as env:
        running = here().start(launch(env, "sleep 300"))
        os.kill(machine_of(running), signal.SIGKILL)
        end = running.wait(BOOT_SECONDS).end
    assert end == RuntimeFailed("'/bin/sh': its guest died (qemu ended with 137)")


@pytest.mark.usefixtures("kernel")
def test_what_a_guest_cannot_have_is_refused_by_name(
    images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    with booting(images) as env:
        true = launch(env, "true")
        with pytest.raises(
            LaunchFailed, match=r"^ranks of a gang: \S+@qemu boots a machine of its own"
        ):
            here().prepare(replace(true, ranks=2), launcher="openmpi")
        prepared = here().prepare(replace(true, needs=Needs(gpus=1)))
        with pytest.raises(LaunchFailed, match=r"^device gpu: a booted image"):
            prepared.command_line()
        prepared.discard()
        which = replace(env.boot, kernel=LinuxKernel(name="other")) if env.boot else None
        with pytest.raises(EnvironmentRefused, match=r"^no kernel 'other'; known are stock"):
            here().ready(replace(env, boot=which))
        monkeypatch.setenv("XDG_DATA_HOME", str(images.folder))
        with pytest.raises(EnvironmentRefused, match=r"by qemu: there is no kernel to boot with"):
            here().ready(replace(env, boot=None))
