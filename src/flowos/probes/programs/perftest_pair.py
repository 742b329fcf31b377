"""Runs a program of perftest as server and as client, and prints what the client prints.

usage: python3 perftest_pair.py [--nodes 2] PROGRAM OPTION...

Standard library only, Python 3.8 or newer. Both are on this node; with --nodes 2, mpirun or srun
starts this on two of them, in a folder that both see, and the server is on the first. The client
tries to connect once, so it is started when the server listens. Prints on the first node; exits
with 1 and a line if either fails.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO

from node_links import NodeLinks, NodeLinksError, linked

LISTEN_SECONDS, END_SECONDS, FAILED_SECONDS, AGAIN_SECONDS = 60.0, 10.0, 1.0, 0.02
LISTENING = "0A"
"""State of a socket in /proc/net/tcp."""
SAID_LINES, SAID_BYTES = 4, 4096


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


def is_listened_to(port: int) -> bool:
    """Asked of the kernel, as the server takes one connection and no other."""
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:  # there is no IPv6
            continue
        rows = [line.split() for line in lines]
        if any(row[1].endswith(f":{port:04X}") and row[3] == LISTENING for row in rows):
            return True
    return False


def comes_up(server: subprocess.Popen[bytes], port: int) -> bool:
    until = time.monotonic() + LISTEN_SECONDS
    while time.monotonic() < until and server.poll() is None:
        if is_listened_to(port):
            return True
        time.sleep(AGAIN_SECONDS)
    return False


def serve(words: list[str], complaint: BinaryIO) -> subprocess.Popen[bytes]:
    """Its table is the client's, too. complaint: a file, as a pipe fills up."""
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=complaint)


def client(words: list[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    except OSError as why:
        return {"code": 1, "stdout": "", "stderr": str(why)}
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def end(server: subprocess.Popen[bytes], said: dict[str, Any] | None) -> None:
    """After its client it ends by itself, and else waits for one."""
    try:
        well = said is not None and said["code"] == 0
        server.wait(END_SECONDS if well else FAILED_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def last_words(complaint: BinaryIO) -> str:
    complaint.seek(max(0, complaint.seek(0, os.SEEK_END) - SAID_BYTES))
    return complaint.read().decode(errors="replace")


def in_a_line(role: str, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{role}: {' / '.join(lines[-SAID_LINES:])}" if lines else ""


def run(words: list[str], links: NodeLinks) -> None:
    """A server on the first node, a client on the last."""
    port = int(links.gathered(free_port())[0])
    words = [*words, "-p", str(port)]
    with tempfile.TemporaryFile() as complaint:
        server = serve(words, complaint) if links.number == 0 else None
        try:
            up = all(links.gathered(server is None or comes_up(server, port)))
            is_last = links.number == links.count - 1
            said = links.gathered(client([*words, links.first]) if is_last and up else None)[-1]
        except (NodeLinksError, OSError):
            if server is not None:
                server.kill()
            raise
        if server is not None:
            end(server, said)
            show(said, last_words(complaint), Path(words[0]).name)


def show(said: dict[str, Any] | None, complaint: str, name: str) -> None:
    if said is not None and said["code"] == 0:
        sys.stdout.write(said["stdout"])
        return
    told = [in_a_line("server", complaint)]
    if said is not None:
        told.append(in_a_line("client", said["stderr"] or f"exit {said['code']}"))
    why = "; ".join(filter(None, told)) or "the server does not listen"
    sys.exit(f"perftest_pair: {name} failed: {why}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run server and client of perftest.")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="PROGRAM")
    asked = parser.parse_args()
    try:
        run(asked.words, linked(asked.nodes, Path("flowos-nodes.json")))
    except (NodeLinksError, OSError) as why:
        sys.exit(f"perftest_pair: {why}")


if __name__ == "__main__":
    main()
