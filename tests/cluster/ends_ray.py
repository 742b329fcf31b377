"""What the tests of a Ray that ends by parts run as on a login node: a program with a slice on it.

`python ends_ray.py SETTINGS FLAGS` makes the folder FLAGS, and prints what came of each task. A
line of its input says that a raylet was ended from outside.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flowos as fo
from flowos.engine import HoldEvent
from tests.cluster.ray_tasks import begins, dies_and_runs_again, dies_once, waits
from tests.waiting import comes


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def say_lost(act: Callable[[], object], what: str) -> None:
    try:
        say(what, act())
    except fo.WorkerLost as error:
        say("lost", error)


def main(settings: str, flags: str) -> None:
    os.environ["FLOWOS_CONFIG"] = settings
    folder = Path(flags)
    folder.mkdir()
    with fo.slice(pool="c", nodes=2, cores=2, workers="ray", fuse="none") as s:
        say("nodes", *sorted(s.nodes))
        loses_a_worker(s, folder)
        loses_a_raylet(s)
        loses_a_node(s, folder)
    say("freed")


def loses_a_worker(s: Any, folder: Path) -> None:
    """Another one goes on."""
    flag = fo.flow_input("flag", fo.str_)
    once = fo.flow_output(dies_once(flag))
    say_lost(lambda: s.run(once, str(folder / "once")), "result")
    say_lost(lambda: s.run(once, str(folder / "once")), "after")
    say("again", s.run(fo.flow_output(dies_and_runs_again(flag)), str(folder / "again")))


def loses_a_raylet(s: Any) -> None:
    """That program alone: the node itself goes on."""
    flow = fo.flow_output(waits(fo.flow_input("seconds", fo.float64)))
    results = s.map(flow, [0.1] * 8 + [2.0] * 4)
    say("began", *sorted({next(results)[0] for _ in range(8)}))
    sys.stdin.readline()
    say("results", len(list(results)))
    # workers look once a second whether their raylet is there
    say("moved", comes(lambda: {s.run(flow, 0.0)[0] for _ in range(8)} == {"n1"}))


def loses_a_node(s: Any, folder: Path) -> None:
    """There is no other one after that; a busy Ray may not know, and tries that one."""
    flow = fo.flow_output(begins(fo.flow_input("flag", fo.str_)))
    run = s.submit(flow, str(folder / "begun"))
    assert comes((folder / "begun").exists)
    s.happened(HoldEvent(what="lost", node="n1", reason="it does not answer"))
    say_lost(lambda: run.result(60), "result")
    say_lost(lambda: s.run(flow, ""), "result")


if __name__ == "__main__":
    main(*sys.argv[1:])
