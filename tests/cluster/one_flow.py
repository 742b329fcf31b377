"""One program, which is the same wherever its pool is: `python one_flow.py POOL NODES [WORKERS]`.

Runs the program of the paper (`examples/paper.py`, all that comes before its slice) and a flow of
100 tasks on all nodes of the pool, and prints the SHA-256 of all outputs, and the nodes that tasks
ran on.
"""

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import flowos as fo
from flowos.engine import HeldSlice, Workers

Array = npt.NDArray[np.float64]
PAPER = Path(__file__).parents[2] / "examples/paper.py"
LAYERS, WIDTH, SIZE, ITEMS = 12, 8, 1000, 20


@fo.task
def make(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(SIZE)


@fo.task
def parse(printed: str) -> Array:
    return np.full(SIZE, float(printed))


@fo.task
def mix(a: Array, b: Array) -> Array:
    return np.sqrt(np.abs(a)) * np.sign(b) + np.roll(b, 7) / 3


@fo.task
def told(a: Array) -> str:
    return a.tobytes().hex()


@fo.task
def where(seed: int) -> str:  # noqa: ARG001 - each item asks
    return os.environ.get("SLURMD_NODENAME", os.uname().nodename)


def hundred() -> fo.Flow:
    """2 + 7 + 11 x 8 + 2 + 1 tasks: each layer mixes neighbours of the one before."""
    seed = fo.flow_input("seed", fo.int64)
    first = fo.command(
        ["sh", "-c", "echo $(($0 * 31 % 1009))", fo.In("seed")],
        name="first", inputs={"seed": fo.int64},
    )  # fmt: skip
    layer: list[Any] = [parse(first(seed)), *(make(seed) for _ in range(WIDTH - 1))]
    for _ in range(LAYERS - 1):
        layer = [mix(a, b) for a, b in zip(layer, [*layer[1:], layer[0]], strict=True)]
    return fo.flow_output(*map(told, layer[:2]), where(seed))


def paper() -> tuple[fo.Flow, tuple[int, ...]]:
    """Its flow, and what it gives it."""
    program, _, rest = PAPER.read_text().partition("s = fo.slice(o)\n")
    names: dict[str, Any] = {}
    exec(compile(program, str(PAPER), "exec"), names)
    assert rest.startswith("vs = s.run(1, 2, 3)")
    return names["o"], (1, 2, 3)


def digest(s: HeldSlice) -> tuple[str, set[str]]:
    """Of all outputs, and the nodes."""
    flow, given = paper()
    results = [s.run(flow, *given), *s.map(hundred(), range(ITEMS))]
    assert results[0] == [0]
    names = {str(result.pop()) for result in results[1:]}
    return hashlib.sha256(repr(results).encode()).hexdigest(), names


def main(pool: str, nodes: str, workers: Workers = "process") -> None:
    with fo.slice(pool=pool, nodes=int(nodes), cores=2, workers=workers) as s:
        found, names = digest(s)
    sys.stdout.write(f"{found} {' '.join(sorted(names))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]  # what is no workers is refused
