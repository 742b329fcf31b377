"""First process of the namespaces of a `Box`: starts a cluster there, ends with its standard input.

`python inside.py FOLDER here|apart|grid NODE,... CLOUD-NODE,...`; it prints `idle`, or what did not
start. Then a line `stop NODE`, `start NODE`, `unplug NODE` or `plug NODE` does that, and is
answered by `done`; see `Cluster` for others. A connection to FOLDER/machines is a machine of the
cloud: its line names the node, and its end is the machine's. Where there is FOLDER/published, nodes
have BMCs, and boot what is published there.
"""

import contextlib
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from shutil import which as found

PATIENCE_SECONDS = float(os.environ.get("FLOWOS_BOX_SECONDS", "120"))

ORDINARY = ("setpriv", "--inh-caps=-all", "--ambient-caps=-all")
"""Jobs of an ordinary user have no right to mount."""

MACHINE = """\
set -e
hostname "$NODE"
umount "$FOLDER/shared"
mount -t tmpfs tmpfs /dev/shm
mkdir -p "$FOLDER/$NODE/tmp/${FOLDER#/tmp/}"
mount --rbind "$FOLDER" "$FOLDER/$NODE/tmp/${FOLDER#/tmp/}"
mount --rbind "$FOLDER/$NODE/tmp" /tmp
[ ! -e "$FOLDER/$NODE/cmdline" ] || mount --bind "$FOLDER/$NODE/cmdline" /proc/cmdline
bindfs -f "$FOLDER/content" "$FOLDER/shared" &
while ! mountpoint -q "$FOLDER/shared" || [ ! -e "$FOLDER/$NODE/plugged" ]; do sleep 0.005; done
setpriv --inh-caps=-all --ambient-caps=-all "$@" &
wait
exec sleep infinity
"""
"""What a node that is apart does first; then slurmd. The shell is its init, and reaps orphans."""


class BoxError(Exception):
    """It did not start. What did not is in the message, and the ends of the logs."""


def which(name: str) -> str:
    path = found(name)
    if path is None:
        raise BoxError(f"no {name}: tools/setup test unpacks it")
    return path


def main(folder: Path, kind: str, nodes: list[str], cloud: list[str]) -> None:
    apart = kind != "here"
    try:
        cluster = (GridEngine if kind == "grid" else Cluster)(folder, apart, nodes, cloud)
        cluster.start()
        say("idle")
        signal.signal(signal.SIGCHLD, reap)
        reap()
        for line in sys.stdin:
            what, node = line.split()
            getattr(cluster, what)(node)
            say("done")
    except BoxError as error:
        say(str(error))
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_all()
        if apart:
            subprocess.run(("umount", "--lazy", folder / "shared"), stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


class Cluster:
    """nodes, cloud: their names; a node's number is that of its address."""

    def __init__(self, folder: Path, apart: bool, nodes: list[str], cloud: list[str]) -> None:
        self.folder, self.apart, self.nodes, self.cloud = folder, apart, nodes, cloud
        self.names = (*nodes, *cloud)
        self.machines: dict[str, int] = {}
        self.booted = set(cloud)
        self.boot_once = set(nodes)
        """By BMC: the first boot, and each that is asked for, is from the network."""

    def start(self, node: str = "") -> None:
        """A node that was stopped, or without a name all."""
        if node:
            self._begin(node)
            self._give_link(node)
            return
        if self.apart:
            self._lay_network()
            self._mount_shared()
        self._start_controller()
        for name in self.nodes:
            self._begin(name)
        for name in self.nodes * self.apart:
            self._give_link(name)
        if self.apart and self.cloud:
            self._serve_machines()
        if (self.folder / "published").exists():
            runpy.run_path(f"{Path(__file__).parent}/bmcs.py")["serve_bmcs"](self)
        self._await(self._is_idle, "no idle nodes")

    def stop(self, node: str) -> None:
        """All its processes are gone at once, as of a machine whose power fails."""
        os.kill(self.machines.pop(node), signal.SIGKILL)
        (self.folder / node / "plugged").unlink()

    def unplug(self, node: str) -> None:
        must("ip", "link", "set", f"v-{node}", "down")

    def plug(self, node: str) -> None:
        must("ip", "link", "set", f"v-{node}", "up")

    def _serve_machines(self) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"{self.folder}/machines")
        server.listen()

        def accept() -> None:
            while True:
                line, _ = server.accept()
                threading.Thread(target=self._be_machine, args=(line,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _be_machine(self, line: socket.socket) -> None:
        with line:
            node = line.makefile().readline().strip()
            time.sleep(1 - time.time() % 1)  # Slurm counts seconds: see BOOT in box_files.py
            self.start(node)
            line.recv(1)
            self.stop(node)

    def reboot(self, node: str) -> None:
        with (self.folder / node / "boots").open("a") as boots:
            boots.write("x")
        self.stop(node)
        if not (self.folder / node / "broken").exists():
            time.sleep(1 - time.time() % 1)
            self.booted.add(node)
            self.start(node)

    def _load_kernel(self, node: str) -> None:
        """As iPXE does; of the kernel its parameters are seen. From a disk it would be another."""
        chosen = self.folder / "published/nodes" / f"{node}.ipxe"
        _, chain, script = chosen.read_text().splitlines()[1].rpartition("chain ")
        lines = (chosen.parent / script).read_text().splitlines()
        (words,) = (line.split()[2:] for line in lines if line.startswith("kernel "))
        booted = " ".join(words) if chain and node in self.boot_once else "root=/dev/sda1"
        self.boot_once.discard(node)
        (self.folder / node / "cmdline").write_text(f"{booted}\n")

    def begin(self, daemon: str) -> None:
        """What was killed: munged or slurmctld, which goes on with the state that it has kept."""
        if daemon == "munged":
            self._start_munged()
        else:
            start(which("slurmctld"), "-D")

    def _start_munged(self) -> None:
        at = self.folder
        start(
            *(which("munged"), "--foreground", "--force"),
            *(f"--key-file={at}/munge.key", f"--socket={at}/munge.sock"),
            *(f"--pid-file={at}/munge.pid", f"--log-file={at}/munge.log"),
            f"--seed-file={at}/munge.seed",
        )
        self._await((at / "munge.sock").exists, "munged has no socket")

    def _start_controller(self) -> None:
        self._start_munged()
        if (self.folder / "slurmdbd.conf").exists():
            self._start_accounting()
        start(which("slurmctld"), "-D", "-c")
        ping = (which("scontrol"), "ping")
        self._await(lambda: " UP" in said(*ping), "slurmctld does not answer")

    def _start_accounting(self) -> None:
        conf = (self.folder / "slurmdbd.conf").read_text()
        port = int(dict(line.split("=", 1) for line in conf.splitlines())["StoragePort"])
        server, data = Path(which("mariadbd")), self.folder / "database"
        data.mkdir()
        start(
            *(str(server), "--no-defaults", f"--basedir={server.parents[1]}"),
            *(f"--datadir={data}", f"--socket={data}/socket", f"--pid-file={data}/pid"),
            *("--bind-address=127.0.0.1", f"--port={port}", "--skip-grant-tables"),
            *("--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M"),
            *("--innodb-flush-log-at-trx-commit=0", f"--log-error={self.folder}/mariadbd.log"),
            *("--user=root",) * (os.geteuid() == 0),
        )
        self._await(lambda: listens(port), "mariadbd does not answer")
        start(which("slurmdbd"), "-D")
        asks = (which("sacctmgr"), "list", "cluster")
        self._await(lambda: "Cluster" in said(*asks), "slurmdbd does not answer")

    def _is_idle(self) -> bool:
        states = (which("sinfo"), "--noheader", "--Node", "--partition=main", "--format=%T")
        return said(*states).split() == ["idle"] * len(self.nodes)

    def _daemon(self, node: str) -> tuple[str, ...]:
        just_started = ("-b",) * (node in self.booted)
        return (which("slurmd"), "-D", *just_started, "-N", node, "-d", which("slurmstepd"))

    def _begin(self, node: str) -> None:
        if (self.folder / "published").exists():
            self._load_kernel(node)
        words = self._daemon(node)
        env = {**os.environ, "SLURM_CONF": str(self.folder / node / "slurm.conf")}
        if not self.apart:
            start(*words, env=env)
            return
        spaces = ("--net", "--ipc", "--uts", "--mount", "--pid", "--mount-proc")
        machine = subprocess.Popen(
            (which("unshare"), *spaces, "--fork", "--kill-child", "sh", "-c", MACHINE, "", *words),
            env={**env, "FOLDER": str(self.folder), "NODE": node},
            stdin=subprocess.DEVNULL,
            stdout=(self.folder / f"{node}.machine.log").open("w"),
            stderr=subprocess.STDOUT,
        )
        self.machines[node] = machine.pid

    def _lay_network(self) -> None:
        hosts = [f"10.77.0.{number} {name}" for number, name in enumerate(self.names, 1)]
        (self.folder / "hosts").write_text(
            "\n".join(("127.0.0.1 localhost", "10.77.0.254 ctl", *hosts, ""))
        )
        must("hostname", "ctl")
        must("mount", "--bind", f"{self.folder}/hosts", "/etc/hosts")
        # Without an address of its own a bridge has one of its links': as nodes come and go it
        # would change, and what the others send be lost until they ask for it again.
        must(
            *("ip", "-batch", "-"),
            given="link set lo up\n"
            "link add br0 address 02:00:00:00:00:fe type bridge\n"
            "addr add 10.77.0.254/24 dev br0\n"
            "link set br0 up\n",
        )

    def remount(self, how: str) -> None:
        """The shared folder, if it is small: `ro` or `rw`."""
        must("mount", "-o", f"remount,{how}", f"{self.folder}/content")

    def unmount(self, folder: str) -> None:
        """What is mounted on this folder of the controller's machine: an empty one is left."""
        must("umount", "--lazy", f"{self.folder}/{folder}")

    def _mount_shared(self) -> None:
        shared = self.folder / "shared"
        if mib := os.environ.get("FLOWOS_BOX_SHARED_MIB"):
            size = f"size={mib}m"
            must("mount", "-t", "tmpfs", "-o", size, "tmpfs", f"{self.folder}/content")
        start(which("bindfs"), "-f", f"{self.folder}/content", f"{shared}", keep_rights=True)
        self._await(shared.is_mount, "no shared folder")

    def _give_link(self, node: str) -> None:
        pid, ours = self.machines[node], Path("/proc/self/ns/net").readlink()
        theirs = Path(f"/proc/{pid}/ns/net")
        self._await(lambda: theirs.readlink() != ours, f"{node} has no network")
        subprocess.run(("ip", "link", "del", f"v-{node}"), stderr=subprocess.DEVNULL)
        must(
            *("ip", "-batch", "-"),
            given=f"link add v-{node} type veth peer name eth0 netns {pid}\n"
            f"link set v-{node} master br0 up\n",
        )
        must(
            *("nsenter", "--net", f"--target={pid}", "ip", "-batch", "-"),
            given=f"addr add 10.77.0.{self.names.index(node) + 1}/24 dev eth0\n"
            "link set eth0 up\n"
            "link set lo up\n",
        )
        (self.folder / node / "plugged").touch()

    def _await(self, check: Callable[[], bool], complaint: str) -> None:
        asked = time.monotonic()
        until = asked + PATIENCE_SECONDS
        while not check():
            answered = time.monotonic()
            if answered > until:
                logs = (f"{log.name}:\n{tail(log)}" for log in self.folder.glob("*.log"))
                raise BoxError("\n".join((complaint, *logs)))
            time.sleep(min(0.25, max(0.005, 2 * (answered - asked))))
            asked = time.monotonic()


class GridEngine(Cluster):
    """Its programs search their libraries and plugins where Debian installs them."""

    def _start_controller(self) -> None:
        lower = f"lowerdir={os.environ['FLOWOS_GRID_USR']}:/usr"
        must("mount", "-t", "overlay", "-o", lower, "overlay", "/usr")
        start(which("sge_qmaster"))
        self._await(lambda: bool(said(which("qconf"), "-sh")), "sge_qmaster does not answer")

    def _daemon(self, node: str) -> tuple[str, ...]:  # noqa: ARG002 - it asks for its host's name
        return (which("sge_execd"),)

    def _is_idle(self) -> bool:
        """All have said what they have."""
        rows = [line.split() for line in said(which("qstat"), "-f").splitlines() if "@" in line]
        ready = [row for row in rows if len(row) == 5 and row[3] != "-NA-"]  # a sixth: its state
        return len(ready) == len(self.nodes)


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


def start(*words: str, env: dict[str, str] | None = None, keep_rights: bool = False) -> None:
    subprocess.Popen(
        (*(() if keep_rights else ORDINARY), *words),
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def must(*words: str, given: str = "") -> None:
    pipe = subprocess.PIPE
    done = subprocess.run(words, input=given, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise BoxError(f"{' '.join(words)}: {done.stdout}")


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True).stdout


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return not tried.connect_ex(("127.0.0.1", port))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def reap(*_: object) -> None:
    """What its own parent left behind is ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_all() -> None:
    """So that no process writes into the folder while it is removed."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        sys.argv[2],
        *(names.split(",") if names else [] for names in sys.argv[3:5]),
    )
