"""Kept values take few descriptors, and a shortage of them is reported in one line."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

COMMON = """
    import gc, os, resource, sys
    import numpy as np
    import flowos as fo

    def limit(most):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

    def opened():
        return len(os.listdir("/proc/self/fd"))

    @fo.task
    def make(n: fo.int64) -> fo.array(fo.float64):
        return np.full(10_000, float(n))

    @fo.task
    def total(x: fo.array(fo.float64)) -> fo.float64:
        return float(x.sum())

    @fo.task
    def same(x: fo.array(fo.float64)) -> fo.array(fo.float64):
        return x

    n = fo.flow_input("n", fo.int64)
"""


def said(tmp_path: Path, program: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(COMMON) + textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("way", ["run", "map"])
def test_a_thousand_kept_results_are_kept(way: str, tmp_path: Path) -> None:
    results = "s.map(range(1200))" if way == "map" else "(s.run(i) for i in range(1200))"
    assert (
        said(
            tmp_path,
            f"""
        limit(1024)
        with fo.slice(make(n), workers="process") as s:
            kept = [result for result, in {results}]
            assert opened() < 600, opened()
            assert all((array == i).all() for i, array in enumerate(kept))
            for array in kept:
                array += 1  # each is our own
            assert all((array == i + 1).all() for i, array in enumerate(kept))
            del kept, array
            gc.collect()
            s.run(1)
            assert opened() < 300, opened()
        print("well", opened() < 30)
        """,
        )
        == "well True\n"
    )


def test_a_thousand_values_wait_between_workers(tmp_path: Path) -> None:
    assert (
        said(
            tmp_path,
            """
        limit(512)
        count = 1000
        names = [f"x{i}" for i in range(count)]

        def add_up(*arrays):
            return float(sum(a[0] for a in arrays))

        sum_all = fo.task({
            "task_name": "sum", "fun": add_up,
            "iport_nametypes": tuple((name, fo.array(fo.float64)) for name in names),
            "oport_nametypes": fo.float64,
        })
        made = [make(n) for _ in range(count)]
        with fo.slice(sum_all(*made), workers="process") as s:
            print(*s.run(3), *s.run(4))
        """,
        )
        == "3000.0 4000.0\n"
    )


def test_a_thousand_inputs_and_what_tasks_keep_of_them(tmp_path: Path) -> None:
    assert (
        said(
            tmp_path,
            """
        limit(512)
        kept = []

        def keep(x):
            kept.append(x)
            return float(sum(k[0] for k in kept))

        x = fo.flow_input("x", fo.array(fo.float64))
        keeps = fo.task({
            "task_name": "keep", "fun": keep,
            "iport_nametypes": fo.array(fo.float64), "oport_nametypes": fo.float64,
        })
        arrays = [np.full(10_000, 1.0) for _ in range(1000)]
        with fo.slice(keeps(x), workers="process", cores=1) as s:
            print(*[s.run(a) for a in arrays][-1])
        """,
        )
        == "1000.0\n"
    )


@pytest.mark.parametrize(
    "flow",
    ["make(n)", "fo.command(['echo', fo.In('n')], inputs={'n': fo.int64})(n)"],
    ids=["worker", "command"],
)
def test_a_shortage_of_descriptors_is_told_in_one_line_and_passes(
    flow: str, tmp_path: Path
) -> None:
    told = said(
        tmp_path,
        f"""
        limit(256)
        with fo.slice({flow}, workers="process") as s:
            held = []
            try:
                while True:
                    held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            try:
                s.run(1)
            except fo.FlowosError as error:
                print(type(error).__name__, "\\n" in str(error), str(error))
            for fd in held:
                os.close(fd)
            print(len(s.run(1)))
        """,
    )
    first, second = told.splitlines()
    assert re.match("(TaskFailed|LaunchFailed) False task ", first), told
    assert "Too many open files" in first
    assert "ulimit -n" in first
    assert second == "1"


def test_a_slice_that_cannot_be_opened_is_refused_in_one_line(tmp_path: Path) -> None:
    told = said(
        tmp_path,
        """
        fo.slice(make(n), workers="process").free()
        limit(256)
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            fo.slice(make(n), workers="process")
        except fo.SliceRefused as error:
            print(error)
        """,
    )
    assert told.startswith("slice: ")
    assert "Too many open files" in told
    assert "; raise the limit of open files (ulimit -n)" in told
