"""The peers of benchmarks/slices.py. Each holds an allocation of its own, and ends it.

They are started as their documentation says for an allocation that is held: Ray with a head
without CPUs next to the program, Dask with its scheduler there, Parsl by its SrunLauncher,
executorlib by steps of its own, mpi4py.futures as a program of three ranks.
"""

import functools
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _contest_tasks import ARRAY_BYTES, increment, touch
from _taking_part import Cases, Contestants

HERE = os.environ.get("FLOWOS_LOGIN_ADDRESS", "127.0.0.1")
"""Of this machine, as nodes see it."""
BIN = Path(sys.executable).parent
HOPS, ITEMS = 100, 1500
END_SECONDS = 20.0


def produce(count: int) -> Any:
    import numpy

    return numpy.ones(count)


class Allocation:
    """Two nodes that are held; `free` gives them back."""

    def __init__(self) -> None:
        done = subprocess.run(
            ("salloc", "--no-shell", "-N2", "-n2", "--exclusive"),
            capture_output=True,
            text=True,
            check=True,
        )
        found = re.search(r"Granted job allocation (\d+)", done.stderr)
        assert found, done.stderr
        self.job = found[1]

    def words(self, *more: str) -> tuple[str, ...]:
        return ("srun", f"--jobid={self.job}", "--overlap", *more)

    def begin(self, *more: str) -> "subprocess.Popen[bytes]":
        return begin(*self.words("-N2", "-n2", *more))

    def free(self) -> None:
        subprocess.run(("scancel", self.job), check=True)


@contextmanager
def allocation() -> Iterator[Allocation]:
    held = Allocation()
    try:
        yield held
    finally:
        held.free()


def begin(*words: str) -> "subprocess.Popen[bytes]":
    nothing = subprocess.DEVNULL
    return subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing)


@contextmanager
def ended(*processes: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def quiet(*words: str) -> list[None]:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return [None]


@contextmanager
def srun() -> Iterator[Cases]:
    """Commands as steps, by Slurm alone."""
    with allocation() as held:
        yield {
            "command": lambda: quiet(*held.words("-N1", "-n1", "true")),
            "hold": lambda: quiet("srun", "-N2", "-n2", "--exclusive", "true") and None,
        }


def until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit("the cluster did not come")
        time.sleep(0.02)


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """A head without CPUs here and a raylet on each node; one token for all."""
    os.environ.update(
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=secrets.token_hex(32),
        RAY_USAGE_STATS_ENABLED="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        PYTHONPATH=str(Path(__file__).parent),
    )
    start = (str(BIN / "ray"), "start", "--block", "--disable-usage-stats")
    store = "--object-store-memory=600000000"
    address = f"{HERE}:6379"
    with allocation() as held:
        head = begin(
            *start,
            "--head",
            "--num-cpus=0",
            f"--node-ip-address={HERE}",
            "--port=6379",
            "--include-dashboard=false",
            store,
        )
        with ended(head):
            until(lambda: answers(HERE, 6379))
            nodes = held.begin(*start, f"--address={address}", "--num-cpus=1", store)
            with ended(nodes):
                import ray

                until(lambda: joined(ray, address))
                until(lambda: sum(node["Alive"] for node in ray.nodes()) == 3)
                try:
                    yield ray
                finally:
                    ray.shutdown()


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1.0).close()
    except OSError:
        return False
    return True


def joined(ray: Any, address: str) -> bool:
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError):
        return False
    return True


def on_node(ray: Any) -> list[Any]:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ids = [node["NodeID"] for node in ray.nodes() if node["Resources"].get("CPU")]
    return [NodeAffinitySchedulingStrategy(each, soft=False) for each in ids]


@contextmanager
def ray_tasks() -> Iterator[Cases]:
    """The array is read on both nodes at once, as by FlowOS in Ray."""
    with ray_cluster() as ray:
        increments, makes, touches = map(ray.remote, (increment, produce, touch))
        first, second = on_node(ray)

        def array() -> list[float]:
            made = makes.options(scheduling_strategy=first).remote(ARRAY_BYTES // 8)
            read = [touches.options(scheduling_strategy=s).remote(made) for s in (first, second)]
            return list(ray.get(read)[:1])

        yield {
            "hop": lambda: [ray.get(increments.remote(i)) for i in range(HOPS)],
            "wide": lambda: ray.get([increments.remote(i) for i in range(ITEMS)]),
            "array": array,
        }


@contextmanager
def ray_actors() -> Iterator[Cases]:
    with ray_cluster() as ray:

        class Actor:
            def increment(self, x: int) -> int:
                return increment(x)

            def produce(self, count: int) -> Any:
                return produce(count)

            def touch(self, values: Any) -> float:
                return touch(values)

        kind = ray.remote(num_cpus=1)(Actor)
        first, second = (kind.options(scheduling_strategy=each).remote() for each in on_node(ray))

        def wide() -> list[int]:
            actors = (first, second)
            found: list[int] = ray.get([actors[i & 1].increment.remote(i) for i in range(ITEMS)])
            return found

        yield {
            "hop": lambda: [ray.get(first.increment.remote(i)) for i in range(HOPS)],
            "wide": wide,
            "array": lambda: [ray.get(second.touch.remote(first.produce.remote(ARRAY_BYTES // 8)))],
        }


@contextmanager
def dask_tasks() -> Iterator[Cases]:
    from distributed import Client

    address = f"tcp://{HERE}:8786"
    dask = str(BIN / "dask")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with allocation() as held:
        scheduler = begin(dask, "scheduler", "--host", HERE, "--port", "8786", "--no-dashboard")
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        workers = held.begin(dask, "worker", address, *options)
        with ended(workers, scheduler), Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            first, second = list(client.scheduler_info()["workers"])[:2]
            submit = functools.partial(client.submit, pure=False)

            def array() -> list[float]:
                made = submit(produce, ARRAY_BYTES // 8, workers=[first])
                return [submit(touch, made, workers=[second]).result()]

            yield {
                "hop": lambda: [submit(increment, i).result() for i in range(HOPS)],
                "wide": lambda: client.gather(client.map(increment, range(ITEMS), pure=False)),
                "array": array,
            }


@contextmanager
def parsl_tasks() -> Iterator[Cases]:
    import parsl
    from parsl.executors import HighThroughputExecutor
    from parsl.launchers import SrunLauncher
    from parsl.providers import LocalProvider

    os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    made = TemporaryDirectory(dir=os.environ["SHARED"], ignore_cleanup_errors=True)
    with allocation() as held, made as folder:
        executor = HighThroughputExecutor(
            address=HERE,
            encrypted=False,
            max_workers_per_node=1,
            worker_logdir_root=folder,
            provider=LocalProvider(
                nodes_per_block=2,
                init_blocks=1,
                max_blocks=1,
                launcher=SrunLauncher(overrides=f"--jobid={held.job} --overlap -N2"),
            ),
        )
        config = parsl.Config(
            executors=[executor], run_dir=folder, strategy="none", usage_tracking=0
        )
        with parsl.load(config):
            increments, makes, touches = map(parsl.python_app, (increment, produce, touch))
            yield {
                "hop": lambda: [increments(i).result() for i in range(HOPS)],
                "wide": lambda: [f.result() for f in [increments(i) for i in range(ITEMS)]],
                "array": lambda: [touches(makes(ARRAY_BYTES // 8)).result()],
            }


def futures_of(pool: Any) -> Cases:
    """Of an executor of concurrent.futures; values go by way of this program."""

    def array() -> list[float]:
        made = pool.submit(produce, ARRAY_BYTES // 8).result()
        return [pool.submit(touch, made).result()]

    return {
        "hop": lambda: [pool.submit(increment, i).result() for i in range(HOPS)],
        "wide": lambda: [f.result() for f in [pool.submit(increment, i) for i in range(ITEMS)]],
        "array": array,
    }


@contextmanager
def executorlib_tasks() -> Iterator[Cases]:
    from executorlib import SlurmJobExecutor

    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with allocation() as held:
        os.environ["SLURM_JOB_ID"] = held.job
        with SlurmJobExecutor(max_workers=2, block_allocation=True) as pool:
            yield futures_of(pool)


@contextmanager
def mpi4py_tasks() -> Iterator[Cases]:
    """Rank 0 of a program of three, the others serve it; see `main`."""
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        yield futures_of(pool)


PEERS: Contestants = {
    "srun": srun,
    "ray tasks": ray_tasks,
    "ray actors": ray_actors,
    "dask": dask_tasks,
    "parsl": parsl_tasks,
    "executorlib": executorlib_tasks,
    "mpi4py": mpi4py_tasks,
}
