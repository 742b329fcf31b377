"""`flowos exec` without an image: a command as if it had been started without us."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from flowos.cli._foreground import as_named
from flowos.drivers import LAUNCHERS
from flowos.engine import here
from flowos.model import MPIS

FLOWOS = str(Path(sys.executable).with_name("flowos"))


def flowos(*words: str, **how: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [FLOWOS, *words], **{"capture_output": True, "text": True, "timeout": 120, **how}
    )


def test_streams_pass_through_byte_for_byte() -> None:
    data = bytes(range(256)) * 4096
    words = [FLOWOS, "exec", "--", "sh", "-c", "tee /dev/stderr"]
    done = subprocess.run(words, input=data, capture_output=True, timeout=300)
    assert (done.returncode, done.stdout == data, done.stderr == data) == (0, True, True)


@pytest.mark.parametrize(("closed", "which"), [("<&-", {0}), (">&-", {1}), ("2>&- <&-", {0, 2})])
def test_a_stream_that_is_closed_is_as_good_as_empty(
    closed: str, which: set[int], tmp_path: Path
) -> None:
    """What is opened next does not pass for it, and the command finds all three."""
    look = "seen=$(for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done)"
    script = f'{look}; echo "$seen" > seen; cat; echo end'
    words = f"exec {FLOWOS} exec -- sh -c '{script}' {closed}"
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        ["sh", "-c", words], input=b"given\n", capture_output=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (b"given\n" * (0 not in which) + b"end\n") * (1 not in which)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert {fd for fd in range(3) if seen[fd] == "/dev/null"} == which


def test_what_is_printed_is_seen_while_the_command_still_reads(opened: Any) -> None:
    with opened("--", "sh", "-c", "echo ready; read line; echo got $line") as process:
        assert process.read_line() == "ready"
        assert process.stdin
        process.stdin.write("it\n")
        assert process.read_line() == "got it"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("sh", "-c", "exit 3"), 3, ""),
        (("sh", "-c", "kill -9 $$"), 137, ""),
        (("sh", "-c", "kill -TERM $$"), 143, ""),
        (("no-such-command",), 127, "flowos exec: no such command 'no-such-command' (looked in"),
        (("/etc/passwd",), 126, "flowos exec: '/etc/passwd' may not be executed"),
        (("/tmp",), 126, "flowos exec: '/tmp' is a folder: name a program in it"),
        (("",), 2, "flowos exec: the command is an empty word: is a variable unset?"),
    ],
)
def test_the_exit_code_is_the_commands(argv: Sequence[str], code: int, said: str) -> None:
    done = flowos("exec", "--", *argv)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--env", "./none.sqfs"), "no such image: there is nothing at "),
        (("--env", __file__), f"image {__file__}: "),
        (("--env", "bare@bare", "--bind", "/etc"), "environment bare: it has every file of this"),
        (("--bind", "a:b"), "bind 'a:b' (str): expected SRC, SRC:DST or SRC:DST:ro"),
        (("--device", "gpu"), "device 'gpu' (str): expected a CDI name"),
        (("--var", "A"), "variable 'A': expected NAME=VALUE"),
        (("--cwd", "/no/such"), "no such folder to start in: /no/such"),
    ],
)
def test_what_cannot_begin_is_one_line_and_exit_code_125(
    options: Sequence[str], complaint: str
) -> None:
    done = flowos("exec", *options, "--", "true")
    assert done.stderr.startswith(f"flowos exec: {complaint}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (125, "", 1)


def test_no_command_is_a_wrong_call() -> None:
    done = flowos("exec", "--env", "bare", "--")
    assert done.returncode == 2
    assert done.stderr == (
        "flowos exec: no command; name one: flowos exec --env IMAGE -- COMMAND\n"
    )


@pytest.fixture
def hangup() -> Iterator[None]:
    """What nohup has ignored, no shell below it can trap."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_a_signal_reaches_the_command_which_decides_how_it_ends(name: str, opened: Any) -> None:
    script = f"trap 'echo told; exit 9' {name}; echo ready; while :; do sleep 0.02; done"
    with opened("--", "sh", "-c", script) as process:
        assert process.read_line() == "ready"
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.read_line() == "told"
    assert process.returncode == 9


def test_a_command_that_a_signal_ended_is_told_as_a_shell_would(opened: Any) -> None:
    with opened("--", "sh", "-c", "echo ready; exec sleep 300") as process:
        assert process.read_line() == "ready"
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM


def test_when_it_returns_nothing_of_the_command_runs_on(is_gone: Any) -> None:
    done = flowos("exec", "--", "sh", "-c", "setsid sleep 60 & echo $!")
    assert is_gone(int(done.stdout))


def test_the_command_ends_with_a_flowos_that_is_killed(opened: Any, is_gone: Any) -> None:
    with opened("--", "sh", "-c", "echo $$; exec sleep 60") as process:
        pid = int(process.read_line())
        process.kill()
    assert is_gone(pid)


def test_a_reader_that_leaves_ends_the_command() -> None:
    script = f"{FLOWOS} exec -- yes | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout == f"y\n{128 + signal.SIGPIPE}\n"


def test_folder_and_variables_are_those_of_here_and_those_that_are_given(tmp_path: Path) -> None:
    told = """x y$z,="'`id`"""
    script = 'pwd; printf "%s\\n" "$GIVEN" "$HERE"'
    done = flowos(
        *("exec", "--var", f"GIVEN={told}", "--", "sh", "-c", script),
        cwd=tmp_path,
        env={**os.environ, "HERE": "mine", "GIVEN": "another"},
    )
    assert done.stdout == f"{tmp_path}\n{told}\nmine\n"
    done = flowos("exec", "--cwd", "/usr", "--", "pwd", cwd=tmp_path)
    assert done.stdout == "/usr\n"


def test_json_tells_how_it_ended_and_what_it_used() -> None:
    script = "import time, sys; b = b'x' * 5 * 10**7; time.sleep(0.1); sys.exit(4)"
    done = flowos("exec", "--json", "--", sys.executable, "-c", script)
    told = json.loads(done.stderr)
    assert (done.returncode, told["exit_code"]) == (4, 4)
    assert told["end"] == {"how": "Exited", "code": 4}
    assert told["usage"]["wall_seconds"] >= 0.1
    assert told["usage"]["max_rss_bytes"] >= 5 * 10**7


def test_a_dry_run_shows_the_command_line_and_starts_nothing(tmp_path: Path) -> None:
    words = ("touch", str(tmp_path / "it is"))
    done = flowos("exec", "--dry-run", "--", *words)
    assert done.stdout.rstrip().endswith(f"-- touch '{tmp_path}/it is'")
    told = json.loads(flowos("exec", "--dry-run", "--json", "--", *words).stdout)
    assert told["argv"][-2:] == list(words)
    assert (told["environment"], told["cwd"]) == ("bare", str(Path.cwd()))
    assert list(tmp_path.iterdir()) == []


def test_what_is_unknown_is_one_line_with_the_nearest_that_there_is() -> None:
    done = flowos("exec", "--bnd", "x", "--", "pwd")
    assert (done.returncode, done.stderr) == (
        2,
        "flowos exec: error: unrecognized arguments: --bnd; did you mean '--bind'? See flowos exec"
        " --help\n",
    )
    for words, says in (
        (("exce",), "flowos: error: there is no command 'exce'; did you mean 'exec'? See"),
        (("x" * 5000,), "flowos: error: there is no command 'xxxx"),
        (("slice", "lst"), "flowos slice: error: there is no command 'lst'; did you mean 'ls'?"),
        (("measure", "--minutes=m"), "flowos measure: error: argument --minutes: m: expected a "),
    ):
        done = flowos(*words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(says)
        assert len(done.stderr) < 500


def test_a_second_environment_is_refused() -> None:
    done = flowos("exec", "--env", "bare", "--env", "other", "--", "pwd")
    assert (done.returncode, done.stdout) == (2, "")
    assert "argument --env: given twice: bare and other; see" in done.stderr


def test_a_current_folder_that_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f"rmdir ../gone && exec {FLOWOS} exec -- pwd"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path / "gone", capture_output=True, text=True, timeout=120
    )
    told = "flowos exec: the current folder cannot be used: No such file or directory; "
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(told)


def test_help_names_the_launchers_that_start_ranks() -> None:
    of_a_job = {name for name in LAUNCHERS if name.startswith("srun")}
    assert {*MPIS, "direct"} == LAUNCHERS.keys() - of_a_job


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_the_name_of_another_mpi_than_the_starters_is_told(mpi: str) -> None:
    other = {"openmpi": "mpich", "mpich": "openmpi"}[mpi]
    mpirun = here().usual_mpirun(mpi) or {"openmpi": "mpirun", "mpich": "mpiexec"}[mpi]
    if shutil.which(mpirun) is None:
        pytest.skip(f"no {mpirun} on this machine")
    wrong = "intel" if mpi == "openmpi" else other
    done = flowos("exec", "--ranks", "1", "--mpi", wrong, "--mpirun", mpirun, "--", "true")
    assert done.returncode == 125
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"flowos exec: '{mpirun}' is of ")
    assert last.endswith(f"(--mpi {mpi})")


def gang(opened: Any, mpi: str, *words: str) -> Any:
    """Two ranks by this MPI that print a line each when they are ready."""
    mpirun = here().usual_mpirun(mpi) or {"openmpi": "mpirun", "mpich": "mpiexec"}[mpi]
    if shutil.which(mpirun) is None:
        pytest.skip(f"no {mpirun} on this machine")
    return opened("--ranks", "2", "--mpi", mpi, "--oversubscribe", "--", *words)


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize(("name", "code"), [("INT", 130), ("TERM", 143)])
def test_ranks_that_a_signal_ended_are_told_as_a_shell_would(
    mpi: str, name: str, code: int, opened: Any
) -> None:
    with gang(opened, mpi, "sh", "-c", "echo ready; exec sleep 30") as process:
        assert [process.read_line() for _ in "12"] == ["ready", "ready"]
        process.send_signal(getattr(signal, f"SIG{name}"))
        process.communicate(timeout=300)
    assert process.returncode == code


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_an_interrupt_reaches_ranks_which_decide_how_they_end(
    mpi: str, opened: Any, tmp_path: Path
) -> None:
    """Once the first has ended, Open MPI's mpirun leaves the others no time."""
    each = tmp_path / "each"
    both = f"echo >>{each}; until [ $(wc -l <{each}) = 2 ]; do sleep 0.02; done; "
    last = f"echo told; {both if mpi == 'mpich' else ''}exit 9"
    script = f"trap '{last}' INT; echo ready; while :; do sleep 0.02; done"
    with gang(opened, mpi, "sh", "-c", script) as process:
        assert [process.read_line() for _ in "12"] == ["ready", "ready"]
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=300)
    assert out.count("told\n") >= (1 if mpi == "openmpi" else 2)
    assert process.returncode == 9


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_an_mpi_is_started_by_its_own_starter_whichever_is_the_usual_one(mpi: str) -> None:
    mpirun = here().usual_mpirun(mpi) or {"openmpi": "mpirun", "mpich": "mpiexec"}[mpi]
    if shutil.which(mpirun) is None:
        pytest.skip(f"no {mpirun} on this machine")
    words = ("--ranks", "2", "--mpi", mpi, "--oversubscribe", "--", "echo", "hi")
    done = flowos("exec", *words)
    assert (done.returncode, done.stdout) == (0, "hi\nhi\n")
    said = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=True)
    assert ("HYDRA" in said.stdout) == (mpi == "mpich")
    assert mpirun in flowos("exec", "--dry-run", *words).stdout


def test_an_image_of_the_library_is_called_as_the_person_did() -> None:
    file = f"/data/images/{'0a' * 32}.sqfs"
    assert as_named(f"image {file}: it has no MPI", "dk@podman") == "image dk: it has no MPI"
    assert as_named(f"image {file}: it has no MPI", file) == f"image {file}: it has no MPI"
    assert as_named("image /a/b.sqfs: cut off", "./b.sqfs") == "image /a/b.sqfs: cut off"
