"""Moments of a slice that benchmarks/slices.py times: a first task, losses, a node powered up.

`python benchmarks/_slice_moments.py lost` holds two nodes, `powered_up` one of pool `cloud`. Prints
one JSON object of seconds. `lost` first prints the name of a node that is to be stopped; `answered`
is the time when the run there had its result.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import flowos as fo


@fo.task
def act(what: fo.str_, mark: fo.str_) -> fo.str_:
    """What is to happen, unless the file is there: it names the node of the first attempt."""
    file = Path(mark)
    if what == "pause":  # long enough for both nodes to get one
        time.sleep(0.2)
    if what in ("", "pause") or file.exists():
        return what
    part = file.with_suffix(".part")
    part.write_text(os.environ["SLURMD_NODENAME"])
    part.rename(file)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(100)
    return what


def flow() -> Any:
    return fo.flow_output(act(fo.flow_input("what", fo.str_), fo.flow_input("mark", fo.str_)))


def print_once_there(file: Path) -> None:
    """What stands in it, once it is there."""
    while not file.exists():
        time.sleep(0.01)
    print(file.read_text(), flush=True)


def lost() -> dict[str, float]:
    does, folder = flow(), Path(os.environ["SHARED"])
    died, stays = (folder / f"{name}{os.getpid()}" for name in ("died", "stays"))
    with fo.slice(pool="box", nodes=2, cores=1) as held:
        began = time.perf_counter()
        held.run(does, "", "")
        first = time.perf_counter() - began
        list(held.map(does, [("pause", "")] * 6))
        with contextlib.suppress(fo.WorkerLost):
            held.run(does, "die", str(died))
        killed = time.time() - died.stat().st_mtime
        list(held.map(does, [("pause", "")] * 6))
        threading.Thread(target=print_once_there, args=(stays,)).start()
        list(held.map(does, [("stay", str(stays))]))
        return {"first": first, "killed": killed, "answered": time.time()}


def powered_up() -> dict[str, float]:
    does, began = flow(), time.perf_counter()
    with fo.slice(pool="cloud", nodes=1, cores=1) as held:
        held.run(does, "", "")
        return {"powered up": time.perf_counter() - began}


if __name__ == "__main__":
    moments = {"lost": lost, "powered_up": powered_up}
    print(json.dumps(moments[sys.argv[1]](*sys.argv[2:])))
