"""Python tasks in an image: its python3, its modules, our functions and arrays."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

import flowos as fo
from flowos.engine import here
from flowos.model import Environment, LaunchFailed

from .conftest import Images, ready_or_skip

RUNTIMES = ("ch-run", "bwrap", "podman", "apptainer")
FLOWOS = str(Path(sys.executable).with_name("flowos"))

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="Debian 12 has Python 3.11, as this is not"
)


@pytest.fixture(scope="module", params=RUNTIMES)
def env(request: pytest.FixtureRequest, debian: Path) -> str:
    """Debian 12: Python 3.11 and NumPy 1.24, no FlowOS, no cloudpickle."""
    with ready_or_skip(Environment(image=here().image_at(debian), runtime=request.param)):
        return f"{debian}@{request.param}"


@pytest.fixture(scope="module")
def one_env(debian: Path) -> Iterator[str]:
    """Where the runtime makes no difference: the first that works."""
    with ready_or_skip(Environment(image=here().image_at(debian), runtime="auto")):
        yield str(debian)


@fo.task
def where(_: fo.int64) -> fo.str_:
    import platform

    return str(platform.freedesktop_os_release()["VERSION_CODENAME"]) + " " + os.__file__


@fo.task
def makes(n: fo.int64) -> Annotated[Any, fo.array(float, (None,))]:
    import numpy

    return numpy.arange(n, dtype=float)


@fo.task
def doubles(
    a: Annotated[NDArray[np.float64], fo.array(float, (None,))],
) -> Annotated[NDArray[np.float64], fo.array(float, (None,))]:
    a *= 2
    return a


@fo.task
def version(_: fo.int64) -> fo.str_:
    import numpy

    return str(numpy.__version__)


def number() -> Any:
    return fo.flow_input("n", fo.int64)


def test_tasks_run_by_the_images_python_and_its_modules(env: str) -> None:
    n = number()
    with fo.slice(fo.flow_output(where(n), version(n)), env) as s:
        place, numpy_there = map(str, s.run(1))
    assert place == "bookworm /usr/lib/python3.11/os.py"
    assert numpy_there.startswith("1.")
    assert np.__version__.startswith("2.")


@pytest.mark.parametrize("count", [3, 100_000])
def test_arrays_cross_between_two_versions_of_numpy_both_ways(env: str, count: int) -> None:
    """Small ones in the message, large ones in shared memory."""
    n = number()
    with fo.slice(fo.flow_output(doubles(makes(n))), env) as s:
        made: Any = s.run(count)[0]
    assert np.array_equal(made, np.arange(count) * 2.0)
    given = fo.flow_input("a", fo.array(float, (None,)))
    with fo.slice(fo.flow_output(doubles(given)), env) as s:
        mine = np.ones(count)
        back: Any = s.run(mine)[0]
    assert back.sum() == 2.0 * count
    assert mine.sum() == count  # our array was not written to


@pytest.mark.parametrize("retries", [0, 1])
def test_a_loop_is_run_by_the_images_python(one_env: str, retries: int) -> None:
    """Within its worker, and task by task."""

    @fo.task(retries=retries)
    def grow(n: fo.int64) -> fo.int64:
        return 100 // (n - 3) if n == 3 else n + 1

    @fo.task
    def is_large(n: fo.int64) -> bool:
        return n > 8

    with fo.slice(fo.loop(grow, number(), until=is_large, max_rounds=9), one_env) as s:
        assert s.run(4) == [9]
        with pytest.raises(fo.TaskFailed, match=r"task 'loop/grow' raised .*; round 3 of 'loop'"):
            s.run(1)


def test_values_of_many_kinds_come_back_as_they_went(one_env: str) -> None:
    kinds = {
        "none": None,
        "nested": {"a": [1, (2.5, "x")], "b": b"\x00\xff"},
        "scalar": np.float32(1.5),
        "grid": np.arange(6, dtype=np.int16).reshape(2, 3),
        "words": np.array(["a", "bc"]),
    }

    @fo.task
    def same(x: fo.any_) -> fo.any_:
        return x

    with fo.slice(fo.flow_output(same(fo.flow_input("x", fo.any_))), one_env) as s:
        (back,) = s.run(kinds)
    assert repr(back) == repr(kinds)


def test_a_function_may_use_what_lies_around_it(one_env: str) -> None:
    """It crosses by value, with cloudpickle, which the image does not have."""
    offset = 40

    @fo.task
    def adds(n: fo.int64) -> fo.int64:
        return _twice(n) + offset

    with fo.slice(fo.flow_output(adds(number())), one_env) as s:
        assert s.run(1) == [42]


def _twice(n: int) -> int:
    return 2 * n


def test_a_module_that_the_image_lacks_is_named_with_the_image(one_env: str, debian: Path) -> None:
    @fo.task
    def lacks(n: fo.int64) -> fo.int64:
        __import__("scipy")
        return n

    lacking = f"No module named 'scipy'.*image {debian.name} does not have it"
    with fo.slice(fo.flow_output(lacks(number())), one_env) as s:
        with pytest.raises(fo.TaskFailed, match=f"task 'lacks' raised .*{lacking}"):
            s.run(1)
        with pytest.raises(fo.TaskFailed, match=lacking):  # the worker lives on
            s.run(2)


def test_a_function_whose_module_the_image_lacks_is_named_with_the_image(
    one_env: str, debian: Path
) -> None:
    loaded = fo.task(
        {
            "task_name": "loads",
            "iport_nametypes": fo.int64,
            "oport_nametypes": fo.any_,
            "fun": pytest.importorskip("hypothesis").note,
        }
    )
    told = f"task 'loads': its function note cannot be loaded in image {debian.name} "
    with (
        fo.slice(fo.flow_output(loaded(number())), one_env) as s,
        pytest.raises(fo.TaskFailed, match=told),
    ):
        s.run(1)


def test_what_a_task_prints_and_raises_is_told_here(
    one_env: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @fo.task
    def says(n: fo.int64) -> fo.int64:
        sys.stdout.write("said inside")
        raise ValueError(n)

    with fo.slice(fo.flow_output(says(number())), one_env) as s:
        with pytest.raises(fo.TaskFailed, match=r"task 'says' raised ValueError: 3"):
            s.run(3)
        assert "said inside" in capsys.readouterr().out


def test_a_worker_that_is_killed_fails_the_run_and_the_next_one_works(one_env: str) -> None:
    @fo.task
    def dies(n: fo.int64) -> fo.int64:
        if n:
            os.kill(os.getpid(), 9)
        return n

    with fo.slice(fo.flow_output(dies(number())), one_env) as s:
        with pytest.raises(fo.WorkerLost, match="task 'dies': its worker process is gone"):
            s.run(1)
        assert s.run(0) == [0]


@pytest.mark.usefixtures("nothing_is_left")
def test_a_freed_slice_leaves_nothing(one_env: str) -> None:
    n = number()
    with fo.slice(fo.flow_output(where(n), makes(n)), one_env) as s:
        s.run(1000)


def test_python_tasks_in_threads_are_refused_in_an_image(one_env: str, debian: Path) -> None:
    words = f"slice: workers='thread' with image {debian.name}: Python task 'where' would run outs"
    with pytest.raises(fo.SliceRefused, match=words):
        fo.slice(fo.flow_output(where(number())), one_env, "thread")


def test_an_image_without_python_is_refused_with_what_is_missing(images: Images) -> None:
    with ready_or_skip(Environment(image=here().image_at(images.squashfs), runtime="auto")):
        pass
    with (
        fo.slice(fo.flow_output(where(number())), images.squashfs) as s,
        pytest.raises(LaunchFailed, match=r"image busybox\.sqfs: Python tasks need a python3 in"),
    ):
        s.run(1)


def test_an_image_with_another_python_is_refused_with_both_versions(
    images: Images, tmp_path: Path
) -> None:
    """Its version is shown even if it cannot parse the worker's file."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "old"
    shutil.copytree(images.folder, folder, symlinks=True)
    python = folder / "bin/python3"
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && echo 3.6 || { echo "SyntaxError" >&2; exit 1; }\n'
    )
    python.chmod(0o755)
    with ready_or_skip(Environment(image=here().image_at(folder), runtime="auto")):
        pass
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    told = (
        rf"^task 'where': image old: its python3 is Python 3\.6, this is Python {ours}, "
        r"and [^\n]*run flowos by"
    )
    with (
        fo.slice(fo.flow_output(where(number())), folder) as s,
        pytest.raises(LaunchFailed, match=told),
    ):
        s.run(1)


# ---- files ----


@pytest.fixture
def note() -> Iterator[Path]:
    """A file that is not to be seen inside by itself."""
    home = Path.home() / "flowos-test-files"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (home / "note.txt").write_text("a note")
    yield home / "note.txt"
    shutil.rmtree(home)


def test_a_command_reads_a_file_from_anywhere_under_its_own_name(env: str, note: Path) -> None:
    script = 'cat "$0"; echo " $(basename "$0")"; pwd'
    task = fo.command(["sh", "-c", script, fo.In("file")], stdout="said")
    with fo.slice(fo.flow_output(task(fo.flow_input("file", fo.File))), env) as s:
        (said,) = s.run(note)
    assert str(said).splitlines()[0] == "a note note.txt"


def test_files_go_from_command_to_python_to_command(env: str) -> None:
    writes = fo.command(["sh", "-c", 'echo 20 > "$0"', fo.Out("number")])

    @fo.task
    def adds(file: fo.File) -> fo.File:
        made = file.with_name("sum")
        made.write_text(str(int(file.read_text()) + 22))
        return made

    reads = fo.command(["cat", fo.In("file")], stdout="said")
    with fo.slice(fo.flow_output(reads(adds(writes()))), env) as s:
        assert s.run() == ["42"]


def test_files_of_a_folder_that_one_named_are_written_there(env: str, note: Path) -> None:
    writes = fo.command(["sh", "-c", 'echo kept > "$0"', fo.Out("made")])
    with fo.slice(fo.flow_output(writes()), env, folder=note.parent / "kept") as s:
        (made,) = s.run()
    assert isinstance(made, Path)
    assert made.read_text() == "kept\n"
    assert made.is_relative_to(note.parent / "kept")
    assert made.stat().st_uid == os.getuid()


def test_a_python_task_reads_files_that_are_bound_and_is_refused_others(
    one_env: str, debian: Path, note: Path
) -> None:
    @fo.task
    def reads(file: fo.File) -> fo.str_:
        return f"{file}: {file.read_text()}"

    flow = fo.flow_output(reads(fo.flow_input("file", fo.File)))
    told = rf"task 'reads', input 'file': {note} is not to be seen in image {debian.name}; bind"
    with fo.slice(flow, one_env) as s, pytest.raises(fo.ValueRefused, match=told):
        s.run(note)
    bound = fo.environment(one_env, binds=[(note.parent, "/mnt")])
    with fo.slice(flow, bound) as s:
        assert s.run(note) == ["/mnt/note.txt: a note"]


def test_a_file_that_a_python_task_wrote_is_found_where_it_is_bound(
    one_env: str, note: Path
) -> None:
    @fo.task
    def writes(n: fo.int64) -> fo.File:
        Path("/mnt/made").write_text(str(n))
        return Path("/mnt/made")

    @fo.task
    def keeps(_: fo.int64) -> fo.File:
        return Path("/etc/debian_version")

    bound = fo.environment(one_env, binds=[(note.parent, "/mnt")])
    with fo.slice(fo.flow_output(writes(number())), bound) as s:
        assert s.run(7) == [note.parent / "made"]
    with (
        fo.slice(fo.flow_output(keeps(number())), bound) as s,
        pytest.raises(fo.ValueRefused, match="/etc/debian_version lies in image"),
    ):
        s.run(1)


def test_what_is_made_once_is_made_for_this_image(
    env: str, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(note.parent))
    made = fo.command(["sh", "-c", 'date +%N > "$0"', fo.Out("stamp")], once="a stamp")
    reads = fo.command(["cat", fo.In("file")], stdout="said")
    stamps = []
    for where_ in (env, env, None):
        with fo.slice(fo.flow_output(reads(made())), where_) as s:
            stamps += s.run()
    assert stamps[0] == stamps[1]
    assert stamps[0] != stamps[2]


def test_a_flow_file_runs_in_an_image(one_env: str, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def more(n):\n    return n + 1\n")
    (tmp_path / "flow.py").write_text(
        "import flowos as fo\nimport helper\n\n"
        "@fo.task\ndef where(n: fo.int64) -> fo.str_:\n    import platform\n"
        "    return platform.freedesktop_os_release()['VERSION_CODENAME'] + str(helper.more(n))\n\n"
        "flow = fo.flow_output(where(fo.flow_input('n', fo.int64)))\n"
    )
    words = [FLOWOS, "run", "flow.py", "--env", one_env, "n=41"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("where = bookworm42\n", 0)


def test_the_example_shows_the_same_flow_bare_and_inside(env: str) -> None:
    example = Path(__file__).parents[2] / "examples/in_an_image.py"
    done = subprocess.run(
        [sys.executable, example, env], capture_output=True, text=True, timeout=300
    )
    bare, inside = done.stdout.splitlines()
    assert bare.startswith("bare: ")
    assert inside.startswith(f"{env}: debian, ")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_journal_tells_images_apart_and_brings_files_back(one_env: str, tmp_path: Path) -> None:
    listing = fo.command(["/bin/sh", "-c", 'cat /etc/os-release > "$0"', fo.Out("release")])
    flow = fo.flow_output(where(0), doubles(makes(4)), listing())
    journal = tmp_path / "journal"
    host = platform.freedesktop_os_release()["VERSION_CODENAME"]
    places = {one_env: "bookworm /usr/lib/python3.11/os.py", None: f"{host} {os.__file__}"}
    for env, hits in ((one_env, 0), (None, 0), (one_env, 4), (None, 4)):
        with fo.slice(flow, env=env, workers="process", journal=journal) as s:
            place, twice, release = s.run()
            assert isinstance(twice, np.ndarray)
            assert twice.tolist() == [0, 2, 4, 6]
            assert Path(str(release)).read_text()
            taken = [note for note in s.notes if "taken" in note]
            assert taken == [f"{hits} results were taken from journal {journal}"] * bool(hits)
        assert place == places[env]
