"""The programs of examples/ as one writes them for Parsl and Dask, for benchmarks/programs.py.

`python benchmarks/_program_twins.py FOLDER` is the sweep with Parsl, to be killed and run again.
"""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples import preprocess as preprocess
from examples import solver_loop as solver_loop
from examples import sweep

WORKERS = 2


@contextmanager
def parsl_in(folder: Path, **memoizer: Any) -> Iterator[Any]:
    import parsl
    from parsl.dataflow.memoization import BasicMemoizer
    from parsl.executors import ThreadPoolExecutor

    config = parsl.Config(
        executors=[ThreadPoolExecutor(max_threads=WORKERS)],
        run_dir=str(folder),
        memoizer=BasicMemoizer(**memoizer),
        initialize_logging=False,
    )
    with parsl.load(config):
        yield parsl


@contextmanager
def parsl_preprocess() -> Iterator[Callable[[Sequence[Path]], list[Any]]]:
    """Each command is a bash_app, which is given what it has to wait for."""
    with TemporaryDirectory() as runs, parsl_in(Path(runs)) as parsl:

        def is_packed(log: Path) -> bool:
            return preprocess.is_packed.body.fun(log)  # type: ignore[no-any-return,union-attr]

        def summary(log: Path, _after: object) -> Any:
            return preprocess.summary.body.fun(log)  # type: ignore[union-attr]

        def shell(*words: str, after: object = None) -> str:  # noqa: ARG001
            return shlex.join(words)

        command, packed = parsl.bash_app(shell), parsl.python_app(is_packed)

        @parsl.join_app  # type: ignore[untyped-decorator]
        def plain(is_packed: bool, log: Path, out: Path) -> Any:
            copy = ["sh", "-c", preprocess.UNPACK, "sh"] if is_packed else ["ln", "-s"]
            return command(*copy, str(log), str(out))

        def prepare(log: Path, folder: Path) -> tuple[Path, Any]:
            unpacked, cleaned, done = (folder / f"{log.name}.{i}" for i in range(3))
            first = plain(packed(log), log, unpacked)
            awk = ("awk", "-F,", "-v", f"out={cleaned}", preprocess.CLEAN, str(unpacked))
            then = command(*awk, after=first)
            sort = ("env", "LC_ALL=C", "sort", "--unique", f"--output={done}", str(cleaned))
            return done, parsl.python_app(summary)(done, command(*sort, after=then))

        def run(logs: Sequence[Path]) -> list[Any]:
            with TemporaryDirectory() as folder:
                begun = [prepare(log, Path(folder)) for log in logs]
                return [(*each.result(), done.read_bytes()) for done, each in begun]

        yield run


@contextmanager
def dask_solver() -> Iterator[Callable[[], tuple[int, bytes]]]:
    """The loop is that of the driver: it looks at each round's change."""
    from distributed import Client

    relaxed, joined, change = (
        task.body.fun  # type: ignore[union-attr]
        for task in (solver_loop.relaxed, solver_loop.joined, solver_loop.change)
    )
    half, overlap = solver_loop.SIZE // 2, solver_loop.OVERLAP
    with Client(
        processes=False, n_workers=1, threads_per_worker=WORKERS, dashboard_address=None
    ) as client:

        def run() -> tuple[int, bytes]:
            plate, rounds, last = client.scatter(solver_loop.cold_plate()), 0, float("inf")
            while not last < solver_loop.MAX_CHANGE:
                upper = client.submit(relaxed, plate, 0, half + overlap, pure=False)
                lower = client.submit(relaxed, plate, half - overlap, 2 * half, pure=False)
                after = client.submit(joined, upper, lower, pure=False)
                last = client.submit(change, plate, after, pure=False).result()
                plate, rounds = after, rounds + 1
            return rounds, plate.result().tobytes()

        yield run


def parsl_sweep(folder: Path) -> None:
    """Results are kept as each task ends, and taken from all runs before."""
    from parsl.utils import get_all_checkpoints

    kept = get_all_checkpoints(str(folder)) if folder.exists() else []
    fun = sweep.lyapunov.body.fun  # type: ignore[union-attr]
    with parsl_in(folder, checkpoint_mode="task_exit", checkpoint_files=kept) as parsl:
        app = parsl.python_app(fun, cache=True)
        points = [3 + i / sweep.POINTS for i in range(sweep.POINTS)]
        exponents = [app(r, str(folder / "computed.txt")) for r in points]
        chaotic = sum(each.result() > 0 for each in exponents)
    print(f"{chaotic} of {sweep.POINTS} are chaotic")


if __name__ == "__main__":
    parsl_sweep(Path(sys.argv[1]))
