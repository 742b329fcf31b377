"""Starts a program of a guest on its node, in a folder of its own, of which nothing is left.

`python guest_program.py ADDRESS COMMAND...`: in words and variables of the command, FOLDER becomes
that folder, ADDRESS the address of this node as the one that was given sees it, and each PORT a
free port. Prints `FOLDER_IS` and the folder first. Standard library only. When the command ends,
or TERM comes, all that it started ends, and then the folder goes.
"""

import ctypes
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ADDRESS, FOLDER, PORT = "{flowos-address}", "{flowos-folder}", "{flowos-port}"
FOLDER_IS = "flowos-guest in "
END_SECONDS = 1.0
"""Between TERM and KILL: less than flowos-init leaves us, and the folder takes time to go."""
WAITED = {signal.SIGTERM, signal.SIGCHLD}
_SUBREAPER = 36


def own_address(seen_from: str) -> str:
    """Of the way from here to that machine; nothing is sent."""
    family = socket.AF_INET6 if ":" in seen_from else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((seen_from, 9))
        return str(sock.getsockname()[0])


def free_port(address: str) -> int:
    """It was, a moment ago."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def placed(word: str, address: str, folder: str) -> str:
    word = word.replace(ADDRESS, address).replace(FOLDER, folder)
    while PORT in word:
        word = word.replace(PORT, str(free_port(address)), 1)
    return word


def children() -> list[int]:
    """Of ours, those whose parent has ended too."""
    return [int(word) for word in Path("/proc/thread-self/children").read_text().split()]


def end_all() -> None:
    """The children of what ends become ours."""
    while pids := children():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.wait()


def run(words: list[str]) -> int:
    """Exit code of the command; 0 if it was ended by TERM. Orphans are reaped meanwhile."""
    command, until = os.posix_spawnp(words[0], words, os.environ, setsigmask=()), None
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == command:
            return abs(os.waitstatus_to_exitcode(status)) if until is None else 0
        if pid:
            continue
        if until is None:
            if signal.sigwaitinfo(WAITED).si_signo == signal.SIGTERM:
                os.kill(command, signal.SIGTERM)
                until = time.monotonic() + END_SECONDS
        elif not signal.sigtimedwait(WAITED, max(0.0, until - time.monotonic())):
            return 0


def main(seen_from: str, words: list[str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    address, folder = own_address(seen_from), tempfile.mkdtemp(prefix="flowos-guest-", dir="/tmp")
    try:
        sys.stdout.write(f"{FOLDER_IS}{folder}\n")
        sys.stdout.flush()
        os.environ["TMPDIR"] = folder
        for name, value in tuple(os.environ.items()):
            os.environ[name] = placed(value, address, folder)
        return run([placed(word, address, folder) for word in words])
    finally:
        end_all()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
