"""A store on a full disk, in a read-only folder, that may not grow, or that several make."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flowos.store import open_store
from tests.integration.test_store import a_run, writer


def test_a_file_that_may_not_grow_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    open_store(str(file)).close()
    limited = writer(file, "one", 100_000, "prlimit", "--fsize=200000")
    _, complaint = limited.communicate(timeout=300)
    last = complaint.strip().splitlines()[-1]
    assert last.startswith(f"flowos.model._errors.StoreError: cannot keep a sample in {file}: ")
    assert "the disk" in last
    with open_store(str(file)) as store:
        assert store.counts()["one"] > 0


def in_own_mounts(script: str, folder: Path) -> tuple[str, ...]:
    """A command prefix: first runs `script` with the folder as $0, in a mount namespace."""
    space = ("unshare", "--user", "--map-root-user", "--mount")
    return (*space, "sh", "-c", f'{script} && exec "$@"', str(folder))


def read_only(folder: Path) -> tuple[str, ...]:
    return in_own_mounts('mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"', folder)


def test_a_full_disk_is_one_clear_line_and_what_was_kept_stays(tmp_path: Path) -> None:
    space = in_own_mounts('mount -t tmpfs -o size=400k full "$0"', tmp_path)
    with writer(tmp_path / "x.db", "one", 100_000, *space) as full:
        printed, complaint = full.communicate(timeout=300)
    last = complaint.strip().splitlines()[-1]
    assert last.endswith(
        f"cannot keep a sample in {tmp_path / 'x.db'}: "
        "the disk is full: free some space, or name another place"
    )
    assert len(printed.splitlines()) > 10


def test_a_read_only_folder_is_one_clear_line(tmp_path: Path) -> None:
    with writer(tmp_path / "data/x.db", "one", 1, *read_only(tmp_path)) as refused:
        _, complaint = refused.communicate(timeout=300)
    last = complaint.strip().splitlines()[-1]
    assert last.endswith(
        f"cannot make {tmp_path / 'data/x.db'}: "
        "it cannot be written: name a place that can (--store FILE, or XDG_DATA_HOME)"
    )


MEASURE = ("measure", "--only", "core_latency", "--minutes", "0.02", "--scratch", "/tmp")


def test_a_store_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "data/x.db"
    with open_store(str(file)) as store:
        store.begin(a_run())
    words = ("-m", "flowos", *MEASURE, "--store", str(file), "--out", str(tmp_path / "out"))
    done = subprocess.run(
        [*read_only(file.parent), sys.executable, *words], capture_output=True, text=True
    )
    first, *_, written = done.stderr.splitlines()
    assert first == (
        f"cannot keep runs in {file}: it cannot be written: name a place that can (--store FILE, or"
        " XDG_DATA_HOME); the results are on the screen and in the report only"
    )
    assert written == f"written: {tmp_path / 'out/report.html'}"


def test_quiet_says_at_the_end_that_the_run_was_not_kept_and_why(tmp_path: Path) -> None:
    file = tmp_path / "data/x.db"
    open_store(str(file)).close()
    words = ("-m", "flowos", *MEASURE, "-q", "--store", str(file), "--out", str(tmp_path / "out"))
    done = subprocess.run(
        [*read_only(file.parent), sys.executable, *words], capture_output=True, text=True
    )
    (why,) = done.stderr.splitlines()
    assert why.startswith(f"cannot keep runs in {file}: it cannot be written: ")


def test_quiet_says_so_of_commands_that_are_compared_whatever_they_are(tmp_path: Path) -> None:
    file = tmp_path / "data/x.db"
    open_store(str(file)).close()
    words = ("compare", "-q", "--minutes", "0.02", "--store", str(file))
    commands = ("--command", "true", "--command", "true")
    done = subprocess.run(
        [*read_only(file.parent), sys.executable, "-m", "flowos", *words, *commands],
        capture_output=True,
        text=True,
    )
    (why,) = done.stderr.splitlines()
    assert why.startswith(f"cannot keep runs in {file}: it cannot be written: ")


READER = """
import sys
from flowos.store import open_store
with open_store(sys.argv[1]) as store:
    print(store.run("last").id)
"""


def test_runs_in_a_read_only_folder_can_still_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with open_store(str(folder / "x.db")) as store:
        store.begin(a_run())
    answer = subprocess.run(
        [*read_only(folder), sys.executable, "-c", READER, str(folder / "x.db")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (answer.stdout, answer.stderr) == ("20261120-one\n", "")


def test_writing_into_a_read_only_folder_is_one_clear_line(tmp_path: Path) -> None:
    open_store(str(tmp_path / "data/x.db")).close()
    with writer(tmp_path / "data/x.db", "one", 1, *read_only(tmp_path / "data")) as refused:
        _, complaint = refused.communicate(timeout=300)
    last = complaint.strip().splitlines()[-1]
    assert last.endswith(
        f"cannot keep the run in {tmp_path / 'data/x.db'}: "
        "it cannot be written: name a place that can (--store FILE, or XDG_DATA_HOME)"
    )


def test_programs_that_make_the_same_store_at_once_all_have_it(tmp_path: Path) -> None:
    for number in range(40):
        url, together = str(tmp_path / f"{number}/new/runs.db"), threading.Barrier(4)

        def make(url: str = url, together: threading.Barrier = together) -> None:
            together.wait()
            open_store(url).close()

        with ThreadPoolExecutor(4) as programs:
            for made in [programs.submit(make) for _ in range(4)]:
                made.result()
