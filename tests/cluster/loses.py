"""What the tests of lost nodes run as on a login node: a program that runs one command.

`python loses.py SHARED WAY KEYS [once]` holds all nodes of a pool, whose other keys are KEYS in
JSON, and runs the command on one, by run, map, submit or arun; or on both, by a map. It writes its
node into SHARED/began, waits for SHARED/go, and then writes its node into SHARED/done. Printed are
the nodes, those that are lost, and how it ended. once: it is not requeued. SHARED/answered has the
nodes whose kernels answered once: what never did is not missed, as a firewall may be there.
"""

import asyncio
import faulthandler
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flowos as fo
from flowos.engine import HeldSlice, HoldEvent, SliceOptions, provider_of
from flowos.model import Ask, Pool

SCRIPT = """
echo $(uname -n) >> $0/began
until [ -e $0/go ]; do sleep 0.05; done
echo $(uname -n) >> $0/done
echo end $1 $FLOWOS_ATTEMPT
"""


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def heard(event: HoldEvent) -> None:
    if event.what == "lost":
        say("lost", event.node, event.reason)


def note_answers(nodes: Sequence[Any], file: Path) -> None:
    left = list(nodes)
    while left:
        for node in [each for each in left if each.echo.is_heard]:
            left.remove(node)
            with file.open("a") as answered:
                answered.write(f"{node.name}\n")
        time.sleep(0.05)


def main(shared: str, way: str, keys: str, once: str = "") -> None:
    faulthandler.dump_traceback_later(40)  # before its test gives up
    words = ["sh", "-c", SCRIPT, shared, fo.In("x")]
    inputs = {"x": fo.int64}
    task = fo.command(words, name="waits", inputs=inputs, stdout="said", requeue=not once)
    flow = fo.flow_output(task(fo.flow_input("x", fo.int64)))
    provider = provider_of(Pool(name="loses", shared=shared, **json.loads(keys)))
    folder = Path(shared) / "files"
    ask, options = Ask(nodes=provider.pool.nodes), SliceOptions(cores=1, folder=folder)
    with HeldSlice(provider, ask, options, heard) as s:
        say("held", *s.nodes)
        noting = (s._held.nodes, Path(shared) / "answered")
        threading.Thread(target=note_answers, args=noting, daemon=True).start()
        ways: dict[str, Callable[[], object]] = {
            "run": lambda: s.run(flow, 7),
            "map": lambda: next(s.map(flow, [7])),
            "both": lambda: list(s.map(flow, [7, 8])),
            "submit": lambda: s.submit(flow, 7).result(),
            "arun": lambda: asyncio.run(s.arun(flow, 7)),
        }
        try:
            say("result", ways[way]())
        except fo.WorkerLost as error:
            say("failed", error)
    say("freed")


if __name__ == "__main__":
    main(*sys.argv[1:])
