"""How a feed ends: closed, forked, left in the middle."""

import gc
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import flowos as fo
from flowos.feeder._decoding import Ahead, Decoding, Policy
from tests.waiting import PATIENCE_SECONDS

from .shared import make_folder


def refusals(feed: fo.Feed, epoch: Iterator[Any]) -> list[str]:
    """What a feed says that cannot be used any more."""
    uses: list[Callable[[], object]] = [
        lambda: next(epoch),
        lambda: feed.epoch(1),
        lambda: len(feed),
    ]
    said = []
    for use in uses:
        with pytest.raises(fo.FeedError) as refused:
            use()
        said.append(str(refused.value))
    return said


def tasks() -> set[str]:
    return {path.name for path in Path("/proc/self/task").iterdir()}


def test_an_epoch_that_was_left_cannot_go_on_behind_another_ones_back(data: Path) -> None:
    with fo.Feed(data, batch_size=8) as feed:
        first = feed.epoch(0)
        next(first)
        second = feed.epoch(1)
        with pytest.raises(fo.FeedError, match="another epoch of this Feed was begun"):
            next(first)
        assert len(list(second)) == 13
        assert list(second) == []


@pytest.mark.parametrize("decode", [None, bytes])
def test_a_closed_feed_says_so_and_leaves_no_thread(data: Path, decode: Any) -> None:
    before = tasks()
    feed = fo.Feed(data, batch_size=8, decode=decode)
    epoch = feed.epoch(0)
    next(epoch)
    feed.close()
    feed.close()
    for said in refusals(feed, epoch):
        assert said == "this Feed is closed"
    assert (feed.state_dict()["epoch"], feed.state_dict()["taken"]) == (0, 8)
    assert feed.stats().batches >= 1
    del epoch, feed
    gc.collect()
    until = time.monotonic() + 60
    while (left := tasks() - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


@pytest.mark.parametrize("decode", [None, bytes])
@pytest.mark.parametrize("closed", [True, False])
def test_a_feed_that_nobody_holds_is_gone_with_its_threads(
    data: Path, decode: Any, closed: bool
) -> None:
    before = tasks()
    feed = fo.Feed(data, batch_size=8, decode=decode)
    next(feed.epoch(0))
    if closed:
        feed.close()
    watched = weakref.ref(feed)
    del feed
    gc.collect()
    assert watched() is None
    until = time.monotonic() + 60
    while (left := tasks() - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


def test_a_forked_child_is_told_and_neither_hangs_nor_harms(data: Path, cache: Path) -> None:
    with fo.Feed(data, cache, batch_size=8, decode=bytes) as feed:
        epoch = feed.epoch(0)
        next(epoch)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = refusals(feed, epoch)
            feed.close()
            os.write(writer, json.dumps(said).encode())
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        os.close(writer)
        with os.fdopen(reader) as told:
            assert ["fork" in line for line in json.load(told)] == [True] * 3
        assert len(list(epoch)) == 12


def test_who_asks_for_a_batch_of_a_stopped_epoch_is_told_so() -> None:
    """As a thread is that another one has overtaken: it would wait for ever."""
    policy = Policy(on_error="error", max_skipped=0, name=str)
    decoding = Decoding(lambda *_: 0, 1, 2, policy)
    ahead = Ahead(decoding, lambda: None)
    ahead.stop("another epoch was begun")
    with ThreadPoolExecutor(1) as threads:
        for _ in range(2):
            asked = threads.submit(ahead.take)
            with pytest.raises(fo.FeedError, match="another epoch was begun"):
                asked.result(PATIENCE_SECONDS)
    decoding.close()


def test_a_path_below_a_folder_that_was_removed_is_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for words in (("x",), ("x.parquet",), (data, "cache")):
        with pytest.raises(fo.FeedError, match="the current folder was removed"):
            fo.Feed(*words, batch_size=8)
    with fo.Feed(data, batch_size=8) as feed:
        assert feed.samples == 100


def test_a_feed_is_no_data_set_of_a_loader_and_says_so(data: Path) -> None:
    loader = pytest.importorskip("torch.utils.data").DataLoader
    with fo.Feed(data, batch_size=8) as feed:
        with pytest.raises(fo.FeedError, match="instead of a DataLoader, not in one"):
            next(iter(loader(feed)))
        assert len(list(feed)) == 13


def test_places_that_can_be_gone_through_once_are_read_once(tmp_path: Path, cache: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.npy").write_bytes(np_bytes())
    with fo.Feed(tmp_path.glob("*.npy"), cache, batch_size=1) as feed:  # type: ignore[arg-type]
        assert feed.samples == 6
        with pytest.raises(fo.FeedError, match=r"sample 6 .*; expected 0 to 5"):
            feed.name(6)


def np_bytes() -> bytes:
    """An array of three samples, as a file."""
    file = io.BytesIO()
    np.save(file, np.zeros((3, 2)))
    return file.getvalue()


def test_a_feed_cannot_be_pickled_and_says_what_to_do(data: Path) -> None:
    with fo.Feed(data, batch_size=8) as feed, pytest.raises(fo.FeedError, match="make one in each"):
        pickle.dumps(feed)


def test_a_wrong_epoch_and_a_state_of_other_data_are_refused(data: Path, tmp_path: Path) -> None:
    make_folder(tmp_path / "other", each=2)
    with fo.Feed(data, batch_size=8) as feed, fo.Feed(tmp_path / "other", batch_size=8) as other:
        with pytest.raises(fo.FeedError, match="samples=100, this feed has samples=8"):
            other.load_state_dict(feed.state_dict())
        for wrong in (-1, 1.0, "0", True, 2**64, 10**5000):
            with pytest.raises(fo.FeedError, match="expected a whole number, 0 to"):
                feed.epoch(wrong)  # type: ignore[arg-type]
            with pytest.raises(fo.FeedError, match="expected a whole number, 0 to"):
                feed.set_epoch(wrong)  # type: ignore[arg-type]
        with pytest.raises(fo.FeedError, match=r"epoch of load_state_dict=1844.*, 0 to"):
            feed.load_state_dict({**feed.state_dict(), "epoch": 2**64})


@pytest.mark.parametrize("source", ["nosuch", "."])
def test_data_that_is_not_there_is_one_line(tmp_path: Path, source: str) -> None:
    with pytest.raises(fo.FeedError) as refused:
        fo.Feed(tmp_path / source, batch_size=8)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_feed_counts_is_served_to_prometheus(data: Path) -> None:
    with fo.Feed(data, batch_size=8) as feed, fo.serve_metrics("127.0.0.1:0", feed) as server:
        list(feed.epoch(0))
        with urllib.request.urlopen(f"http://127.0.0.1:{server.at.port}/metrics") as answer:
            text = answer.read().decode()
    batches = [line for line in text.splitlines() if line.startswith("flowos_feed_batches_total")]
    assert batches == [f'flowos_feed_batches_total{{rank="0",source="{data}"}} 13.0']
    assert text.count("# TYPE") == 22


COLLECTED_ANYWHERE = """
import faulthandler, gc, sys
from concurrent.futures import ThreadPoolExecutor
import flowos as fo
faulthandler.dump_traceback_later(100, exit=True)
column = {"column": "image"} if sys.argv[1].endswith(".parquet") else {}
gc.set_threshold(20)
for number in range(20):
    decode = lambda data: [len(data), [data[0]]]
    feed = fo.Feed(sys.argv[1], batch_size=4, decode=decode, **column)
    epoch = feed.epoch(0)
    next(epoch)
    cycle = [feed, epoch]
    cycle.append(cycle)  # as the traceback of a failed cell
    del feed, epoch, cycle
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(int).result() == 0
print("done")
"""


@pytest.mark.parametrize("kind", ["folder", "parquet"])
def test_the_collector_takes_feeds_in_any_thread_and_all_pools_go_on(
    data: Path, tmp_path: Path, kind: str
) -> None:
    source = data
    if kind == "parquet":
        source = tmp_path / "rows.parquet"
        rows = {"image": [b"%d" % row for row in range(100)]}
        pyarrow.parquet.write_table(pyarrow.table(rows), source, row_group_size=5)
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED_ANYWHERE, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


FORKED = """
import os
ends = []
for _ in range(int(sys.argv[1])):
    if (child := os.fork()) == 0:
        break
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    print(ends)
    sys.exit()
"""


def ended(
    times: int, imports: str, program: str, *words: str, timeout: float | None = None
) -> tuple[str, str, int]:
    """What a program says that runs so often: each time from its first line to Python's end, but
    for imports, which are done once. `ends` has how it ended the times before."""
    line = [sys.executable, "-W", "ignore", "-c", f"import sys\n{imports}{FORKED}{program}"]
    done = subprocess.run(
        [*line, str(times), *words], capture_output=True, text=True, check=False, timeout=timeout
    )
    return done.stdout, done.stderr, done.returncode


NATIVE_IN_DAEMON = """
import threading, time
import numpy as np, flowos as fo
from flowos.solver import poisson

solver, b, begun = fo.Solver(poisson(8, 8, 8)), np.ones(512), threading.Event()

def work():
    while True:
        solver.solve(b)
        begun.set()

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
print("done")
"""

READ_BY_PYTHON = """
import fsspec, flowos as fo

memory = fsspec.filesystem("memory")
for number in range(64):
    memory.pipe(f"/d/{number}", b"x" * 1000)
for _ in range(3):
    with fo.Feed("memory:///d", batch_size=8, labels=None) as feed:
        for batch in feed.epoch(0):
            pass
print("done")
"""


@pytest.mark.parametrize("program", [NATIVE_IN_DAEMON, READ_BY_PYTHON], ids=["native", "python"])
def test_python_ends_well_while_a_daemon_thread_returns_from_native_code(program: str) -> None:
    """Python ends such a thread by an unwind that C++ does not let pass: an abort in most runs."""
    imports = "import flowos.feeder, flowos.solver._solver, fsspec.implementations.memory, numpy"
    said = "done\n" * 5 + "[0, 0, 0, 0, 0]\n"
    assert ended(5, imports, program) == (said, "", 0)


NEVER_RETURNS = """
import sys, threading, time
import flowos as fo

begun = threading.Event()
if sys.argv[3] == "torch":
    torch.set_num_threads(1)
    numbers = torch.ones(64, 64)
goes_on = {
    "python": lambda: time.sleep(0.1), "native": lambda: time.sleep(3600),
    "torch": lambda: numbers @ numbers,
}[sys.argv[3]]

def decode(data):
    begun.set()
    while True:
        goes_on()

feed = fo.Feed(sys.argv[2], batch_size=8, decode=decode, threads=2)
if not ends:  # else it is left open
    with feed:
        epoch = feed.epoch(0)
        begun.wait()
        raise KeyboardInterrupt
epoch = feed.epoch(0)
begun.wait()
raise KeyboardInterrupt
"""


@pytest.mark.parametrize("kind", ["python", "native", "torch"])
def test_a_decode_function_that_never_returns_does_not_hold_up_the_programs_end(
    data: Path, kind: str
) -> None:
    """Nor aborts it: PyTorch does where Python ends a thread that returns from it."""
    imports = "import flowos.feeder"
    if kind == "torch":
        pytest.importorskip("torch")
        imports += ", torch"
    timeout = 2 * PATIENCE_SECONDS
    said = ended(2, imports, NEVER_RETURNS, str(data), kind, timeout=timeout)
    assert said[::2] == (f"{[-int(signal.SIGINT)] * 2}\n", 0)
    assert said[1].count("\nKeyboardInterrupt\n") == 2
    assert said[1].endswith("\nKeyboardInterrupt\n")


@pytest.mark.parametrize("is_left", [False, True])
def test_a_closed_feed_has_no_file_open_whoever_decoded(
    data: Path, tmp_path: Path, is_left: bool
) -> None:
    """Without the collector's help: a cleared cache would keep its room on the disk."""

    def opened() -> set[str]:
        links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()]
        return {link for link in links if link.startswith((f"{tmp_path}/cache", f"{data}"))}

    gc.disable()
    try:
        feed = fo.Feed(data, tmp_path / "cache", batch_size=8, decode=len)
        epoch = feed.epoch(0)
        next(epoch)
        assert opened()
        if not is_left:
            list(epoch)
        feed.close()
        assert opened() == set()
    finally:
        gc.enable()


AT_EXIT = """
import flowos as fo
feed = fo.Feed(sys.argv[2], batch_size=4, column="image")
next(feed.epoch(0))
if len(ends) % 2:
    feed.close()
"""


def test_a_program_that_feeds_rows_ends_in_order(tmp_path: Path) -> None:
    """Eight times left open, and eight closed: a reading thread must not come back to an
    interpreter that is ending."""
    rows = {"image": [b"%d" % row for row in range(100)]}
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet", row_group_size=5)
    said = ended(16, "import flowos.feeder, pyarrow.parquet", AT_EXIT, str(tmp_path / "a.parquet"))
    assert said == (f"{[0] * 16}\n", "", 0)
