"""A Slurm of this user's own: two nodes, no root, idle in a third of a second.

`with Box() as box:` in a test. To try things out, `python -m tests.cluster.box` prints the
variables by which Slurm's commands find it, and ends it with its standard input.

All daemons, and what they start, live in a process namespace of their own. Its first process
(`inside.py`) ends with its standard input, so that nothing outlives the test, however the test
ends, and removes the folder. Ports are the kernel's choice, and reserved as long as the box is
there.

`Box(cloud=2)`: also nodes c1 and c2 of a partition `cloud`, which Slurm powers up by
`box.folder/resume` and down by `box.folder/suspend`: flowos, whose settings are
`box.folder/flowos.toml`. A machine of this cloud is a process that runs slurmd. Slurm gives up on
one that has not come after `resume_seconds`.

`Box(conf=LINES)`: more lines of its slurm.conf, as of another partition.

`Box(files={"gres.conf": "NodeName=n1 Name=fpga Count=2"})`: more files next to slurm.conf. Nodes
have what gres.conf counts.

`Box(apart=True, kernels=("kernelA", "kernelB"))`: kernels of its nodes, which booted the first one.
Slurm has them booted into another one by the helpers plugin, with the programs that `flowos kernel
publish` writes: a power cycle is a machine that starts anew, whose /proc/cmdline is as its iPXE
script says, and `box.boots(NODE)` counts them. One with a file `box.folder/NODE/broken` stays off.

`AccountingBox()`: with slurmdbd, its database, and what tasks use.

`Box(apart=True)`: each node has its own address, link, processes, host name, /tmp and /dev/shm, as
machines have. `box.shared` is the one folder that all see, through a file system for each, so that
neither FIFOs nor locks cross it; `shared_mib` is its size. What talks to it has to be started by
`box.enter`.
"""

import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from flowos.drivers.netboot import Netboot, texts

from .box_files import (
    ACCOUNTING,
    BMC_SETTINGS,
    BMCS,
    BOOT,
    BOOT_APART,
    CLOUD,
    CONF,
    HELPERS,
    KERNELS,
    NO_ACCOUNTING,
    NODE,
    PARTITION,
    PROGRAM,
    SETTINGS,
    SLURMDBD,
)

UNPACKED = Path(__file__).parents[2] / ".deps/debian/usr"
PLACES = (UNPACKED / "bin", UNPACKED / "sbin", *map(Path, ("/usr/bin", "/usr/sbin", "/bin")))
"""First what tools/setup unpacked, not the commands of a cluster that this machine belongs to."""

FLOWOS = Path(sys.executable).with_name("flowos")

INSIDE = str(Path(__file__).with_name("inside.py"))

CORES, MEMORY_MIB = 4, 4000
"""Of each node, whatever this machine has."""


class BoxError(Exception):
    """It did not start. What did not is in the message, and the ends of the logs."""


def which(name: str) -> str:
    """Path of one of Slurm's programs. Raises BoxError if there is none."""
    found = shutil.which(name, path=os.pathsep.join(map(str, PLACES)))
    if found is None:
        raise BoxError(f"no {name}: tools/setup test unpacks it")
    return found


class Box:
    """A running Slurm. nodes: their names."""

    name = "slurm"
    accounting = False

    def __init__(  # noqa: PLR0913
        self,
        nodes: int = 2,
        *,
        apart: bool = False,
        cloud: int = 0,
        resume_seconds: int = 60,
        conf: str = "",
        shared_mib: int = 0,
        files: Mapping[str, str] | None = None,
        kernels: tuple[str, ...] = (),
    ) -> None:
        self.nodes = tuple(f"n{number}" for number in range(1, nodes + 1))
        self.cloud = tuple(f"c{number}" for number in range(1, cloud + 1))
        self.apart = apart
        self._resume_seconds, self._conf = resume_seconds, conf
        self._files, self._kernels = dict(files or {}), kernels
        self._shared_mib = {"FLOWOS_BOX_SHARED_MIB": str(shared_mib)} if shared_mib else {}
        # a short path, for the socket; in /tmp, which nodes that are apart lay another one over
        self.folder = Path(tempfile.mkdtemp(prefix=f"flowos-{self.name}-", dir="/tmp"))
        self.shared = self.folder / "shared"
        self._ports = [reserved_port() for _ in range(nodes + cloud + 3)]
        self._first: subprocess.Popen[str] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Of commands that are to find it."""
        path = os.pathsep.join((str(Path(which("srun")).parent), os.environ["PATH"]))
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path, **self._of_ranks}

    @property
    def _of_ranks(self) -> dict[str, str]:
        """Open MPI 4.1's shared memory crashes and hangs where several jobs are on one machine
        (open-mpi/ompi#7642), as those of the boxes of several tests are. Ranks share few cores:
        one that waits lets the others run."""
        through = {} if self.apart else {"OMPI_MCA_btl_tcp_if_include": "lo"}
        return {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_mpi_yield_when_idle": "1", **through}

    @property
    def _of_daemons(self) -> dict[str, str]:
        return {"PATH": os.pathsep.join(map(str, (*PLACES, os.environ["PATH"])))}

    @property
    def _kind(self) -> str:
        return "apart" if self.apart else "here"

    @property
    def enter(self) -> tuple[str, ...]:
        """Words before those of a command that talks to it."""
        return self.enter_as("--net", "--mount", "--uts", "--pid") if self.apart else ()

    @property
    def enter_controller(self) -> tuple[str, ...]:
        """Words before those of a command that is to see the processes of its controller."""
        return self.enter or self.enter_as("--mount", "--pid")

    def enter_as(self, *spaces: str) -> tuple[str, ...]:
        """Words before those of a command that is to share these namespaces with its daemons."""
        if self._first is None:
            return ()
        unshare = f"/proc/{self._first.pid}/task/{self._first.pid}/children"
        (first,) = Path(unshare).read_text().split()
        user = ("--user", "--preserve-credentials") * (os.geteuid() != 0)
        return ("nsenter", f"--target={first}", *user, *spaces, "--")

    def ask(self, *words: str) -> str:
        """Standard output of one of Slurm's commands."""
        return self.run(*words).stdout.strip()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (*self.enter, *words),
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def act(self, what: str, node: str) -> None:
        """On a node that is apart: `stop` (its power fails), `start`, `unplug`, `plug`.

        `begin`: munged or slurmctld, once it was killed. `remount` ro or rw: a small shared folder.
        `unmount` shared: it is gone from this machine.
        """
        assert self._first
        assert self._first.stdin
        self._first.stdin.write(f"{what} {node}\n")
        self._first.stdin.flush()
        self._await("done\n")

    def __enter__(self) -> "Box":
        self._write()
        names = (",".join(self.nodes), ",".join(self.cloud))
        inside = (sys.executable, "-I", "-S", INSIDE, str(self.folder), self._kind, *names)
        self._first = subprocess.Popen(
            (*namespace(apart=self.apart), *inside),
            env={**os.environ, **self.variables, **self._of_daemons, **self._shared_mib},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is the test's
        )
        self._await("idle\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it and wait until nothing of it is left."""
        if self._first is not None:
            self._first.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)
        for port in self._ports:
            port.close()

    def _await(self, line: str) -> None:
        assert self._first
        assert self._first.stdout
        if (said := self._first.stdout.readline()) != line:
            said += self._first.stdout.read()
            self.close()
            raise BoxError(said)

    def _write(self) -> None:
        controller, slurmdbd, database, *ports = (port.getsockname()[1] for port in self._ports)
        words = {
            "host": "ctl" if self.apart else "localhost",
            "address": "10.77.0.254" if self.apart else "127.0.0.1",
            "user": pwd.getpwuid(os.geteuid()).pw_name,
            "folder": self.folder,
            "plugins": plugins(),
            "controller": controller,
            "slurmdbd": slurmdbd,
            "database": database,
        }
        conf = CONF.format(**words)
        conf += (ACCOUNTING if self.accounting else NO_ACCOUNTING).format(**words)
        if self.accounting:
            self._write_secret("slurmdbd.conf", SLURMDBD.format(**words).encode())
        every = (*self.nodes, *self.cloud)
        for number, (name, port) in enumerate(zip(every, ports, strict=True), 1):
            address = f"NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
            address = f"NodeAddr=10.77.0.{number} Port=6818" if self.apart else address
            address += " State=CLOUD" * (name in self.cloud)
            conf += NODE.format(name=name, address=address, cores=CORES, memory=MEMORY_MIB)
            gres = re.search(rf"NodeName={name} Name=(\w+) Count=(\d)", self._gres)
            if gres:
                conf = f"{conf.rstrip()} Gres={gres[1]}:{gres[2]}\n"
        conf += PARTITION.format(nodes=",".join(self.nodes)) + self._conf
        if self.cloud:
            conf += self._write_cloud()
        if self._kernels:
            conf += self._write_kernels()
        for name in ("", *every):
            place = self.folder / name
            for folder in ("tmp", "state", "shared", "content"):
                (place / folder).mkdir(parents=True, exist_ok=True)
            (self.folder / "spool" / name).mkdir(parents=True, exist_ok=True)
            (place / "slurm.conf").write_text(conf)
            for file, lines in self._files.items():
                (place / file).write_text(lines)
            (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # finding out may fail
            (place / "mpi.conf").write_text(f"PMIxCliTmpDirBase={place}/tmp\n")  # /tmp is shared
        self._write_secret("munge.key", os.urandom(1024))

    def boots(self, node: str) -> int:
        """How often it was booted into another kernel."""
        file = self.folder / node / "boots"
        return len(file.read_text()) if file.exists() else 0

    def _write_kernels(self) -> str:
        """What sets a node's kernel, and what boots it; Slurm's settings for them."""
        found = [self._publish(name) for name in self._kernels]
        next_boot = self.folder / "published" / self._kernels[0] / "next-boot"
        subprocess.run((next_boot, *self.nodes), check=True)
        self._write_secret("redfish.curl", BMC_SETTINGS.encode())
        exclusive = f"MutuallyExclusive={','.join(self._kernels)}\n"
        features = (files["helpers.conf"] for files in found)
        self._files["helpers.conf"] = "".join((*features, exclusive, HELPERS))
        return KERNELS.format(published=found[0]["slurm.conf"], patience=self._resume_seconds)

    def _publish(self, name: str) -> dict[str, str]:
        """All but the kernel and its initrd."""
        root = self.folder / "published"
        netboot = Netboot(
            name=name,
            release="",
            root=str(root),
            helper=f"{root}/{name}/helper",
            redfish=BMCS,
            settings=str(self.folder),
        )
        files = texts(netboot)
        (root / name).mkdir(parents=True)
        for file, text in files.items():
            (root / name / file).write_text(text)
            (root / name / file).chmod(0o755)
        return files

    def _write_secret(self, name: str, data: bytes) -> None:
        file = self.folder / name
        file.touch(0o600)
        file.write_bytes(data)

    @property
    def _gres(self) -> str:
        return self._files.get("gres.conf", "")

    def set_cloud(self, *lines: str, boot: str = "", nodes: str = "") -> None:
        """Its settings, and these lines in addition. boot: what a machine runs; nodes: not all."""
        path = os.pathsep.join(map(str, PLACES))
        words = {"folder": self.folder, "path": path, "stepd": which("slurmstepd")}
        boot = boot or (BOOT_APART if self.apart else BOOT)
        (self.folder / "boot").write_text(boot.format(**words, python=sys.executable))
        text = SETTINGS.format(folder=self.folder, nodes=nodes or ",".join(self.cloud))
        part = self.folder / "flowos.toml.part"  # Slurm's programs read it meanwhile
        part.write_text("\n".join((text.rstrip(), *lines, "")))
        part.rename(self.folder / "flowos.toml")

    def _write_cloud(self) -> str:
        """The programs that Slurm calls, and what they read; its settings for them."""
        path = os.pathsep.join(map(str, PLACES))
        for what in ("resume", "suspend"):
            program = self.folder / what
            text = PROGRAM.format(folder=self.folder, path=path, flowos=FLOWOS, what=what)
            program.write_text(text)
            program.chmod(0o755)
        self.set_cloud()
        return CLOUD.format(
            nodes=",".join(self.cloud), folder=self.folder, patience=self._resume_seconds
        )


class AccountingBox(Box):
    accounting = True


def reserved_port() -> socket.socket:
    """A port that no other process is given, and that a daemon may listen on as long as it is held.

    Slurm sets SO_REUSEADDR, as we do: two may bind a port as long as one of them listens.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    return held


def plugins() -> Path:
    """The folder of Slurm's plugins, from where its controller lies."""
    controller = Path(which("slurmctld"))
    return next(controller.parents[1].glob("lib/*/slurm-wlm"))


def namespace(*, apart: bool = False) -> tuple[str, ...]:
    """What puts a command into namespaces of its own, as their first process."""
    mine = ("--user", "--map-current-user", *("--keep-caps",) * apart) * (os.geteuid() != 0)
    others = ("--net", "--uts", "--ipc") * apart
    return ("unshare", *mine, *others, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def show(box: Box) -> None:
    with box:
        lines = [f"export {name}={value}" for name, value in box.variables.items()]
        lines.append(" ".join(("#", *box.enter)))
        sys.stdout.write("\n".join((*lines, "")))
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    show(Box(apart="apart" in sys.argv))
