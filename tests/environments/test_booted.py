"""An image booted with a kernel of its own, for real: what the promises of all runtimes leave open.

A boot takes seconds, so each launch here answers for much.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from flowos.drivers.netboot import Netboot
from flowos.drivers.runtimes.qemu import PROGRAM, Qemu, kernel_line
from flowos.engine import RunningProcess, here, run_interleaved
from flowos.engine.launch._prepared import prepare
from flowos.model import (
    Boot,
    Environment,
    EnvironmentRefused,
    Killed,
    Launch,
    LaunchFailed,
    LinuxKernel,
    Needs,
    Outcome,
    Pairs,
    RuntimeFailed,
    to_plain,
)
from flowos.operations.kernel_publish import publish_kernel
from tests.waiting import comes

from .conftest import BOOT_SECONDS, INSIDE, Images, ready_or_skip, squash

pytestmark = pytest.mark.usefixtures("nothing_is_left")

_SILENT_SECONDS = (15, 150)
"""The boot, of which nothing is heard, must be shorter; on a busy machine it takes long."""


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
def test_beside_others_a_guest_is_given_no_turns_and_works_at_once(images: Images) -> None:
    with booting(images) as env:
        prepared = here().prepare(launch(env, "echo ${FLOWOS_TURNS-at once}"))
        (outcome,) = run_interleaved([prepared], "seed")
    assert isinstance(outcome, Outcome)
    assert outcome.stdout == b"at once\n"


@pytest.mark.usefixtures("kernel")
def test_a_guest_that_hangs_is_named_and_ended(images: Images) -> None:
    with booting(images) as env:
        way = here()._runtimes.entering(env)
        assert isinstance(way, Qemu)
        for silent in _SILENT_SECONDS:
            way = replace(way, silent_seconds=silent)
            running = prepare(launch(env, "sleep 300"), way, here()._session).start()
            started = running.folder / "started.0"
            assert comes(lambda: started.exists() or running.done, BOOT_SECONDS)  # noqa: B023
            if not running.done:
                os.kill(machine_of(running), signal.SIGSTOP)
                break
        end = running.wait(BOOT_SECONDS).end
    assert end == RuntimeFailed(f"'/bin/sh': its guest said nothing for {silent} s and was ended")


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


def test_of_several_kernels_one_that_starts_shows_that_qemu_works(
    kernel: LinuxKernel, images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "data/flowos/kernels"
    gone = replace(kernel, name="a", initrd=tmp_path / "gone")
    for each in (gone, kernel, replace(kernel, name="z")):
        (library / each.name).mkdir(parents=True)
        (library / each.name / "kernel.json").write_text(json.dumps(to_plain(each)))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    image = here().image_at(images.squashfs)
    named = Boot(kernel=LinuxKernel(name="z"))
    with ready_or_skip(Environment(image=image, runtime="qemu", boot=named)) as ready:
        assert ready.env.boot is not None
        assert ready.env.boot.kernel.name == "z"


_FIRST = """\
#!/bin/sh
echo "first $$ of" $(uname -r), given $*
grep " / " /proc/mounts
touch /bin/made && echo "root is written to"
exec /bin/busybox poweroff -f
"""


class Served(SimpleHTTPRequestHandler):
    """Files of a folder; which ones were asked for."""

    asked: list[str]

    def __init__(self, *args: object, asked: list[str], directory: Path) -> None:
        self.asked = asked
        super().__init__(*args, directory=str(directory))  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002
        self.asked.append(self.path)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Its port of this machine, and what was asked for."""
    asked: list[str] = []
    handler = partial(Served, asked=asked, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, asked
        server.shutdown()
        thread.join()


def test_a_node_boots_what_was_published_from_its_network_card(
    kernel: LinuxKernel, images: Images, tmp_path: Path
) -> None:
    """As hardware would: the card's iPXE asks DHCP and HTTP, here of QEMU and of this test."""
    shutil.copytree(images.folder, tmp_path / "image", symlinks=True)
    (tmp_path / "image/sbin").mkdir()
    (tmp_path / "image/sbin/init").write_text(_FIRST)
    (tmp_path / "image/sbin/init").chmod(0o755)
    squash(tmp_path / "image", tmp_path / "node.sqfs")
    words = (*kernel_line(LinuxKernel(), "tcg").split(), "word")
    asked_for = Netboot(name=kernel.name, release="", root=str(tmp_path), parameters=words)
    published = publish_kernel(asked_for, str(tmp_path / "node.sqfs"))
    subprocess.run([published.folder / "next-boot", "n1"], check=True)
    with serving(tmp_path) as (port, asked):
        file = f"http://10.0.2.2:{port}/{kernel.name}/start.ipxe"
        done = subprocess.run(
            (
                *(PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
                *("-machine", "q35", "-accel", "tcg", "-cpu", "max", "-m", "512M"),
                *("-netdev", f"user,id=net,hostname=n1,bootfile={file}"),
                *("-device", "virtio-net-pci,netdev=net", "-serial", "stdio"),
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BOOT_SECONDS,
        )
    files = [f"/{kernel.name}/{name}" for name in ("boot.ipxe", "vmlinuz", "initrd.img")]
    assert asked == [f"/{kernel.name}/start.ipxe", "/nodes/n1.ipxe", *files], done
    assert done.stdout.splitlines()[:3] == [
        f"first 1 of {kernel.release}, given word",
        "root / overlay rw,relatime,lowerdir=/image,upperdir=/over/upper,workdir=/over/work 0 0",
        "root is written to",
    ]
