"""A Slurm of this user's own: two nodes, no root, idle in a third of a second.

`with Box() as box:` in a test. To try things out, `python tests/cluster/box.py` prints the
variables by which Slurm's commands find it, and ends it with its standard input.

All daemons, and what they start, live in a process namespace of their own. Its first process ends
with its standard input, so that nothing outlives the test, however the test ends, and removes the
folder. Ports are the kernel's choice, and reserved as long as the box is there.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

PATIENCE_SECONDS = float(os.environ.get("FLOWOS_BOX_SECONDS", "30"))
UNPACKED = Path(__file__).parents[2] / ".deps/debian/usr"
PLACES = (UNPACKED / "bin", UNPACKED / "sbin", *map(Path, ("/usr/bin", "/usr/sbin", "/bin")))
"""First what tools/setup unpacked, not the commands of a cluster that this machine belongs to."""

CORES, MEMORY_MIB = 4, 4000
"""Of each node, whatever this machine has."""

CONF = """\
ClusterName=box
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
PluginDir={plugins}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=permit_job_expansion,batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdTimeout=10
InactiveLimit=0
TreeWidth=65533
MailProg=/bin/true
"""
NODE = """\
NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} \
CPUs={cores} RealMemory={memory}
"""
PARTITION = "PartitionName=main Nodes={nodes} Default=YES MaxTime=60 State=UP\n"


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

    def __init__(self, nodes: int = 2) -> None:
        self.nodes = tuple(f"n{number}" for number in range(1, nodes + 1))
        self.folder = Path(tempfile.mkdtemp(prefix="flowos-slurm-"))  # short, for the socket's path
        self._ports = [reserved_port() for _ in range(nodes + 1)]
        self._first: subprocess.Popen[str] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Of commands that are to find it."""
        path = os.pathsep.join((str(Path(which("srun")).parent), os.environ["PATH"]))
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def ask(self, *words: str) -> str:
        """Standard output of one of Slurm's commands."""
        return self.run(*words).stdout.strip()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **self.variables}
        return subprocess.run(
            words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    def __enter__(self) -> "Box":
        self._write()
        inside = (sys.executable, "-I", "-S", __file__, str(self.folder), *self.nodes)
        self._first = subprocess.Popen(
            (*namespace(), *inside),
            env={**os.environ, **self.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is the test's
        )
        assert self._first.stdout
        if (said := self._first.stdout.readline()) != "idle\n":
            said += self._first.stdout.read()
            self.close()
            raise BoxError(said)
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

    def _write(self) -> None:
        controller, *ports = (port.getsockname()[1] for port in self._ports)
        conf = CONF.format(
            user=pwd.getpwuid(os.geteuid()).pw_name,
            folder=self.folder,
            plugins=plugins(),
            controller=controller,
        )
        for name, port in zip(self.nodes, ports, strict=True):
            conf += NODE.format(name=name, port=port, cores=CORES, memory=MEMORY_MIB)
            (self.folder / "spool" / name).mkdir(parents=True)
        conf += PARTITION.format(nodes=",".join(self.nodes))
        (self.folder / "state").mkdir()
        for name in ("", *self.nodes):
            place = self.folder / name
            (place / "tmp").mkdir(parents=True)
            (place / "slurm.conf").write_text(conf)
            (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # finding out may fail
            (place / "mpi.conf").write_text(f"PMIxCliTmpDirBase={place}/tmp\n")  # /tmp is shared
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))


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


def namespace() -> tuple[str, ...]:
    """What puts a command into namespaces of its own, as their first process."""
    mine = ("--user", "--map-current-user") * (os.geteuid() != 0)
    return ("unshare", *mine, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


# ---- from here on, inside ----


def run_inside(folder: Path, nodes: tuple[str, ...]) -> None:
    """As first process of the namespace: start all, say so, and end with the standard input."""
    try:
        start_all(folder, nodes)
        say("idle")
        signal.signal(signal.SIGCHLD, reap)
        reap()
        sys.stdin.read()
    except BoxError as error:
        say(str(error))
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_all()
        shutil.rmtree(folder, ignore_errors=True)


def say(*lines: str) -> None:
    sys.stdout.write("\n".join((*lines, "")))
    sys.stdout.flush()


def start_all(folder: Path, nodes: tuple[str, ...]) -> None:
    munge = {name: f"{folder}/munge.{name}" for name in ("key", "sock", "pid", "log", "seed")}
    start(
        which("munged"),
        *("--foreground", "--force", f"--key-file={munge['key']}", f"--socket={munge['sock']}"),
        *(f"--pid-file={munge['pid']}", f"--log-file={munge['log']}"),
        f"--seed-file={munge['seed']}",
    )
    await_true(Path(munge["sock"]).exists, folder, "munged has no socket")
    start(which("slurmctld"), "-D", "-c")
    await_true(
        lambda: " UP" in said(which("scontrol"), "ping"), folder, "slurmctld does not answer"
    )
    for name in nodes:
        words = (which("slurmd"), "-D", "-N", name, "-d", which("slurmstepd"))
        start(*words, conf=folder / name / "slurm.conf")
    states = (which("sinfo"), "--noheader", "--Node", "--partition=main", "--format=%T")
    await_true(lambda: said(*states).split() == ["idle"] * len(nodes), folder, "no idle nodes")


def start(*words: str, conf: Path | None = None) -> None:
    subprocess.Popen(
        words,
        env=os.environ if conf is None else {**os.environ, "SLURM_CONF": str(conf)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True).stdout


def await_true(check: Callable[[], bool], folder: Path, complaint: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not check():
        if time.monotonic() > until:
            logs = (f"{log.name}:\n{log.read_text()[-2000:]}" for log in folder.glob("*.log"))
            raise BoxError("\n".join((complaint, *logs)))
        time.sleep(0.005)


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


def show() -> None:
    with Box() as box:
        say(*(f"export {name}={value}" for name, value in box.variables.items()))
        sys.stdin.read()


if __name__ == "__main__":
    if os.getpid() == 1 and len(sys.argv) > 2:
        run_inside(Path(sys.argv[1]), tuple(sys.argv[2:]))
    else:
        show()
