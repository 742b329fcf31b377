"""What a person types, as mypy and pyright see it: types of results, and what they refuse.

Each wrong line has to be refused, else its `ignore` is refused as unused. It runs as well.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Annotated, assert_type

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import flowos as fo
from flowos.engine import FlowSlice, HeldSlice, Slice
from flowos.operations.measure import Result
from flowos.solver import Info


@fo.task
def scaled(x: fo.float64, by: fo.int64 = 2) -> fo.float64:
    return x * by


@fo.task(retries=1, needs=fo.Needs(cores=1))
def name_of(file: fo.File) -> fo.str_:
    return file.name


@fo.task
def doubled(
    points: Annotated[NDArray[np.float64], fo.array(fo.float64, (None, 3))],
) -> Annotated[NDArray[np.float64], fo.array(fo.float64, (None, 3))]:
    return points * 2


def arrays() -> list[object]:
    port = fo.flow_input("points", fo.array(fo.float64, (None, 3)))
    with fo.slice(fo.flow_output(doubled(port))) as s:
        return s.run(np.ones((2, 3)))


def flows() -> fo.Flow:
    assert_type(scaled, fo.Task)
    assert_type(name_of, fo.Task)
    flow = fo.flow_output(scaled(fo.flow_input("x", fo.float64)), name="scaled")
    assert_type(flow, fo.Flow)
    assert_type(flow.svg(), str)
    return flow


def slices(flow: fo.Flow) -> None:
    with fo.slice(flow, cores=1) as s:
        assert_type(s, Slice)
        assert_type(s.run(1.0), list[object])
        assert_type(s.submit(1.0), Future[list[object]])
        assert_type(s.map([1.0]), Iterator[list[object]])
        assert_type(s.map([1.0], on_error="return"), Iterator[fo.RunResult])
    with fo.slice(flow, pool="local") as on_nodes:
        assert_type(on_nodes, FlowSlice)
    with fo.slice(pool="local") as held:
        assert_type(held, HeldSlice)


def feeds(folder: Path) -> None:
    np.save(folder / "tokens.npy", np.arange(12))
    with fo.Feed(folder / "tokens.npy", batch_size=2, length=3) as feed:
        assert_type(len(feed), int)
        assert_type(feed.state_dict(), dict[str, object])


def solves() -> None:
    _, info = fo.solve(scipy.sparse.eye_array(3), np.ones(3), threads=1)
    assert_type(info, Info)
    assert_type(info.residuals, tuple[float, ...])


def measures() -> Result:
    fo.measure("mpi", pool="gpu", nodes=2)
    return fo.measure("clock", effort="quick", seconds=1)


def refused(flow: fo.Flow) -> None:
    fo.flow_input(1, fo.int64)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fo.slice(flow, workers="threads")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    fo.Feed("folder")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    fo.Feed("folder", batch_size="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fo.task(scaled, retry=2)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    fo.Needs(core=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    fo.solve([], [], precision="fp16")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fo.measure(effort="long")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fo.sliec(flow)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
