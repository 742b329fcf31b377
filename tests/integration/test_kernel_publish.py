"""`flowos kernel publish`, and its programs; that a node boots it, test_booted.py shows."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from flowos.cli import main
from flowos.drivers.images.kernel import MAX_CPIO_BYTES
from flowos.drivers.netboot import Netboot, texts
from tests.cluster.bmcs import serve_bmcs
from tests.kernel_packages import deb, parts
from tests.waiting import comes

FLOWOS = Path(__file__).parents[2] / ".venv/bin/flowos"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image for nodes, and kernel `a` in the library."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "linux-image.deb").write_bytes(deb(parts()))
    added = ["kernel", "add", "a", "--deb", "linux-image.deb", "--parameter", "isolcpus=1"]
    assert main(added) == 0
    (tmp_path / "root/usr/sbin").mkdir(parents=True)
    (tmp_path / "root/usr/sbin/init").write_text("#!/bin/sh\n")
    (tmp_path / "root/usr/sbin/init").chmod(0o755)
    (tmp_path / "root/sbin").symlink_to("usr/sbin")
    (tmp_path / "root/usr/sbin/text").touch(0o644)
    (tmp_path / "root/usr/sbin/gone").symlink_to("/lib/systemd/systemd")
    return squash("root", tmp_path / "node.sqfs")


def squash(folder: str, file: Path) -> Path:
    subprocess.run(["mksquashfs", folder, file, "-quiet", "-no-progress", "-noappend"], check=True)
    return file


def publish(*words: str) -> int:
    return main(["kernel", "publish", "a", "node.sqfs", "--out", "boot", *words])


def test_a_folder_holds_all_that_its_sums_say(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish("--redfish", "https://{node}-bmc", "--dry-run") == 0
    assert not (tmp_path / "boot").exists()
    assert publish("--redfish", "https://{node}-bmc", "--parameter", "quiet") == 0
    assert publish("--parameter", "quiet", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    at = tmp_path / "boot/a"
    assert lines[0] == f"would be published: a  6.1-x with node.sqfs, in {at}"
    assert lines[2].startswith("note: the image has no /lib/modules/6.1-x: nodes load no drivers")
    assert lines[3] == f"published: a  6.1-x with node.sqfs, in {at}"
    assert lines[1] == lines[4]
    assert "power-cycle reboot slurm.conf SHA256SUMS" in lines[4]
    said = json.loads("\n".join(lines[6:]))
    assert {*said["files"]} == {file.name for file in at.iterdir()}
    sums = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=at, capture_output=True)
    assert (sums.returncode, sums.stdout.count(b": OK")) == (0, len(said["files"]) - 1)
    assert (at / "vmlinuz").read_bytes() == b"plain"
    initrd = (at / "initrd.img").read_bytes()
    assert node.read_bytes() in initrd
    names = [b"modules/00-loop.ko\0", b"init\0", b"image.squashfs\0", b"TRAILER!!!\0"]
    places = [initrd.index(name) for name in names[:3]] + [initrd.rindex(names[3])]
    assert places == sorted(places)
    assert "initrd=initrd.img flowos.kernel=a isolcpus=1 quiet\n" in (at / "boot.ipxe").read_text()
    modes = {file.name: file.stat().st_mode & 0o777 for file in (at, *at.iterdir())}
    assert {name for name, mode in modes.items() if mode == 0o755} == {"a", "helper", "next-boot"}
    assert {mode for mode in modes.values() if mode != 0o755} == {0o644}
    assert [path.name for path in at.parent.iterdir()] == ["a"]


@pytest.mark.usefixtures("node")
def test_what_is_of_another_hand_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = tmp_path / "boot/a"
    at.mkdir(parents=True)
    assert publish() == 0
    (at / "mine").touch()
    assert publish() != 0
    (at / "mine").unlink()
    (at / "helpers.conf").write_text("Feature=mine\n")
    assert publish() != 0
    at.rename(tmp_path / "moved")
    at.symlink_to(tmp_path / "moved")
    assert publish("--dry-run") != 0
    assert capsys.readouterr().err.splitlines() == [
        f"flowos kernel: {at}/mine: it is not of `flowos kernel publish`; move it away",
        f"flowos kernel: {at}/helpers.conf: it was changed since it was published; move it away",
        f"flowos kernel: {at}: it is no folder of `flowos kernel publish`",
    ]


@pytest.mark.usefixtures("node")
def test_one_that_fails_leaves_what_was_there_and_one_that_was_killed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish("--parameter", "before") == 0
    (tmp_path / "boot/.a.killed_1").mkdir()
    (tmp_path / "boot/.a.b.killed_1").mkdir()  # of kernel a.b
    words = f"ulimit -f 2; exec {FLOWOS} kernel publish a node.sqfs --out boot"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {path.name for path in (tmp_path / "boot").iterdir()} == {
        "a",
        ".a.killed_1",
        ".a.b.killed_1",
    }
    assert "before" in (tmp_path / "boot/a/boot.ipxe").read_text()
    assert publish() == 0
    killed = (
        f"note: {tmp_path}/boot/.a.killed_1: of one that was killed, unless it runs now; remove"
    )
    said = capsys.readouterr().out
    assert killed in said
    assert ".a.b." not in said


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("init", "why"),
    [
        ("/sbin/gone", "it has no /sbin/gone for a node to start"),
        ("/sbin", "its /sbin (drwxr-xr-x) is no program that a node can start; --init names"),
        ("/sbin/text", "its /sbin/text (-rw-r--r--) is no program that a node can start; --init"),
    ],
)
def test_a_first_process_that_no_node_can_start_is_refused(
    init: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish("--init", init, "--dry-run") != 0
    assert f"image node.sqfs: {why}" in capsys.readouterr().err


def test_what_no_node_could_boot_is_refused(
    node: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert publish("--init", "/bin/other") != 0
    assert publish("--parameter", "a b") != 0
    assert main(["kernel", "publish", "b", "node.sqfs", "--out", "boot"]) != 0
    assert main(["kernel", "publish", "a", "./root", "--out", "boot"]) != 0
    whole = node.read_bytes()
    node.write_bytes(whole[:96].ljust(len(whole), b"\xff"))
    assert publish("--dry-run") != 0
    assert MAX_CPIO_BYTES == 2**32 - 1
    monkeypatch.setattr("flowos.operations.kernel_publish.MAX_CPIO_BYTES", len(whole) - 1)
    assert publish("--dry-run") != 0
    (tmp_path / "data/flowos/kernels/a/vmlinuz").unlink()
    assert publish() != 0
    lines = [line.removeprefix("flowos kernel: ") for line in capsys.readouterr().err.splitlines()]
    assert lines[0].startswith("image node.sqfs: it has no /bin/other for a node to start")
    assert lines[1].startswith("parameter 'a b': expected letters")
    assert lines[2] == "no kernel 'b'; known are a"
    assert lines[3].startswith("image ./root: nodes boot a squashfs, not a form folder; ")
    assert lines[4].startswith("image node.sqfs: it cannot be read: ")
    assert lines[5] == "image node.sqfs: an initrd holds no more than 4 GiB of it"
    assert lines[6].startswith(
        "kernel a: an older FlowOS added it, without what nodes boot; add it"
    )
    assert len(lines) == 7


def written(folder: Path, netboot: Netboot) -> Path:
    """Its programs, as `publish` writes them."""
    at = folder / "boot" / netboot.name
    at.mkdir(parents=True, exist_ok=True)
    for name, text in texts(netboot).items():
        (at / name).write_text(text)
        (at / name).chmod(0o755)
    return at


def ran(program: Path, *words: str, path: str = "") -> tuple[int, str]:
    env = {"PATH": f"{path}:/usr/bin:/bin"}
    done = subprocess.run([program, *words], env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_node_is_named_or_nothing_is_done(tmp_path: Path) -> None:
    program = written(tmp_path, Netboot(name="b", release="", root="/")) / "next-boot"
    for odd in ("", "../n1", "-n", ".n", "n 1", "n1;id", "$(id)", "n\n1", "ü"):
        assert ran(program, "n1", odd) == (2, f"{program}: '{odd}' is no name of a node\n")
    assert ran(program) == (2, f"usage: {program} NODE...\n")
    assert not (tmp_path / "boot/nodes").exists()
    assert ran(program, "n1", "rack-2.n_3") == (0, "")
    chosen = tmp_path / "boot/nodes/rack-2.n_3.ipxe"
    assert chosen.read_text() == "#!ipxe\nchain ../b/boot.ipxe\n"


class Cluster:
    """Of `serve_bmcs`."""

    def __init__(self) -> None:
        self.boot_once: set[str] = set()
        self.booted: list[str] = []

    def reboot(self, node: str) -> None:
        self.booted += [node] * (node in self.boot_once)


def test_a_bmc_is_asked_with_credentials_that_stand_in_a_file(tmp_path: Path) -> None:
    cluster = Cluster()
    url = f"http://127.0.0.1:{serve_bmcs(cluster, '127.0.0.1', 0)}/{{node}}"
    netboot = Netboot(name="b", release="", root="/", redfish=url, settings=str(tmp_path))
    program = written(tmp_path, netboot) / "power-cycle"
    assert ran(program, "n1")[0] != 0
    (tmp_path / "redfish.curl").write_text('user = "admin:other"\n')
    code, said = ran(program, "n1")
    assert (code, "401" in said, cluster.boot_once) == (22, True, set())
    (tmp_path / "redfish.curl").write_text('user = "admin:secret word"\n')
    assert ran(program, "n1", "n2") == (0, "")
    assert comes(lambda: sorted(cluster.booted) == ["n1", "n2"])
    assert "secret" not in program.read_text()


@contextmanager
def boot_script_service() -> Iterator[tuple[int, list[object]]]:
    """Its port, and what it was asked: path, authorization, body."""
    asked: list[object] = []

    class Service(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """To no terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port, asked
        server.shutdown()


def test_openchami_gets_the_boot_parameters_of_each_host(tmp_path: Path) -> None:
    (tmp_path / "bss.curl").write_text('oauth2-bearer = "token"\n')
    with boot_script_service() as (port, asked):
        netboot = Netboot(
            name="b",
            release="",
            root="/",
            url="http://head/boot",
            boot_by="openchami",
            bss=f"http://127.0.0.1:{port}/",
            settings=str(tmp_path),
        )
        program = written(tmp_path, netboot) / "next-boot"
        (tmp_path / "boot/xnames").write_text('n11 x9\nn1 x3000c0s1b0n0\nn2 "odd"\n')
        assert ran(program, "n1", "n2") == (0, "")
    files = {
        "kernel": "http://head/boot/b/vmlinuz",
        "initrd": "http://head/boot/b/initrd.img",
        "params": "initrd=initrd.img flowos.kernel=b",
    }
    path, token = "/boot/v1/bootparameters", "Bearer token"
    assert asked == [
        (path, token, {"hosts": ["x3000c0s1b0n0"], **files}),
        (path, token, {"hosts": ["n2"], **files}),
    ]


def test_warewulf_is_asked_where_its_template_is_the_published_script(tmp_path: Path) -> None:
    netboot = Netboot(name="b", release="", root="/", url="http://head/boot", boot_by="warewulf")
    at = written(tmp_path, netboot)
    program = at / "next-boot"
    code, said = ran(program, "n1")
    assert (code, said.split("first ")[1]) == (
        1,
        f"install -m 644 {at}/boot.ipxe /etc/warewulf/ipxe/flowos-b.ipxe\n",
    )
    program.write_text(program.read_text().replace("/etc/warewulf/ipxe", str(tmp_path)))
    (tmp_path / "flowos-b.ipxe").write_text((at / "boot.ipxe").read_text())
    (tmp_path / "wwctl").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "wwctl").chmod(0o755)
    assert ran(program, "n1", path=str(tmp_path)) == (0, "node set --yes --ipxe flowos-b n1\n")
