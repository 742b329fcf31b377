"""Bodies in Verilog on a board behind a serial line: all of it is real but the FPGA."""

import ctypes
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.drivers.hdl.module_face import Face
from flowos.drivers.hdl.tops import BOARD as TOP
from flowos.drivers.hdl.tops import board_top
from flowos.engine import here
from flowos.engine.bodies._bitstream import bridge
from flowos.engine.bodies._simulated import simulation
from tests import tap
from tests.bitstreams import SYNC, xilinx_bit
from tests.moody import EARLY, ENDLESS, MOODY, PORTS, WORDS, failure, moody, run, words
from tests.port_locks import as_another_user, locking, waits_for
from tests.tap import Board
from tests.waiting import comes

BOARD = Path(__file__).parents[2] / "uart_board.cpp"


def uart(port: str | None, **options: Any) -> Any:
    return moody(
        **{"link": "uart", "port": port, "board": "icebreaker", "baud": 3_000_000, **options}
    )


@pytest.fixture(scope="module")
def run_board() -> Callable[..., None]:
    """Simulates the board to its pins: our bridge and the module behind it."""
    design = uart("/dev/null").body.fun.design
    face = Face(clock="aclk", reset="aresetn", reset_level=0)
    texts = (bridge(), board_top(design, face, 4))
    whole = replace(design, top=TOP, files=(*design.files, *(("", text) for text in texts)))
    code = f'#include "Vmodule.h"\n{BOARD.read_text()}'
    library = ctypes.CDLL(str(simulation(whole, lambda *_: code, code)))
    library.run_board.restype = None
    return library.run_board


@contextmanager
def board(
    run_board: Callable[..., None], damaged_in: int = -1, damaged_out: int = -1, silent: int = -1
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The port of a board, and what unplugs it."""
    ours, theirs = os.openpty()
    port = os.ttyname(theirs)
    stop = ctypes.c_int32(0)
    faults = (ctypes.c_int64(n) for n in (damaged_in, damaged_out, silent))
    os.set_blocking(ours, False)
    thread = threading.Thread(target=run_board, args=(ours, 4, ctypes.byref(stop), *faults))
    thread.start()
    closed: list[int] = []

    def unplug() -> None:
        stop.value = 1
        thread.join()
        for fd in (ours, theirs):
            os.close(fd)
        closed.append(1)

    try:
        yield port, unplug
    finally:
        if not closed:
            unplug()


def test_a_board_behind_a_serial_line_gives_what_the_simulation_gives(
    run_board: Callable[..., None],
) -> None:
    """More than it can hold at once, with all bytes that have a meaning on the line."""
    random = np.random.default_rng(5)
    a = random.integers(0, 2**32, 400, np.uint32)
    a[:300] = random.choice(np.frombuffer(b"\xc0\xdb\xdc\xdd" * 8, np.uint32), 300)
    b = random.integers(0, 2**32, 400, np.uint32)
    with board(run_board) as (port, _):
        (found,) = run(uart(port), a, b)
        assert found.tolist() == (a + b).tolist()
        port_a, port_b = (fo.flow_input(name, WORDS) for name in "ab")
        twice = fo.flow_output(uart(port)(port_a, port_b), uart(port)(port_b, port_b))
        with fo.slice(twice, workers="thread", cores=2) as opened:
            sums: Any = opened.run(words(1, 2), words(3, 4))
        assert [each.tolist() for each in sums] == [[4, 6], [6, 8]]
        assert run(uart(port), words(), words())[0].tolist() == []
        said = failure(uart(port), words(1, EARLY, 2), words(0, 0, 0))
        assert f"DeviceError: {port}: module moody ended stream 'm' after 2 beats" in said
        assert "no tlast with beat 2" in failure(uart(port), words(1, ENDLESS), words(0, 0))
        other = fo.hdl(MOODY.read_text(), "moody", **{**PORTS, "link": "uart", "port": port})
        said = failure(other, words(1), words(1))
        assert "another module than this moody: load the file of fo.bitstream; given" in said


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"damaged_in": 20}, "it received a damaged frame (CRC); a lower baud= may help"),
        ({"damaged_out": 22}, "a damaged frame came (CRC); it took "),
        ({"silent": 0}, "the board said nothing for 2.0 s: it does not say what it is"),
        ({"silent": 20}, "the board said nothing for 2.0 s: it took "),
    ],
)
def test_what_goes_wrong_on_the_line_is_one_line(
    run_board: Callable[..., None],
    faults: dict[str, int],
    said: str,
) -> None:
    with board(run_board, **faults) as (port, _):
        found = failure(uart(port), words(*range(50)), words(*range(50)))
    assert f"task 'moody' raised DeviceError: {port}: {said}" in found


def test_a_line_that_is_never_silent_is_no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowos.engine.bodies._uart_module._MIN_SECONDS", 0.1)
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    over = threading.Event()

    def talk() -> None:
        while not over.wait(0.001):
            with suppress(BlockingIOError):
                os.write(ours, b"x" * 100)

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        assert "the board said nothing for" in failure(uart(os.ttyname(theirs)), words(1), words(1))
    finally:
        over.set()
        thread.join()
        os.close(ours)
        os.close(theirs)


def test_a_board_that_is_unplugged_is_said(run_board: Callable[..., None]) -> None:
    caught: list[str] = []
    with board(run_board, silent=20) as (port, unplug):
        task = uart(port, limit_cycles=10**9)
        thread = threading.Thread(
            target=lambda: caught.append(failure(task, words(*range(50)), words(*range(50))))
        )
        thread.start()
        assert comes(lambda: any(port in link for link in opened()))
        unplug()
        thread.join()
    assert f"{port}: the line was lost; is it still plugged in?" in caught[0]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """flowos.toml, and a bitstream that was made elsewhere next to it."""
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    monkeypatch.setenv("FLOWOS_DEVICES_DIR", str(tmp_path / "locks"))
    (tmp_path / "a.bit").write_bytes(xilinx_bit("7a35tcpg236", SYNC + bytes(999)))
    yield tmp_path / "flowos.toml"
    here().know_fpgas(())


def fpga(name: str, cable: Board, port: str) -> str:
    return f'[fpgas.{name}]\naddress = "127.0.0.1:{cable.port}"\nport = "{port}"\n'


def on_board(settings: Path, workers: str = "inline") -> tuple[list[int], list[str]]:
    """What a slice computes, and what it notes of boards."""
    task = uart(None, bitstream=settings.with_name("a.bit"))
    flow = fo.flow_output(task(*(fo.flow_input(name, WORDS) for name in "ab")))
    with fo.slice(flow, workers=workers) as opened:  # type: ignore[call-overload]
        (found,) = opened.run(words(1, 2), words(3, 4))
        return found.tolist(), [note for note in opened.notes if "bitstream" in note]


def test_a_slice_loads_the_board_of_its_task_once(
    run_board: Callable[..., None], settings: Path
) -> None:
    """Also for workers that are other processes; the next slice finds it loaded."""
    digest = f"sha256:{hashlib.sha256(settings.with_name('a.bit').read_bytes()).hexdigest()}"[:19]
    with board(run_board) as (port, _), tap.board(tap.ARTIX7) as cable:
        settings.write_text(fpga("one", cable, port))
        found, notes = on_board(settings, "process")
        assert (found, cable.loads, cable.done) == ([4, 6], 1, True)
        assert notes == [f"task 'moody': one was loaded with its bitstream {digest}"]
        found, notes = on_board(settings)
        assert (found, cable.loads) == ([4, 6], 1)
        assert notes == [f"task 'moody': one had its bitstream {digest}"]
        cable.lose_power()
        assert (on_board(settings)[0], cable.loads) == ([4, 6], 2)


def test_a_board_that_is_not_loaded_is_out_of_use_and_another_is_taken(
    run_board: Callable[..., None], settings: Path
) -> None:
    with (
        board(run_board) as (port, _),
        tap.board(tap.ARTIX7, "no DONE") as bad,
        tap.board(tap.ARTIX7) as good,
    ):
        settings.write_text(fpga("bad", bad, "/dev/null") + fpga("good", good, port))
        for _ in range(2):
            assert on_board(settings)[0] == [4, 6]
        assert (bad.loads, good.loads) == (1, 1)
        settings.write_text(fpga("bad", bad, "/dev/null"))
        with pytest.raises(fo.SliceRefused) as refused:
            on_board(settings)
        assert "slice: task 'moody': bad: taken out of use: " in str(refused.value)
        assert "no DONE" in str(refused.value)
        settings.write_text("")
        with pytest.raises(fo.SliceRefused, match=r"task 'moody': which line leads to its board\?"):
            on_board(settings)


def in_python() -> Any:
    ports = {"iport_nametypes": (("a", WORDS), ("b", WORDS)), "oport_nametypes": ("m", WORDS)}
    return fo.task({"task_name": "moody", **ports, "fun": lambda a, b: a + b})


NO_BOARD = "[fpgas.one]\naddress = '127.0.0.1:1'\nport = '/dev/null'\n"


@pytest.mark.parametrize(
    ("boards", "path", "said"),
    [
        ("", "/usr/bin", "which line leads to its board?"),
        (NO_BOARD, "/nowhere", "there is no yosys: apt-get install yosys"),
    ],
)
def test_a_board_that_is_not_there_leaves_its_task_to_other_bodies(
    settings: Path, monkeypatch: pytest.MonkeyPatch, boards: str, path: str, said: str
) -> None:
    settings.write_text(boards)
    monkeypatch.setenv("PATH", path)
    on = {} if boards else {"bitstream": settings.with_name("a.bit")}
    inputs = [fo.flow_input(name, WORDS) for name in "ab"]
    both, board = fo.either(in_python(), uart(None, **on)), uart(None, **on)
    ways: list[Any] = ["inline", "process"]
    for workers in ways:
        with fo.slice(fo.flow_output(both(*inputs)), workers=workers) as opened:
            for _ in range(9):
                (found,) = opened.run(words(1), words(3))
                assert np.array_equal(found, [4])
            assert any(note.startswith(f"task 'moody': {said}") for note in opened.notes)
    with pytest.raises(fo.SliceRefused) as refused:
        fo.slice(fo.flow_output(both(*inputs), board(*inputs)))
    assert said in str(refused.value)


def test_a_module_that_is_wrong_is_no_board_that_is_not_there(settings: Path) -> None:
    settings.write_text(NO_BOARD)
    either = fo.either(in_python(), uart(None, bitstream=settings.with_name("no.bit")))
    flow = fo.flow_output(either(*(fo.flow_input(name, WORDS) for name in "ab")))
    with pytest.raises(fo.SliceRefused, match=r"task 'moody': there is no bitstream .*no\.bit"):
        fo.slice(flow)


def opened() -> list[str]:
    """Files that this process has open, twice for those that it opened twice."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the folder itself
            found.append(str(link.readlink()))
    return [name for name in found if found.count(name) > 1]


def test_ports_that_cannot_be_opened_are_said(
    run_board: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = words(1)
    assert "/dev/ttyUSB99: there is no such port; is it plugged in?" in failure(
        uart("/dev/ttyUSB99"), one, one
    )
    assert "/dev/null: it is no serial line" in failure(uart("/dev/null"), one, one)
    monkeypatch.setattr("flowos.engine.bodies._one_owner._OTHERS_SECONDS", 0.1)
    with board(run_board) as (port, _):
        with locking(port, "fcntl.flock(line, fcntl.LOCK_EX)") as pid:
            said = f"{port}: process {pid} ({sys.executable} -c import fcntl"
            assert said in failure(uart(port), one, one)
        Path(port).chmod(0)
        with as_another_user():
            assert f"{port}: there is no right to open it: usermod -aG dialout" in failure(
                uart(port), one, one
            )


def test_programs_of_ours_wait_for_their_turn_as_long_as_it_takes(
    run_board: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here another one has it, and then a third one is next; both go, and the kernel knows."""
    monkeypatch.setattr("flowos.engine.bodies._one_owner._OTHERS_SECONDS", 5)
    found: list[Any] = []
    with board(run_board) as (port, _):
        call = threading.Thread(target=lambda: found.extend(run(uart(port), words(1), words(2))))
        has = "fcntl.lockf(line, fcntl.LOCK_EX, 1, 1), fcntl.flock(line, fcntl.LOCK_EX)"
        with locking(port, has):
            with locking(port, "fcntl.lockf(line, fcntl.LOCK_EX, 1, 0)"):
                call.start()
                assert comes(lambda: waits_for(port))
            assert comes(lambda: waits_for(port))
            assert not found
        call.join()
    assert found[0].tolist() == [3]
