"""The engines that benchmarks/engine.py compares with ours, each used as its documentation says."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _contest_tasks import (
    ARRAY_BYTES,
    CHUNK,
    HOPS,
    ITEMS,
    TASKS,
    WORKERS,
    add,
    increment,
    produce,
    subtract,
    touch,
)
from _taking_part import Cases, Contestants


def futures(kind: Callable[[int], Executor]) -> Callable[[], AbstractContextManager[Cases]]:
    @contextmanager
    def contestant() -> Iterator[Cases]:
        with kind(WORKERS) as pool:

            def chain(length: int) -> list[int]:
                value = 1
                for _ in range(length):
                    value = pool.submit(add, value, 2).result()
                return [value]

            def wide() -> list[int]:
                return [f.result() for f in [pool.submit(add, 1, i) for i in range(TASKS)]]

            cases: dict[str, Callable[[], object]] = {
                "two": lambda: [pool.submit(subtract, pool.submit(add, 1, 2).result(), 3).result()],
                "wide": wide,
                "deep": lambda: chain(TASKS),
                "loop": lambda: [pool.submit(increment, i).result() for i in range(TASKS)],
                "map": lambda: list(pool.map(increment, range(ITEMS), chunksize=CHUNK)),
            }
            if isinstance(pool, ProcessPoolExecutor):
                made = ARRAY_BYTES // 8
                cases["hop"] = lambda: chain(HOPS)
                cases["array"] = lambda: [
                    pool.submit(touch, pool.submit(produce, made).result()).result()
                ]
            yield cases

    return contestant


@contextmanager
def pool_of_processes() -> Iterator[Cases]:
    """multiprocessing: only waves of tasks, as its tasks cannot wait for one another."""
    from multiprocessing import Pool

    with Pool(WORKERS) as pool:
        yield {
            "wide": lambda: pool.starmap(add, [(1, i) for i in range(TASKS)], CHUNK),
            "map": lambda: pool.map(increment, range(ITEMS), CHUNK),
        }


def joblib_tasks(backend: str) -> Callable[[], AbstractContextManager[Cases]]:
    @contextmanager
    def contestant() -> Iterator[Cases]:
        from joblib import Parallel, delayed

        with Parallel(n_jobs=WORKERS, backend=backend) as parallel:
            yield {
                "wide": lambda: parallel(delayed(add)(1, i) for i in range(TASKS)),
                "map": lambda: parallel(delayed(increment)(i) for i in range(ITEMS)),
            }

    return contestant


def parsl_tasks(processes: bool) -> Callable[[], AbstractContextManager[Cases]]:
    @contextmanager
    def contestant() -> Iterator[Cases]:
        import parsl
        from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
        from parsl.providers import LocalProvider

        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # its workers load the tasks by name
        executor: Any = ThreadPoolExecutor(max_threads=WORKERS)
        if processes:
            executor = HighThroughputExecutor(
                address="127.0.0.1", provider=LocalProvider(), max_workers_per_node=WORKERS
            )
        with (
            TemporaryDirectory() as folder,
            parsl.load(parsl.Config(executors=[executor], run_dir=folder)),
        ):
            adds, subtracts = parsl.python_app(add), parsl.python_app(subtract)
            increments = parsl.python_app(increment)

            def chain(length: int) -> list[int]:
                value: Any = 1
                for _ in range(length):
                    value = adds(value, 2)
                return [value.result()]

            yield {
                "two": lambda: [subtracts(adds(1, 2), 3).result()],
                "wide": lambda: [f.result() for f in [adds(1, i) for i in range(TASKS)]],
                "deep": lambda: chain(TASKS),
                "loop": lambda: [increments(i).result() for i in range(TASKS)],
                "map": lambda: [f.result() for f in [increments(i) for i in range(ITEMS)]],
                "hop": lambda: chain(HOPS),
            }

    return contestant


@contextmanager
def private_ray() -> Iterator[Any]:
    """A Ray cluster of our own: never one that already runs on the machine."""
    import ray

    os.environ.pop("RAY_ADDRESS", None)
    os.environ.setdefault("RAY_CGRAPH_get_timeout", "120")
    ray.init(address="local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def ray_graphs() -> Iterator[Cases]:
    """Compiled graphs over two actors; a graph of 1,000 tasks takes seconds to compile, once."""
    with private_ray() as ray:
        from ray.dag import InputNode

        class Actor:
            def add(self, x: int, y: int) -> int:
                return add(x, y)

            def subtract(self, x: int, y: int) -> int:
                return subtract(x, y)

            def increment(self, x: int) -> int:
                return increment(x)

        remote = ray.remote(num_cpus=1)(Actor)
        first, second = remote.remote(), remote.remote()

        def two(given: Any) -> Any:
            return second.subtract.bind(first.add.bind(given, 2), 3)

        def one(given: Any) -> Any:
            return first.increment.bind(given)

        def hop(given: Any) -> Any:
            for _ in range(HOPS // 2):
                given = second.add.bind(first.add.bind(given, 2), 2)
            return given

        graph = CompiledGraph(InputNode)
        try:
            yield {
                "two": lambda: [ray.get(graph(two).execute(1))],
                "loop": lambda: [ray.get(graph(one).execute(i)) for i in range(TASKS)],
                "map": lambda: pipelined(ray, graph(one)),
                "hop": lambda: [ray.get(graph(hop).execute(1))],
            }
        finally:
            graph.tear_down()


class CompiledGraph:
    """The compiled graph used last: an actor works for one compiled graph at a time."""

    def __init__(self, input_node: Any) -> None:
        self._input_node = input_node
        self._build: Callable[[Any], Any] | None = None
        self._compiled: Any = None

    def __call__(self, build: Callable[[Any], Any]) -> Any:
        if build is not self._build:
            self.tear_down()
            with self._input_node() as given:
                self._compiled = build(given).experimental_compile()
            self._build = build
        return self._compiled

    def tear_down(self) -> None:
        if self._build is not None:
            self._build = None
            self._compiled.teardown()


def pipelined(ray: Any, graph: Any, max_in_flight: int = 8) -> list[int]:
    """As many executions in flight as a compiled graph takes by default, and two fewer."""
    flight: list[Any] = []
    results: list[int] = []
    for i in range(ITEMS):
        if len(flight) == max_in_flight:
            results.append(ray.get(flight.pop(0)))
        flight.append(graph.execute(i))
    return results + [ray.get(each) for each in flight]


@contextmanager
def ray_tasks() -> Iterator[Cases]:
    with private_ray() as ray:
        adds, subtracts, increments = map(ray.remote, (add, subtract, increment))
        makes, touches = ray.remote(produce), ray.remote(touch)

        def chain(length: int) -> list[int]:
            value: Any = 1
            for _ in range(length):
                value = adds.remote(value, 2)
            return [ray.get(value)]

        yield {
            "two": lambda: [ray.get(subtracts.remote(adds.remote(1, 2), 3))],
            "wide": lambda: ray.get([adds.remote(1, i) for i in range(TASKS)]),
            "deep": lambda: chain(TASKS),
            "loop": lambda: [ray.get(increments.remote(i)) for i in range(TASKS)],
            "map": lambda: ray.get([increments.remote(i) for i in range(ITEMS)]),
            "hop": lambda: chain(HOPS),
            "array": lambda: [ray.get(touches.remote(makes.remote(ARRAY_BYTES // 8)))],
        }


@contextmanager
def dask_tasks() -> Iterator[Cases]:
    from distributed import Client, LocalCluster

    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        first, second = list(client.scheduler_info()["workers"])[:2]

        def submit(*words: Any, **more: Any) -> Any:
            return client.submit(*words, pure=False, **more)

        def chain(length: int) -> list[int]:
            value: Any = 1
            for _ in range(length):
                value = submit(add, value, 2)
            return [value.result()]

        def array() -> list[float]:
            made = submit(produce, ARRAY_BYTES // 8, workers=[first])
            return [submit(touch, made, workers=[second]).result()]

        yield {
            "two": lambda: [submit(subtract, submit(add, 1, 2), 3).result()],
            "wide": lambda: client.gather([submit(add, 1, i) for i in range(TASKS)]),
            "deep": lambda: chain(TASKS),
            "loop": lambda: [submit(increment, i).result() for i in range(TASKS)],
            "map": lambda: client.gather(client.map(increment, range(ITEMS), pure=False)),
            "hop": lambda: chain(HOPS),
            "array": array,
        }


PEERS: Contestants = {
    "futures threads": futures(ThreadPoolExecutor),
    "futures processes": futures(ProcessPoolExecutor),
    "multiprocessing": pool_of_processes,
    "joblib threads": joblib_tasks("threading"),
    "joblib loky": joblib_tasks("loky"),
    "parsl threads": parsl_tasks(processes=False),
    "parsl htex": parsl_tasks(processes=True),
    "ray": ray_tasks,
    "ray graphs": ray_graphs,
    "dask": dask_tasks,
}
