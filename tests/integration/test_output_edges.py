"""Where an answer cannot be written: a full disk, a closed pipe. JSON that every reader takes."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.waiting import comes

Flowos = Callable[..., subprocess.CompletedProcess[str]]

SAYS = (
    ("list",),
    ("list", "--json"),
    ("show",),
    ("show", "--json"),
    ("compare", "--axis", "cores"),
    ("compare", "--axis", "cores", "--json"),
    ("report", "--out", "again"),
    ("rm", "--dry-run", "last"),
    ("doctor", "--json"),
    ("measure", "--only", "clock", "--dry-run"),
    ("exec", "--dry-run", "--", "true"),
    ("solve", "poisson:8x8x8", "--json"),
    ("--help",),
    ("list", "--help"),
    ("--version",),
)


def with_store(words: tuple[str, ...], store: Path) -> list[str]:
    kept = words[0] in ("list", "show", "compare", "report", "rm") and "--help" not in words
    return [*words, "--store", str(store)] if kept else list(words)


PROGRAM = (sys.executable, "-m", "flowos")


def command(words: tuple[str, ...], store: Path, program: Sequence[str] = PROGRAM) -> list[str]:
    return [*program, *with_store(words, store)]


@pytest.fixture
def called(words: tuple[str, ...], two_runs: Path, request: pytest.FixtureRequest) -> list[str]:
    """What begins these words as a process; none looks at this machine."""
    looks = words[0] in ("measure", "doctor")
    return command(words, two_runs, request.getfixturevalue("looked_flowos") if looks else PROGRAM)


@pytest.mark.parametrize("words", SAYS)
def test_a_full_disk_behind_standard_output_is_one_line_and_code_3(
    called: list[str], tmp_path: Path
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            called,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            timeout=300,
        )
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("standard output cannot be written: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [("list",), ("show", "--json"), ("--version",), ("solve", "poisson:8x8x8")]
)
def test_a_closed_standard_output_is_one_line_and_code_3(
    words: tuple[str, ...], two_runs: Path, tmp_path: Path
) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command(words, two_runs)]
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("standard output cannot be written: Bad file descriptor")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [w for w in SAYS if w[0] != "solve"])
def test_a_reader_that_stops_ends_a_command_quietly_as_sigpipe_would(
    called: list[str], tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        called,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_messages_that_cannot_be_written_cost_no_result(
    looked_flowos: list[str], tmp_path: Path
) -> None:
    shortly = ("measure", "--quick", "--only", "clock", "--minutes", "0.02")
    words = (*shortly, "--json", "--store", str(tmp_path / "s.db"))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*looked_flowos, *words],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            cwd=tmp_path,
            timeout=300,
        )
    assert done.returncode == 0
    assert json.loads(done.stdout)["report"]["measurements"]


def strictly(text: str) -> object:
    """JSON of RFC 8259, in which neither NaN nor Infinity is a number."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("words", [w for w in SAYS if "--json" in w])
def test_json_is_strict_and_holds_no_number_as_text(
    words: tuple[str, ...], two_runs: Path, flowos: Flowos
) -> None:
    done = flowos(*with_store(words, two_runs))
    strictly(done.stdout)
    for word in ('"inf"', '"-inf"', '"nan"'):
        assert word not in done.stdout


def test_a_flow_that_gives_what_json_lacks_gives_null(flowos: Flowos, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(
        "import flowos as fo\n"
        "@fo.task\n"
        "def over(a: fo.float64) -> fo.float64:\n"
        "    return a * float('inf')\n"
        "a = fo.flow_input('a', fo.float64)\n"
        "flow = fo.flow_output(over(a))\n"
    )
    assert strictly(flowos("run", "flow.py", "--json", "a=1").stdout) == {"over": None}


def test_a_kept_run_is_what_the_published_schema_says(flowos: Flowos, two_runs: Path) -> None:
    schema = json.loads(flowos("report", "--schema").stdout)
    shown = strictly(flowos("show", "--json", "--store", str(two_runs)).stdout)
    Draft202012Validator(schema).validate(shown)


_AT_EXIT = """\
import atexit, sys, threading, time
from flowos.cli import script
atexit.register(print, "an earlier function")
threading.Thread(target=lambda: (time.sleep(0.1), print("a thread"))).start()
sys.argv = ["flowos", "exec", "--", "sh", "-c", "exit 7"]
code = script()
atexit.register(print, "a later function")
print("half a line", end="", file=sys.stderr)
sys.exit(code)
"""


def test_a_program_ends_with_its_code_after_threads_and_functions_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_EXIT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (7, "half a line")
    assert done.stdout == "a thread\na later function\n"


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--no-such", 2)])
def test_a_program_that_only_says_how_it_is_called_ends_with_its_code(word: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-m", "flowos", "exec", word], capture_output=True)
    assert (done.returncode, b"flowos exec" in done.stdout + done.stderr) == (code, True)


@pytest.mark.parametrize("before", [(), ("--set", "pools.local.cores=2")])
def test_what_a_flow_file_leaves_open_is_written(
    flowos_process: Flowos, tmp_path: Path, before: tuple[str, ...]
) -> None:
    (tmp_path / "flow.py").write_text(
        "import flowos as fo\n"
        "out = open('out', 'w')\n"
        "@fo.task\n"
        "def note(a: int) -> int:\n"
        "    return out.write(str(a))\n"
        "flow = fo.flow_output(note(fo.flow_input('a', int)))\n"
    )
    flowos_process(*before, "run", "flow.py", "a=1234567")
    assert (tmp_path / "out").read_text() == "1234567"


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "utf-8:surrogateescape"])
def test_what_the_terminal_has_no_letters_for_is_escaped(
    flowos_process: Flowos, tmp_path: Path, variables: dict[str, str], encoding: str
) -> None:
    variables["PYTHONIOENCODING"] = encoding
    (tmp_path / "flow.py").write_text(
        "import flowos as fo\n"
        "@fo.task\n"
        "def word(a: int) -> str:\n"
        "    return 'a\\ud800'\n"
        "flow = fo.flow_output(word(fo.flow_input('a', int)))\n"
    )
    assert "= a\\ud800" in flowos_process("run", "flow.py", "a=1").stdout


PIPE_BYTES = 1 << 16
WRITES_MORE_THAN_FITS = f"""
import os
import flowos as fo

@fo.task
def write(n: fo.int64) -> fo.int64:
    os.write(1, b"." * ({PIPE_BYTES} - 4096))
    print("x" * 4999, flush=True)
    return n

flow = fo.flow_output(write(fo.flow_input("n", fo.int64)))
"""


def test_what_an_interrupt_cuts_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(WRITES_MORE_THAN_FITS)
    running = subprocess.Popen(
        command(("run", str(tmp_path / "flow.py"), "n=1"), tmp_path), stdout=subprocess.PIPE
    )
    assert running.stdout
    pipe = running.stdout.fileno()

    def is_full() -> bool:
        (held,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
        return bool(held == PIPE_BYTES)

    assert comes(is_full)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate()
    assert (running.returncode, out.count(b"x")) == (130, 4999)


INTERRUPTED_UNSEEN = """
import signal, threading, time
import flowos as fo

def interrupt():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

@fo.task
def wait(n: fo.int64) -> fo.int64:
    threading.Thread(target=interrupt).start()
    time.sleep(600)
    return n

flow = fo.flow_output(wait(fo.flow_input("n", fo.int64)))
"""


def test_an_interrupt_that_another_thread_hears_ends_a_wait(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(INTERRUPTED_UNSEEN)
    words = command(("run", str(tmp_path / "flow.py"), "n=1"), tmp_path)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (130, "flowos run: interrupted\n")


PRINTS = """
import time
import flowos as fo

@fo.task
def say(n: fo.int64) -> fo.int64:
    for each in range(200_000):
        print(each, flush=True)
        time.sleep(0.01)
    return n

flow = fo.flow_output(say(fo.flow_input("n", fo.int64)))
"""


@pytest.mark.parametrize("workers", ["thread", "process", "inline"])
def test_a_task_whose_prints_nobody_reads_ends_the_command_quietly(
    workers: str, tmp_path: Path
) -> None:
    (tmp_path / "flow.py").write_text(PRINTS)
    words = command(("run", str(tmp_path / "flow.py"), "n=1", "--workers", workers), tmp_path)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        assert it.stdout
        assert it.stdout.readline() == "0\n"
        it.stdout.close()
        assert it.stderr
        assert (it.stderr.read(), it.wait(100)) == ("", 141)


@pytest.mark.parametrize("workers", ["thread", "process"])
@pytest.mark.parametrize(
    ("out", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_task_whose_prints_are_not_taken_ends_the_command(
    workers: str, out: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "flow.py").write_text(PRINTS)
    words = command(("run", str(tmp_path / "flow.py"), "n=1", "--workers", workers), tmp_path)
    shell = ["sh", "-c", f'exec "$@" {out}', "sh", *words]
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=300)
    why = f"standard output cannot be written: {why}"
    assert (done.returncode, done.stderr) == (3, f"flowos run: {why}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_exit_code_says_which_signal_ended_a_command(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "flow.py").write_text(PRINTS)
    heard = ("env", "--default-signal=HUP")  # which nohup, and what is started so, ignores
    words = (*heard, *command(("run", str(tmp_path / "flow.py"), "n=1"), tmp_path))
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout
        assert running.stdout.readline() == "0\n"
        running.send_signal(number)
        _, said = running.communicate(timeout=300)
    finally:
        running.kill()
    word = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert (running.returncode, said) == (128 + number, f"flowos run: {word}\n")
