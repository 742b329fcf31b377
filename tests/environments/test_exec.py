"""`flowos exec`, `shell` and `run` in an image, by every runtime: as people expect it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowos.engine import here
from flowos.engine.environments import _image_ready, _images
from flowos.engine.environments._images import image_at
from flowos.model import Environment, Form, Image
from flowos.operations import image
from flowos.operations.environment import environment_to_enter
from flowos.operations.exec import ExecRequest, planned

from .conftest import Images, ready_or_skip, squash

FLOWOS = str(Path(sys.executable).with_name("flowos"))

RUNTIMES: tuple[tuple[str, Form], ...] = (
    ("ch-run", "folder"),
    ("ch-run", "squashfs"),
    ("bwrap", "squashfs"),
    ("podman", "squashfs"),
    ("apptainer", "squashfs"),
)


@pytest.fixture(scope="module", params=RUNTIMES, ids=lambda place: "-".join(place))
def env(request: pytest.FixtureRequest, images: Images) -> str:
    """As a person names it; where the runtime works."""
    runtime, form = request.param
    with ready_or_skip(Environment(image=here().image_at(images.of(form)), runtime=runtime)):
        return f"{images.of(form)}@{runtime}"


def flowos(*words: str, **how: Any) -> "subprocess.CompletedProcess[str]":
    known = {"capture_output": True, "text": True, "timeout": 300, "stdin": subprocess.DEVNULL}
    return subprocess.run([FLOWOS, *words], **{**known, **how})


def test_streams_pass_through_byte_for_byte_and_so_does_the_exit_code(
    env: str, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 1024
    done = subprocess.run(
        [FLOWOS, "exec", "--env", env, "--", "sh", "-c", "tee /dev/fd/2; exit 7"],
        input=data,
        capture_output=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert (done.returncode, done.stdout == data) == (7, True)
    said = done.stderr.replace(data, b"")
    assert done.stderr == data, (len(done.stderr), said[:300], said[-300:])


def test_the_standard_streams_are_the_persons_own_files(env: str, tmp_path: Path) -> None:
    """Nothing stands between that could lose what a short command says."""
    streams = [tmp_path / name for name in ("in", "out", "err")]
    for path in streams:
        path.touch()
    numbers = "stat -L -c %i /dev/fd/0 /dev/fd/1 /dev/fd/2"
    with streams[0].open() as given, streams[1].open("w") as out, streams[2].open("w") as err:
        words = ("exec", "--env", env, "--", "sh", "-c", numbers)
        flowos(*words, capture_output=False, stdin=given, stdout=out, stderr=err, cwd=tmp_path)
    seen = [int(line) for line in streams[1].read_text().split()]
    assert seen == [path.stat().st_ino for path in streams], streams[2].read_text()


def test_a_start_loads_no_library_that_only_a_first_one_needs(env: str, tmp_path: Path) -> None:
    """One start of several: a busy machine may need one for a mount that is still held."""
    program = (
        "import sys; from flowos.cli import main; code = main(sys.argv[1:]);"
        "open('modules', 'w').write(' '.join(sys.modules)); sys.exit(code)"
    )
    late = {"dataclasses", "inspect", "ast", "random", "tempfile", "platform", "struct", "tarfile"}
    if not env.endswith("sqfs@podman"):  # it enters what was unpacked, and looks through that
        late |= {"hashlib", "shutil"}
    words = [sys.executable, "-c", program, "exec", "--env", env, "--", "true"]
    loaded = late
    for _ in range(5):
        subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
        loaded = late & {*(tmp_path / "modules").read_text().split()}
        if not loaded:
            break
    assert not loaded


def test_a_closed_stdin_is_as_good_as_empty(env: str, tmp_path: Path) -> None:
    words = f"exec {FLOWOS} exec --env {env} -- sh -c 'cat; echo end' <&-"
    done = subprocess.run(["sh", "-c", words], capture_output=True, cwd=tmp_path, timeout=300)
    assert (done.returncode, done.stdout) == (0, b"end\n"), done.stderr


def test_what_is_printed_is_seen_while_the_command_still_reads(env: str, opened: Any) -> None:
    with opened("--env", env, "--", "sh", "-c", "echo ready; read line; echo got $line") as process:
        assert process.read_line() == "ready"
        assert process.stdin
        process.stdin.write("it\n")
        assert process.read_line() == "got it"
    assert process.returncode == 0


def test_a_command_that_is_not_there_is_told_by_its_name_and_code(env: str, tmp_path: Path) -> None:
    done = flowos("exec", "--env", env, "--", "no-such", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.startswith("flowos exec: no such command 'no-such' (looked in PATH=")
    done = flowos("exec", "--env", env, "--", "/etc/hosts", cwd=tmp_path)
    assert done.returncode == 126


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_signal_reaches_the_command_which_decides_how_it_ends(
    env: str, name: str, opened: Any
) -> None:
    script = f"trap 'echo told; exit 9' {name}; echo ready; while :; do sleep 0.02; done"
    with opened("--env", env, "--", "sh", "-c", script) as process:
        assert process.read_line() == "ready"
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.read_line() == "told"
    assert process.returncode == 9


def test_the_command_ends_with_a_flowos_that_is_killed(env: str, opened: Any, is_gone: Any) -> None:
    script = "sleep 60 & echo $$ $!; wait"
    with opened("--env", env, "--", "sh", "-c", script) as process:
        pids = [int(word) for word in process.read_line().split()]
        process.kill()
    assert len(pids) == 2
    assert all(map(is_gone, pids))


def test_when_it_returns_nothing_of_the_command_runs_on(
    env: str, tmp_path: Path, is_gone: Any
) -> None:
    done = flowos("exec", "--env", env, "--", "sh", "-c", "setsid sleep 60 & echo $!", cwd=tmp_path)
    assert is_gone(int(done.stdout))


def test_the_current_folder_is_there_and_the_home_is_not(env: str) -> None:
    """Neither by its path, nor by what HOME says; but where one stands is seen and written to."""
    here = Path.home() / "flowos-test-here"
    shutil.rmtree(here, ignore_errors=True)
    (here / "below").mkdir(parents=True)
    (Path.home() / "flowos-test-secret").write_text("s")
    script = f'pwd; echo made > made; ls {Path.home()}; cd; pwd; ls "$HOME"; id -u'
    try:
        done = flowos("exec", "--env", env, "--", "sh", "-c", script, cwd=here)
        lines = done.stdout.splitlines()
        assert (here / "made").read_text() == "made\n"
        assert (here / "made").stat().st_uid == os.getuid()
        assert lines[0] == str(here)
        assert lines[-1] == str(os.getuid())
        assert "flowos-test-secret" not in done.stdout
        assert lines[-2].startswith("/tmp/flowos-")
    finally:
        shutil.rmtree(here)
        (Path.home() / "flowos-test-secret").unlink()


def test_standing_at_home_is_said_to_be_outside_unless_it_is_asked_for(env: str) -> None:
    done = flowos("exec", "--env", env, "--", "pwd", cwd=Path.home())
    assert done.stdout == "/\n"
    assert f"{Path.home()} is not to be seen inside: your home is bound only when" in done.stderr
    done = flowos("exec", "--env", env, "--bind", str(Path.home()), "--", "pwd", cwd=Path.home())
    assert (done.stdout, done.returncode) == (f"{Path.home()}\n", 0)


def test_variables_are_those_that_are_let_through_and_those_that_are_given(
    env: str, tmp_path: Path
) -> None:
    told = """x y$z,="'`id`"""
    here = {"SECRET": "s", "LD_LIBRARY_PATH": "/x", "PYTHONPATH": "/x", "OMP_NUM_THREADS": "3"}
    done = flowos(
        *("exec", "--env", env, "--var", f"GIVEN={told}", "--", "env"),
        cwd=tmp_path,
        env={**os.environ, **here},
    )
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert seen["GIVEN"] == told
    assert (seen["OMP_NUM_THREADS"], seen["PYTHONNOUSERSITE"]) == ("3", "1")
    assert not {"SECRET", "LD_LIBRARY_PATH", "PYTHONPATH"} & set(seen)


def test_a_bind_is_where_it_is_asked_for_and_one_that_cannot_be_is_one_line(
    env: str, tmp_path: Path
) -> None:
    (tmp_path / "note").write_text("bound")
    bind = f"{tmp_path}:/mnt"
    done = flowos("exec", "--env", env, "--bind", bind, "--", "cat", "/mnt/note", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("bound", 0)
    words = ("exec", "--env", env, "--bind", "/no/such:/mnt", "--", "true")
    done = flowos(*words, cwd=tmp_path)
    assert done.returncode == 125
    assert done.stderr.startswith("flowos exec: bind /no/such at /mnt: there is no /no/such")
    assert done.stderr.count("\n") == 1


def test_a_dry_run_shows_the_runtimes_own_command_line(env: str, tmp_path: Path) -> None:
    done = flowos("exec", "--env", env, "--dry-run", "--json", "--", "echo", "x", cwd=tmp_path)
    told = json.loads(done.stdout)
    runtime = env.rpartition("@")[2]
    assert {runtime, "singularity"} & {Path(word).name for word in told["argv"]}
    assert told["argv"][-3:] == ["--", "echo", "x"]
    assert told["environment"].endswith(f"@{runtime}")


def test_the_image_of_a_command_is_looked_at_once(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []

    def image_seen(path: Path, *, digest: bool = True) -> Image:
        looked.append(path)
        return image_at(path, digest=digest)

    for module in (_images, _image_ready):
        monkeypatch.setattr(module, "image_at", image_seen)
    monkeypatch.chdir(tmp_path)
    asked = environment_to_enter(env, (), (), ())
    planned(ExecRequest(env=asked, argv=("true",)))
    assert asked.image
    to_unpack = env.endswith("sqfs@podman") and not asked.image.digest  # which it is named by
    assert looked == [Path(env.rpartition("@")[0])] * (1 + to_unpack)


def test_an_image_is_entered_by_its_name_without_a_database(
    images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    image.import_image(str(images.folder), name="small")
    words = (sys.executable, "-X", "importtime", "-m", "flowos", "exec", "--env", "small")
    done = subprocess.run([*words, "--", "pwd"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}\n")
    assert "flowos.operations.exec" in done.stderr
    assert "sqlite3" not in done.stderr


# ---- at a terminal ----


COUNTS = """
n=0
trap 'n=$((n+1))' INT
echo ready
while [ $n = 0 ]; do sleep 0.05; done
for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done
echo told $n times
"""
JOB = """
trap 'echo again' CONT
echo ready
while :; do sleep 0.02; done
"""


def test_ctrl_c_reaches_the_command_once(env: str, terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "counts").write_text(COUNTS)
    at = terminal()
    at.type(f"cd {tmp_path}; $FLOWOS exec --env {env} -- sh counts\n")
    at.read_until("\nready")
    at.type("\x03")
    assert at.read_until("times").endswith("told 1 times")


def test_a_shell_has_job_control_and_gives_the_terminal_back(
    env: str, terminal: Any, tmp_path: Path
) -> None:
    (tmp_path / "job").write_text(JOB)
    at = terminal()
    at.resize(40, 120)
    at.type(f"cd {tmp_path}; $FLOWOS shell --env {env}\n")
    at.read_until("] ")
    at.type("PS1='in> '\n")
    at.read_until("\nin> ")
    at.type("tty; test -e /bin/busybox && echo in''side\n")
    at.read_until("/dev/pts/")
    at.read_until("inside")
    at.type("sh job\n")
    at.read_until("ready")
    at.type("\x1a")
    at.read_until("Stopped")
    at.read_until("in> ")
    at.type("fg\n")
    at.read_until("again")
    at.type("\x03")
    at.read_until("in> ")
    at.type("exit 7\n")
    at.read_until("$> ")
    at.type("echo code=$?=\n")
    at.read_until("code=7=")
    assert at.modes == "ECHO ICANON ISIG"


@pytest.mark.parametrize("ignored", ["INT", "HUP"])
def test_a_shell_can_be_used_where_a_signal_is_ignored(
    env: str, ignored: str, terminal: Any, tmp_path: Path
) -> None:
    """As in a terminal that nohup started."""
    at = terminal()
    at.type(f"cd {tmp_path}; trap '' {ignored}; $FLOWOS shell --env {env}\n")
    at.read_until("] ")
    at.type("echo he''re; exit 7\n")
    at.read_until("here")
    at.read_until("$> ")
    at.type("echo code=$?=\n")
    at.read_until("code=7=")


def test_a_killed_flowos_leaves_a_sane_terminal_and_no_shell(
    env: str, terminal: Any, tmp_path: Path, is_gone: Any
) -> None:
    at = terminal()
    at.type(f"cd {tmp_path}; $FLOWOS shell --env {env} & sleep 0.1; echo pid=$!=; fg\n")
    flowos_pid = at.read_number("pid")
    at.read_until("] ")
    at.type("echo shell=$$=\n")
    shell = at.read_number("shell")
    at.read_until("] ")  # its shell has set the modes of its next prompt
    os.kill(flowos_pid, signal.SIGKILL)
    at.read_until("Killed")
    at.type("echo go''es on\n")
    at.read_until("goes on")
    assert is_gone(shell)
    assert at.modes == "ECHO ICANON ISIG"


# ---- what the image itself wants run ----


@pytest.fixture(scope="module")
def own(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image with a runscript, and with an entry point."""
    home = tmp_path_factory.mktemp("own")
    home.chmod(0o755)
    for name in ("runscript", "entry"):
        shutil.copytree(images.folder, home / name, symlinks=True)
    folder = home / "runscript/.singularity.d"
    folder.mkdir()
    (folder / "runscript").write_text('#!/bin/sh\necho "runscript in $PWD: $*"; exit 3\n')
    (folder / "runscript").chmod(0o755)
    config = {
        "entrypoint": ["/bin/echo", "entry"],
        "command": ["point"],
        "variables": [],
        "cwd": "/usr",
    }
    (home / "entry/.flowos").mkdir()
    (home / "entry/.flowos/image.json").write_text(json.dumps(config))
    for name in ("runscript", "entry"):
        squash(home / name, home / f"{name}.sqfs")
    return home


def test_run_runs_the_runscript_with_arguments_in_the_current_folder(
    env: str, own: Path, tmp_path: Path
) -> None:
    runtime = env.rpartition("@")[2]
    image = f"{own / 'runscript.sqfs'}@{runtime}"
    done = flowos("run", "--env", image, "--", "a b", "--c", cwd=tmp_path)
    assert (done.stdout, done.returncode) == (f"runscript in {tmp_path}: a b --c\n", 3)


def test_run_runs_the_entry_point_and_arguments_stand_for_its_command(
    env: str, own: Path, tmp_path: Path
) -> None:
    runtime = env.rpartition("@")[2]
    image = f"{own / 'entry.sqfs'}@{runtime}"
    assert flowos("run", "--env", image, cwd=tmp_path).stdout == "entry point\n"
    assert flowos("run", "--env", image, "--", "x", "-y", cwd=tmp_path).stdout == "entry x -y\n"


def test_an_image_that_has_nothing_to_run_is_said_so(env: str, tmp_path: Path) -> None:
    done = flowos("run", "--env", env, cwd=tmp_path)
    assert done.returncode == 127
    assert "the image has no runscript and no entry point; name a command" in done.stderr
