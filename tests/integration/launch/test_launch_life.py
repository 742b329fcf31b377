"""What is left when the process that launched dies, and where launches keep their files."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.engine.launch import _init_program, _run_folders
from flowos.engine.launch._init_program import digest_of, find_init, find_or_compile, runs
from flowos.engine.launch._private_dirs import complaint_about
from flowos.model import Launch, LaunchFailed
from tests.waiting import numbers_in

from .launched import all_gone, is_removed

SOURCES = Path(_init_program.__file__).parents[1] / "init"

SUPERVISOR = """
import sys, threading, time
from pathlib import PurePath
from flowos.engine import here
from flowos.model import BARE, Launch
script, after = sys.argv[1:]
own = here().variables(BARE)
running = here().start(Launch(argv=("sh", "-c", script), variables=own))
here().prepare(Launch(argv=("true",)))
print(running.folder.parent, flush=True)
exec(after)
"""

# Its stderr is gone with its supervisor: a shell that prints "Terminated" there dies of that.
STUBBORN = """
    exec 2>/dev/null
    trap 'echo told >>{0}/told' TERM
    (setsid sh -c 'trap "" TERM HUP; echo $$ >>{0}/pids; exec sleep 300' &
     sh -c 'trap "" TERM HUP; echo $$ >>{0}/pids; exec sleep 300' &)
    echo $$ >>{0}/pids
    while :; do sleep 0.02; done"""


def supervisor(script: str, after: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, script, after], stdout=subprocess.PIPE, text=True
    )


def session_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_a_killed_supervisor_leaves_no_process_and_the_next_start_removes_its_folder(
    tmp_path: Path,
) -> None:
    with supervisor(STUBBORN.format(tmp_path), "time.sleep(300)") as process:
        session = session_of(process)
        pids = numbers_in(tmp_path / "pids", 3)
        process.kill()
    assert all_gone(pids)
    assert (tmp_path / "told").read_text() == "told\n"
    with supervisor("true", "running.wait()") as process:
        own = session_of(process)
    assert is_removed(session)  # by another that starts now, if that was quicker
    assert not own.exists()


def test_the_folders_of_a_living_process_are_left_alone(tmp_path: Path) -> None:
    with supervisor(f"echo $$ >{tmp_path}/pid; sleep 300", "time.sleep(300)") as process:
        session = session_of(process)
        numbers_in(tmp_path / "pid", 1)
        with supervisor("true", "running.wait()") as other:
            session_of(other)
        assert session.is_dir()
        process.kill()


@pytest.mark.parametrize("after", ["", "sys.exit(3)", "raise KeyboardInterrupt"])
def test_a_process_that_ends_ends_its_launches(tmp_path: Path, after: str) -> None:
    with supervisor(f"echo $$ >{tmp_path}/pid; sleep 300", after) as process:
        session = session_of(process)
    told = tmp_path / "pid"  # nothing, where it was ended before it could
    assert all_gone([int(word) for word in told.read_text().split()] if told.exists() else [])
    assert not session.exists()


def test_a_thread_that_ends_does_not_take_its_launch_along(tmp_path: Path) -> None:
    """A parent-death signal set on flowos-init would do that."""
    after = f"""
box = []
def one():
    box.append(here().start(Launch(argv=("sh", "-c", "sleep 0.3; echo done"), variables=own)))
thread = threading.Thread(target=one); thread.start(); thread.join()
open("{tmp_path}/out", "wb").write(box[0].wait().stdout)
"""
    with supervisor("true", after) as process:
        session_of(process)
    assert (tmp_path / "out").read_bytes() == b"done\n"


def test_our_base_folder_is_ours_alone() -> None:
    here().run(Launch(argv=("/bin/true",)))
    base = here().folder().parent
    assert base.name in (f"flowos-{os.geteuid()}", "flowos")
    assert base.stat().st_uid == os.geteuid()
    assert base.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(here().folder())) < 40


def test_a_base_that_somebody_else_made_is_not_used(tmp_path: Path) -> None:
    good, open_to_all, link = tmp_path / "good", tmp_path / "open", tmp_path / "link"
    assert complaint_about(good) == ""
    assert complaint_about(good) == ""
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    assert "is open to others" in complaint_about(open_to_all)
    link.symlink_to(good)
    assert "belongs to another user" in complaint_about(link)
    (tmp_path / "file").touch()
    assert "cannot be made" in complaint_about(tmp_path / "file")
    if os.geteuid() == 0:
        os.chown(good, 12345, 12345)
        assert "belongs to another user" in complaint_about(good)


def test_the_init_is_compiled_where_there_is_none_or_one_of_another_machine(
    tmp_path: Path,
) -> None:
    place = tmp_path / "cache" / "flowos-init"
    assert find_or_compile(SOURCES, (place,)) == place
    place.write_bytes(b"\x7fELF of another machine")
    assert not runs(place)
    assert find_or_compile(SOURCES, (place,)) == place
    assert runs(place)
    assert [path.name for path in place.parent.iterdir()] == ["flowos-init"]


def test_a_cache_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    second = tmp_path / "second" / "flowos-init"
    assert find_or_compile(SOURCES, (tmp_path / "file" / "flowos-init", second)) == second


def test_without_a_compiler_it_is_one_line_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(LaunchFailed, match=r"no C compiler .* in PATH; install one") as told:
        find_or_compile(SOURCES, (tmp_path / "flowos-init",))
    assert "\n" not in str(told.value)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho first >&2\necho 'cc: out of licences' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(LaunchFailed, match="cc: out of licences"):
        find_or_compile(SOURCES, (tmp_path / "flowos-init",))


def test_a_compiler_named_relatively_compiles_and_leaves_nothing_where_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "mine"
    wrapper.write_text('#!/bin/sh\ntouch left.o\nexec cc "$@"\n')
    wrapper.chmod(0o755)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("CC", "../mine")
    place = tmp_path / "cache" / "flowos-init"
    assert find_or_compile(SOURCES, (place,)) == place
    assert list((tmp_path / "here").iterdir()) == []


def test_a_change_of_any_source_or_header_is_another_program(tmp_path: Path) -> None:
    sources = tmp_path / "init"
    shutil.copytree(SOURCES, sources)
    digests = [digest_of(SOURCES), digest_of(sources)]
    assert digests[0] == digests[1]
    files = sorted(path for path in sources.iterdir() if path.suffix in (".c", ".h"))
    assert len(files) > 1
    for file in files:
        file.write_text(file.read_text() + "/* changed */\n")
        digests.append(digest_of(sources))
    assert len(set(digests)) == 1 + len(files)


def test_the_init_in_use_is_the_one_of_this_source() -> None:
    said = subprocess.run(
        [find_init(here().folder), "--version"], capture_output=True, check=True
    ).stdout
    assert said == b"flowos-init 1\n"


def test_leftovers_of_half_made_sessions_go_after_a_while(tmp_path: Path) -> None:
    for name in ("dead", ".fresh", ".old"):
        (tmp_path / name / "0").mkdir(parents=True)
    long_ago = time.time() - 2 * 3600
    os.utime(tmp_path / ".old", (long_ago, long_ago))
    (tmp_path / "link").symlink_to(shutil.__file__)
    _run_folders.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".fresh", "link"]


def left_by(base: Path, pids: int, marker: Path) -> Path:
    """What a killed process leaves that had two launches, one of them to be undone."""
    for number in "01":
        (base / "left" / number).mkdir(parents=True)
    record = {"steps": [["touch", str(marker)]], "pids": pids}
    (base / "left/1/undo").write_text(json.dumps(record))
    return base / "left"


OURS = Path("/proc/self/ns/pid").stat().st_ino


def test_what_a_killed_process_tells_of_is_undone_and_removed(tmp_path: Path) -> None:
    left = left_by(tmp_path / "base", OURS, tmp_path / "undone")
    _run_folders.remove_leftovers(tmp_path / "base")
    assert (tmp_path / "undone").exists()
    assert not left.exists()


def test_what_names_a_dead_set_up_ends_with_what_it_started_before_that_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As conmon with a container that is not started yet: in a session of its own, without a mark
    of ours."""
    monkeypatch.setattr("flowos.engine.launch._stale_sessions._ENDING_SECONDS", 0.1)
    left = left_by(tmp_path / "base", OURS, tmp_path / "undone")
    script = f"setsid sh -c 'echo $$ >{tmp_path}/pids; exec sleep 300' & wait"
    with subprocess.Popen(["sh", "-c", script, "sh", str(left / "1/bundle")]) as helper:
        pids = [helper.pid, *numbers_in(tmp_path / "pids", 1)]
        _run_folders.remove_leftovers(tmp_path / "base")
    assert (tmp_path / "undone").exists()
    assert all_gone(pids)


def test_a_session_of_another_pid_namespace_is_left_whole(tmp_path: Path) -> None:
    left = left_by(tmp_path / "base", OURS - 1, tmp_path / "undone")
    (left / "0/started.0").write_text(f"1 2 1 {OURS} 0")
    before = sorted(left.rglob("*"))
    _run_folders.remove_leftovers(tmp_path / "base")
    assert sorted(left.rglob("*")) == before
    assert not (tmp_path / "undone").exists()


def test_a_command_that_began_in_another_pid_namespace_is_left_until_it_has_ended(
    tmp_path: Path,
) -> None:
    left = tmp_path / "left"
    (left / "0").mkdir(parents=True)
    (left / "0/started.0").write_text(f"1 2 1 {OURS - 1} 0")
    _run_folders.remove_leftovers(tmp_path)
    assert (left / "0/started.0").exists()
    (left / "0/status.0").write_text("exit 0")
    _run_folders.remove_leftovers(tmp_path)
    assert not left.exists()


def test_a_session_of_before_the_node_was_started_goes_without_being_undone(
    tmp_path: Path,
) -> None:
    left = left_by(tmp_path / "base", OURS - 1, tmp_path / "undone")
    os.utime(left / "1/undo", (0, 0))
    _run_folders.remove_leftovers(tmp_path / "base")
    assert not left.exists()
    assert not (tmp_path / "undone").exists()
