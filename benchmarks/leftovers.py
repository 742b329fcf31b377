"""Kills parts of launches at random moments, and checks that nothing is left over.

`python benchmarks/leftovers.py [--json] [--starts 1000] [--seed N] [--image NAME]`
If run as root, it switches to an ordinary user by tools/as-user. Bare and every usable runtime and
form alternate. Each start runs a command with two grandchildren, one of them in a session of its
own and without any of our streams. At a random moment one of these gets SIGKILL: the outermost
process (the runtime), flowos-init, the command, or the process that serves or monitors the image
(squashfuse, conmon). Then the launch is stopped and waited for. Counted are processes with the
start's mark or in its session, run folders, and, at the end, mounts and files of this run. Exit 1
when anything was left.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _numbers import whole_number
from environments import (
    AS_USER,
    IMAGE,
    words_for,
)

from flowos import engine
from flowos.engine import Ready, RunningProcess
from flowos.model import BARE, Environment, FlowosError, Launch
from flowos.operations.environment import environment

VICTIMS = ("runtime", "init", "command", "helper")
HELPERS = ("squashfuse", "conmon")
LATEST_SECONDS = {"podman": 0.6, "apptainer": 0.3}
USUAL_LATEST_SECONDS = 0.1
GRACE_SECONDS = 0.2
PATIENCE_SECONDS = 30.0
STARTS_PER_READY = 25


@dataclass
class Tally:
    """Of one environment and victim: starts, those whose victim existed, and what was left."""

    starts: int = 0
    hit: int = 0
    processes: int = 0
    folders: int = 0
    late: int = 0


@dataclass
class Trials:
    seed: int
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def run(self, label: str, env: Environment) -> bool:
        """One start; False if a helper of the image was killed: it must be set up again."""
        self.number += 1
        victim = self.random.choice(VICTIMS)
        tally = self.tallies.setdefault((label, victim), Tally())
        tally.starts += 1
        mark = f"3000.{os.getpid()}{self.number:05d}"
        latest = LATEST_SECONDS.get(env.runtime, USUAL_LATEST_SECONDS)
        running = started(env, mark)
        time.sleep(self.random.uniform(0, latest))
        hit = killed(victim, running)
        tally.hit += hit
        running.stop(GRACE_SECONDS)
        try:
            running.wait(PATIENCE_SECONDS)
        except TimeoutError:
            tally.late += 1
        left = {*marked(mark), *in_session(running.pid)}
        tally.processes += len(left)
        tally.folders += running.folder.exists()
        for pid in left:
            kill(pid)
        return not (hit and victim == "helper")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--starts", type=whole_number(), default=1000)
    parser.add_argument("--seed", type=int, default=None, help="drawn, and printed, by default")
    parser.add_argument("--image", default=IMAGE, help="a name in the image library")
    args = parser.parse_args()
    if os.geteuid() == 0:  # podman is not usable as root
        os.execv(AS_USER, [str(AS_USER), sys.executable, *sys.argv])
    trials = Trials(args.seed if args.seed is not None else random.SystemRandom().getrandbits(32))
    before = strays()
    with tempfile.TemporaryDirectory(prefix="flowos-left-", dir="/var/tmp") as name:
        places = words_for(args.image, Path(name))
        envs = {"bare": BARE, **{f"{r} {f}": environment(w) for (r, f), w in places.items()}}
        while trials.number < args.starts:
            for label, env in envs.items():
                a_few(trials, label, env, min(STARTS_PER_READY, args.starts - trials.number))
    answer = summary(trials, strays() - before)
    print(json.dumps(answer, indent=1))
    return 0 if answer["left"] == 0 else 1


def a_few(trials: Trials, label: str, env: Environment, starts: int) -> None:
    ready = engine.here().ready(env)
    try:
        for _ in range(starts):
            if not trials.run(label, ready.env):
                ready = anew(ready, env)
    finally:
        ready.close()


def anew(ready: Ready, env: Environment) -> Ready:
    ready.close()
    return engine.here().ready(env)


def started(env: Environment, mark: str) -> RunningProcess:
    alone = f"setsid sleep {mark} </dev/null >/dev/null 2>&1 &"
    script = f"{alone} sleep {mark} & exec sleep {mark}"
    variables = (("PATH", "/usr/bin:/bin"), ("HOME", "/tmp"))
    return engine.here().start(Launch(argv=("sh", "-c", script), env=env, variables=variables))


def killed(victim: str, running: RunningProcess) -> bool:
    """Send SIGKILL to the victim, if it exists already."""
    if victim == "runtime":
        return kill(running.pid)
    if victim == "helper":
        return any([kill(pid) for pid in helpers(running.pid)])
    try:
        init, command, *_ = map(int, (running.folder / "started.0").read_text().split())
    except (OSError, ValueError):
        return False
    return kill(init if victim == "init" else command)


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def helpers(runtime: int) -> list[int]:
    """Processes that serve our images or monitor our containers."""
    ours = str(engine.here().folder())
    started_by_it = in_session(runtime)
    return [
        pid
        for pid, words in processes()
        if any(name in words.partition(" ")[0] for name in HELPERS)
        and (ours in words or pid in started_by_it)
    ]


def in_session(number: int) -> set[int]:
    """Processes of that session, without zombies."""
    found = set()
    for pid, words in processes():
        with contextlib.suppress(OSError):
            if words and os.getsid(pid) == number:
                found.add(pid)
    return found


def marked(mark: str) -> list[int]:
    return [pid for pid, words in processes() if mark in words and words.startswith("sleep")]


def processes() -> Iterator[tuple[int, str]]:
    """Number and command line of every process that has one; zombies have none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                yield int(entry.name), words.decode(errors="replace")


def strays() -> set[str]:
    """Mounts of ours, and files that runtimes leave when they are killed."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    mounts = {line.split()[4] for line in lines if "/flowos-" in line.split()[4]}
    made = {str(path) for path in Path("/tmp").glob("ch-run_*")}
    return {place for place in mounts if "squashfuse" in place or "/tmp/" in place} | made


def summary(trials: Trials, strays_left: set[str]) -> dict[str, Any]:
    rows = [
        {"environment": label, "victim": victim, **vars(tally)}
        for (label, victim), tally in sorted(trials.tallies.items())
    ]
    sums: Counter[str] = Counter()
    for tally in trials.tallies.values():
        sums.update(processes=tally.processes, folders=tally.folders, late=tally.late)
    return {
        "claim": "0 processes, mounts or files of ours are left",
        "seed": trials.seed,
        "starts": trials.number,
        "left": sum(sums.values()) + len(strays_left),
        **sums,
        "strays": sorted(strays_left),
        "rows": rows,
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FlowosError as error:
        sys.exit(f"leftovers: {error}")
