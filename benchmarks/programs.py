"""The programs of examples/ against the same in Parsl and Dask: seconds, and the ratio of pairs.

preprocess: logs made ready by commands (Parsl's bash_app). solver_loop: an iteration, some tasks a
round (Dask's futures in this process). Both with their engine open, by turns, on two threads.
sweep: whole programs, killed after 137 of 500 points and started again (Parsl's checkpoints).
rounds: those of fo.loop against as many runs of its body: of one task that is repeated within its
stage, of one that is not (it has retries), and of three of which two may run side by side.
"""

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import _program_twins as twins
import numpy as np

import flowos as fo

ROUNDS, SWEEPS, KILLED_AFTER, LOGS = 6, 2, 137, 40
LOOP_ROUNDS = {"thread": 5000, "process": 500}
HERE = Path(__file__).parent
SWEEP_PROGRAMS = {
    "flowos": HERE.parent / "examples/sweep.py",
    "parsl": HERE / "_program_twins.py",
}
Run = Callable[[], object]


@contextmanager
def preprocessing(folder: Path) -> Iterator[dict[str, Run]]:
    twins.preprocess.make_logs(folder / "raw", LOGS)
    logs = sorted((folder / "raw").iterdir())
    with (
        fo.slice(twins.preprocess.flow_of_one(), cores=twins.WORKERS) as s,
        twins.parsl_preprocess() as parsl,
    ):

        def flowos() -> list[Any]:
            outputs: Any = s.map(logs)
            return [(rows, mean, Path(done).read_bytes()) for done, rows, mean in outputs]

        yield {"flowos": flowos, "parsl": lambda: parsl(logs)}


@contextmanager
def solving() -> Iterator[dict[str, Run]]:
    with (
        fo.slice(twins.solver_loop.flow_of_plate(), cores=twins.WORKERS) as s,
        twins.dask_solver() as dask,
    ):

        def flowos() -> tuple[object, bytes]:
            plate, rounds, _ = s.run(twins.solver_loop.cold_plate())
            return rounds, np.asarray(plate).tobytes()

        yield {"flowos": flowos, "dask": dask}


@contextmanager
def sweeping() -> Iterator[dict[str, Run]]:
    yield {name: partial(killed_once, file) for name, file in SWEEP_PROGRAMS.items()}


def killed_once(program: Path) -> str:
    """What it prints in the end; the sum of both runs is timed."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        words, seen = [sys.executable, str(program), made], folder / "computed.txt"
        first = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while first.poll() is None and (
            not seen.exists() or seen.read_bytes().count(b"\n") < KILLED_AFTER
        ):
            time.sleep(0.002)
        first.send_signal(signal.SIGKILL)
        first.wait()
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        computed = seen.read_text().split()
        if len(set(computed)) != 500 or len(computed) > 500 + 2 * twins.WORKERS:
            raise SystemExit(f"{program.name}: {len(computed)} points were computed")
        return done.stdout.splitlines()[-1]


@fo.task
def step(x: fo.int64) -> fo.int64:
    return x + 1


@fo.task(retries=1)
def step_again(x: fo.int64) -> fo.int64:
    return x + 1


@fo.task
def least(x: fo.int64, y: fo.int64) -> fo.int64:
    return min(x, y)


def bodies() -> dict[str, fo.Flow]:
    x = fo.flow_input("x", fo.int64)
    fork = least(step_again(x), step(x))
    ports = {"one_stage": step(x), "retries": step_again(x), "side_by_side": fork}
    return {name: fo.flow_output(port) for name, port in ports.items()}


@contextmanager
def looping(body: fo.Flow, workers: Any) -> Iterator[dict[str, Run]]:
    count = LOOP_ROUNDS[workers]
    x = fo.flow_input("x", fo.int64)
    with (
        fo.slice(fo.loop(body, x, max_rounds=count), workers=workers) as looped,
        fo.slice(body, workers=workers) as once,
    ):

        def runs() -> object:
            value: object = 0
            for _ in range(count):
                (value,) = once.run(value)
            return value

        yield {"loop": lambda: looped.run(0)[0], "runs": runs}


def rounds() -> dict[str, Any]:
    found = {}
    for workers in LOOP_ROUNDS:
        for name, body in bodies().items():
            with looping(body, workers) as ways:
                found[f"{name}, {workers}"] = compared(ways, ROUNDS)
    return found


def compared(ways: dict[str, Run], rounds: int) -> dict[str, Any]:
    """Both by turns, A B B A; their results have to be equal."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    checksums: dict[str, str] = {}
    for name, way in ways.items():
        checksums[name] = hashlib.sha256(repr(way()).encode()).hexdigest()[:16]
    if len(set(checksums.values())) != 1:
        raise SystemExit(f"results differ: {checksums}")
    for i in range(rounds):
        for name in list(ways)[:: 1 if i % 2 == 0 else -1]:
            began = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - began)
    ours, theirs = times.values()
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    return {
        "seconds": {name: round(median(each), 4) for name, each in times.items()},
        "checksums": checksums,
        "ratio": round(median(ratios), 3),
        "ratios": [round(ratios[0], 3), round(ratios[-1], 3)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.parse_args()
    answer: dict[str, Any] = {"rounds": rounds()}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = {"preprocess": preprocessing(folder), "solver_loop": solving()}
        for name, program in {**programs, "sweep": sweeping()}.items():
            try:
                with program as ways:
                    answer[name] = compared(ways, SWEEPS if name == "sweep" else ROUNDS)
            except ImportError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
