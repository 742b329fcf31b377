"""What tests of guests share, here and on a cluster."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowos.engine import Guest

FLOWOS = str(Path(sys.executable).with_name("flowos"))
CLIENTS = Path(__file__).with_name("guest_clients.py")


def answer_of(name: str, at: "Guest | str") -> object:
    """What the client of this guest got, in a process of its own."""
    address, options = (at, {}) if isinstance(at, str) else (at.address, at.options)
    words = [sys.executable, str(CLIENTS), name, address, json.dumps(options)]
    done = subprocess.run(words, capture_output=True, text=True)
    found = done.stdout.rpartition("\nanswer ")[2]
    assert done.returncode == 0, done.stderr
    return json.loads(found)


@contextmanager
def notebook(*words: str) -> Iterator[tuple[Any, "subprocess.Popen[str]"]]:
    """`flowos notebook` in the current folder, once it is served: what it says, the process."""
    command = [FLOWOS, "notebook", *words, "--json"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as served:
        assert served.stdout
        assert served.stderr
        line = served.stdout.readline()
        assert line, served.stderr.read()
        try:
            yield json.loads(line), served
        finally:
            served.send_signal(signal.SIGINT)


def named_in(folder: str) -> list[int]:
    """Processes of ours that have it in their words or variables."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            said = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
            if folder.encode() in said:
                found.append(int(place.name))
    return found
