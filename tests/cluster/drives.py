"""What the tests of faults run inside a `Box` whose nodes are apart: a program that holds a slice.

`python drives.py SHARED REQUEUE COUNT` maps COUNT items over two nodes; each item names its node.
REQUEUE is yes, no, or submit: COUNT runs instead of a map.
Prints `held JOB`, a line `began ITEM NODE PID` for each item that begins, then the end in one line.
"""

import os
import sys
import time
from pathlib import Path

import flowos as fo
from flowos.engine import HeldSlice, HoldEvent, SliceOptions, provider_of
from flowos.model import Ask, FlowosError, Pool


@fo.task
def item(x: fo.int64) -> fo.str_:
    node = os.environ["SLURMD_NODENAME"]
    sys.stdout.write(f"began {x} {node} {os.getpid()}\n")
    sys.stdout.flush()
    until = Path(os.environ["SHARED"], "go")
    while not until.exists():
        time.sleep(0.01)
    return f"{x}"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def heard(event: HoldEvent) -> None:
    say("event", event.what, event.node, event.reason)


def submitted(s: HeldSlice, flow: fo.Flow, count: int) -> None:
    runs = [s.submit(flow, x) for x in range(count)]
    errors = [run.exception() for run in fo.as_completed(runs)]
    lost = [str(error) for error in errors if isinstance(error, fo.WorkerLost)]
    say("results", errors.count(None), "lost", len(lost), *lost[:1])


def main(shared: str, requeue: str, count: str) -> None:
    os.environ["SHARED"] = shared
    pool = Pool(name="c", kind="slurm", nodes=2, shared=shared)
    flow = fo.flow_output(item(fo.flow_input("x", fo.int64)))
    options = SliceOptions(cores=1)
    provider = provider_of(pool)
    with HeldSlice(provider, Ask(nodes=2), options, heard, requeue=requeue != "no") as s:
        say("held", *(node.allocation.job for node in s.held.nodes[:1]))  # type: ignore[attr-defined]
        try:
            if requeue == "submit":
                submitted(s, flow, int(count))
            else:
                say("results", *(result[0] for result in s.map(flow, range(int(count)))))
        except FlowosError as error:
            say("failed", type(error).__name__, error)
    say("freed")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except fo.SliceRefused as error:
        say("refused", error)
