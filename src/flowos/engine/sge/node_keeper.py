"""Keeps one node of a Grid Engine job, and starts commands there. Standard library only.

`python node_keeper.py PROOF SILENCE`, a task of the job on its node. Grid Engine lets as many tasks
start on a node as the job has slots there; so this is the only one, and commands are its children:
they are ended and accounted with the job. Lines come by standard input:

    (empty)         we are there; answered by a dot
    free            end
    start N FOLDER  start the command of file FOLDER/start
    end N           close its standard input
    kill N          kill it

and go by standard output: a word of greeting and JSON first, `out N BASE64`, `err N BASE64`, and
`exit N CODE`. The end of standard input, and SILENCE seconds without a line, are the end too.
"""

import base64
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

HELLO, FREE = "flowos-keeper", "free"
CHUNK_BYTES = 24 << 10
END_SECONDS, LATE_SECONDS = 5.0, 1.0
LOOKS, BETWEEN_LOOKS_SECONDS = 10, 0.2

_saying = threading.Lock()


def say(*words: object) -> None:
    with _saying:
        sys.stdout.write(" ".join(map(str, words)) + "\n")
        sys.stdout.flush()


class Commands:
    """Those that run, by number."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int, folder: str) -> None:
        try:
            asked = json.loads(Path(folder, "start").read_bytes())
            own = {name: value for name, value in os.environ.items() if name not in asked["env"]}
            process = subprocess.Popen(
                asked["argv"],
                env=own | asked["env"],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            say("err", number, base64.b64encode(f"{error}\n".encode()).decode())
            say("exit", number, 127)
            return
        self._running[number] = process
        threading.Thread(target=self._follow, args=(number, process), daemon=True).start()

    def end(self, number: int) -> None:
        process = self._running.get(number)
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def kill(self, number: int) -> None:
        process = self._running.get(number)
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def end_all(self) -> None:
        """And wait until they are over, but not for ever."""
        for number in tuple(self._running):
            self.end(number)
        until = time.monotonic() + END_SECONDS
        while self._running and time.monotonic() < until:
            time.sleep(0.02)

    def _follow(self, number: int, process: "subprocess.Popen[bytes]") -> None:
        passing = []
        for word, stream in (("out", process.stdout), ("err", process.stderr)):
            passing.append(threading.Thread(target=_pass_on, args=(word, number, stream)))
            passing[-1].daemon = True
            passing[-1].start()
        code = process.wait()
        for each in passing:
            each.join(LATE_SECONDS)
        del self._running[number]
        say("exit", number, code if code >= 0 else 128 - code)


def _pass_on(word: str, number: int, stream: IO[bytes]) -> None:
    while data := os.read(stream.fileno(), CHUNK_BYTES):
        say(word, number, base64.b64encode(data).decode())


def greeting(proof: str) -> dict[str, object]:
    """What this node is and has, and what stands in the file."""
    from_host = os.environ["SGE_O_HOST"]
    with open("/proc/meminfo") as file:  # noqa: PTH123 - pathlib is not needed for a line
        kib = int(file.readline().split()[1])
    rows = []
    with suppress(OSError, KeyError), open(os.environ["PE_HOSTFILE"]) as file:  # noqa: PTH123
        rows = [line.split()[0] for line in file if line.strip()]
    return {
        "job": os.environ.get("JOB_ID", ""),
        "nodes": rows,
        "our_address": socket.getaddrinfo(from_host, None, type=socket.SOCK_STREAM)[0][4][0],
        "cpus": sorted(os.sched_getaffinity(0)),
        "memory_bytes": kib << 10,
        "proof": _read(Path(proof)),
    }


def _read(proof: Path) -> str:
    """A file system between machines may remember for a while that it was not there."""
    for _ in range(LOOKS):
        with suppress(OSError):
            return proof.read_text()
        with suppress(OSError):
            os.listdir(proof.parent)  # noqa: PTH208 - with NFS it refreshes that
        time.sleep(BETWEEN_LOOKS_SECONDS)
    return ""


def obey(line: str, commands: Commands) -> None:
    what, *words = line.split(" ", 2) if line else [""]
    if what == "start":
        commands.start(int(words[0]), words[1])
    elif what == "end":
        commands.end(int(words[0]))
    elif what == "kill":
        commands.kill(int(words[0]))
    elif not what:
        say(".")


def main(proof: str, silence: str) -> None:
    commands, rest = Commands(), b""
    say(HELLO, json.dumps(greeting(proof)))
    while select.select([0], [], [], float(silence))[0] and (data := os.read(0, CHUNK_BYTES)):
        *lines, rest = (rest + data).split(b"\n")
        for line in map(os.fsdecode, lines):
            if line == FREE:
                commands.end_all()
                os._exit(0)
            obey(line, commands)
    commands.end_all()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
