"""Python tasks with a time limit: one that runs over it is ended, and all else goes on."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from tests.waiting import PATIENCE_SECONDS, comes

from .shared import await_file, descendants, gone, write_pid
from .tasks import LONG_SECONDS, work


def limited(fun: Any, seconds: float = 0.3, **options: Any) -> Any:
    return fo.task(
        {
            "task_name": "slow",
            "iport_nametypes": [("how", fo.any_)],
            "oport_nametypes": fo.any_,
            "fun": fun,
        },
        limit_seconds=seconds,
        **options,
    )


def is_fine(s: Any) -> bool:
    """On a busy machine, also what does nothing may once take longer than its limit."""
    try:
        return bool(s.run("fine") == ["fine"])
    except fo.TimeLimitExceeded:
        return False


def one(fun: Any, seconds: float = 0.3, **options: Any) -> Any:
    flow = fo.flow_output(limited(fun, seconds)(fo.flow_input("how", fo.any_)))
    return fo.slice(flow, workers="process", **{"cores": 1, **options})


@pytest.mark.parametrize(
    "how",
    [
        "sleeps",
        "ignores TERM",
        "holds the interpreter in C",
        "computes",
        "catches all",
        "has a child",
    ],
)
def test_a_task_over_its_limit_is_ended_with_its_worker_and_the_next_run_works(how: str) -> None:
    with one(work) as s:
        assert comes(lambda: is_fine(s))
        before = descendants(os.getpid())
        began = time.monotonic()
        with pytest.raises(fo.TimeLimitExceeded) as failed:
            s.run(how)
        assert time.monotonic() - began < PATIENCE_SECONDS
        assert str(failed.value) == (
            "task 'slow' ran over its limit of 0.3 s, and its worker process was ended; "
            f"given how = '{how}' (str)"
        )
        assert isinstance(failed.value, fo.TaskFailed)
        assert gone(before)
        assert comes(lambda: is_fine(s))
    assert gone(descendants(os.getpid()))


def test_the_start_of_a_worker_and_what_it_imports_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slowly.py").write_text(
        f"import os, time\nif os.getpid() != {os.getpid()}: time.sleep(1.5)\ndef fun(x): return x\n"
    )
    slowly: Any = __import__("slowly")
    with one(slowly.fun, 1.0) as s:
        assert comes(lambda: is_fine(s))


def test_another_run_of_the_slice_goes_on(tmp_path: Path) -> None:
    begun, end = tmp_path / "begun", tmp_path / "end"

    def waits(how: Any) -> Any:
        if how == "waits":
            write_pid(begun)
            while not end.exists():
                time.sleep(0.01)
            return os.getpid()
        return None

    found: list[Any] = []
    how = fo.flow_input("how", fo.any_)
    made: Any = fo.task(
        {"task_name": "waits", "iport_nametypes": fo.any_, "oport_nametypes": fo.any_, "fun": waits}
    )
    both = fo.flow_output(limited(work)(how), made(how))
    with fo.slice(both, workers="process", cores=2) as s:
        waiting = threading.Thread(target=lambda: found.extend(s.run("waits")))
        waiting.start()
        pid = int(await_file(begun))
        with pytest.raises(fo.TimeLimitExceeded):
            s.run("sleeps")
        end.touch()
        waiting.join()
    assert found == ["waits", pid]


def test_each_item_of_a_map_has_the_limit_for_itself() -> None:
    def sleeps(seconds: Any) -> Any:
        time.sleep(seconds)
        return seconds

    def all_come(s: Any, values: list[Any]) -> bool:
        try:
            return list(s.map(values)) == [[value] for value in values]
        except fo.TimeLimitExceeded:  # one of them on a busy machine
            return False

    with one(sleeps, 2.0) as s:
        assert comes(lambda: all_come(s, [0.5] * 8))
        assert comes(lambda: all_come(s, [0] * 3000))


def test_an_item_over_the_limit_in_a_batch_is_the_one_that_is_named() -> None:
    def sleeps(item: Any) -> Any:
        if item == 700:
            time.sleep(LONG_SECONDS)
        return item

    def named(s: Any) -> bool:
        with pytest.raises(fo.TimeLimitExceeded) as failed:
            list(s.map(range(1000)))
        return "given how = 700" in str(failed.value)  # or another, on a busy machine

    with one(sleeps, 1.0) as s:
        assert comes(lambda: named(s))


def test_what_a_chain_hands_on_is_shown_and_the_task_before_is_not_limited() -> None:
    def makes(how: object) -> object:
        time.sleep(0.6)
        return np.zeros(100_000) if how == "sleeps" else how

    def takes(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            time.sleep(LONG_SECONDS)
        return value

    made = fo.task(
        {
            "task_name": "makes",
            "iport_nametypes": fo.any_,
            "oport_nametypes": fo.any_,
            "fun": makes,
        }
    )
    flow = fo.flow_output(limited(takes)(made(fo.flow_input("how", fo.any_))))
    with fo.slice(flow, workers="process", cores=1) as s:
        assert comes(lambda: is_fine(s))
        with pytest.raises(fo.TimeLimitExceeded, match=r"an array of float64, shape \(100000,\)"):
            s.run("sleeps")


@pytest.mark.parametrize("way", [None, "thread", "inline"])
def test_threads_cannot_keep_a_limit_and_say_so(way: Any) -> None:
    with pytest.raises(fo.SliceRefused, match=r"^slice: task 'slow' has limit_seconds=0.3, .*"):
        fo.slice(limited(work)(fo.flow_input("how", fo.any_)), workers=way)


def test_a_freed_slice_ends_a_limited_task_too() -> None:
    s = one(work, LONG_SECONDS)
    assert s.run("fine") == ["fine"]
    freeing = threading.Timer(0.3, s.free)
    freeing.start()
    with pytest.raises(fo.SliceFreed):
        s.run("sleeps")
    freeing.join()


def test_a_command_over_its_limit_fails_by_the_same_name() -> None:
    with (
        fo.slice(fo.command(["sleep", LONG_SECONDS], limit_seconds=0.2)()) as s,
        pytest.raises(fo.TimeLimitExceeded, match="task 'sleep': the command ran over its time"),
    ):
        s.run()
