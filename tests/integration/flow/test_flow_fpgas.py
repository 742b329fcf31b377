"""Tasks that need FPGAs which flowos.toml names: no other program has them meanwhile."""

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldDevice, here
from flowos.engine._device_hold import WantedBoard
from flowos.engine.devices._slice_devices import SliceDevices
from flowos.model import Fpga
from tests.bitstreams import SYNC, xilinx_bit
from tests.tap import ARTIX7, Board, board
from tests.waiting import PATIENCE_SECONDS

FPGA = fo.Needs(devices={"fpga": 1})
SAY = ["sh", "-c", "echo ${FLOWOS_DEVICES_FPGA:-none}"]


def saying(needs: fo.Needs | list[fo.Needs]) -> fo.Flow:
    """Which FPGA its one task has."""
    return fo.flow_output(fo.command(SAY, stdout="said", needs=needs, name="which")())


WHICH = saying(FPGA)


@pytest.fixture
def boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Board, Board]]:
    settings = tmp_path / "flowos.toml"
    monkeypatch.setenv("FLOWOS_CONFIG", str(settings))
    monkeypatch.setenv("FLOWOS_DEVICES_DIR", str(tmp_path / "locks"))
    with board(ARTIX7) as one, board(ARTIX7) as two:
        tables = (("one", one), ("two", two))
        settings.write_text(
            "".join(f'[fpgas.{n}]\naddress = "127.0.0.1:{b.port}"\n' for n, b in tables)
        )
        yield one, two
    here().know_fpgas(())


def held(name: str, made: Board) -> HeldDevice:
    """As another program has it."""
    fpga = Fpga(name=name, address=f"127.0.0.1:{made.port}")
    (device,) = here().devices([fpga], ("openfpgaloader",), ask=False)
    return HeldDevice(device)


def test_a_task_is_told_its_fpga_and_slices_give_it_back(boards: tuple[Board, Board]) -> None:
    for pool in ({}, {"pool": "local"}):
        with fo.slice(WHICH, **pool) as s:  # type: ignore[call-overload]
            assert s.run() == ["one\n"]
    held("one", boards[0]).release()


def test_a_task_loads_the_fpga_that_its_program_holds(
    boards: tuple[Board, Board], tmp_path: Path
) -> None:
    file = tmp_path / "a.bit"
    file.write_bytes(xilinx_bit("7a35tcpg236", SYNC + bytes(999)))
    load = f"{sys.executable} -m flowos device load {file} --device $FLOWOS_DEVICES_FPGA"
    loads = fo.command(["sh", "-c", load], stdout="said", needs=FPGA)
    with fo.slice(fo.flow_output(loads())) as s:
        assert "one (xc7a35): loaded" in str(s.run()[0])
    assert boards[0].done


@pytest.mark.usefixtures("boards")
def test_slices_of_one_program_share_what_it_holds() -> None:
    with (
        fo.slice(WHICH) as first,
        fo.slice(WHICH) as second,
    ):
        assert first.run() == second.run() == ["one\n"]
        first.free()
        assert second.run() == ["one\n"]


def test_what_another_program_has_is_left_to_it(boards: tuple[Board, Board]) -> None:
    with held("one", boards[0]) as mine:
        with fo.slice(WHICH) as s:
            assert s.run() == ["two\n"]
        with held("two", boards[1]):
            with pytest.raises(fo.SliceRefused) as refused:
                fo.slice(WHICH)
            assert mine.record.owner is not None
            owner = f"in use by process {mine.record.owner.pid} of {mine.record.owner.user}"
            assert "task 'which' needs 1 fpga, node " in str(refused.value)
            assert f"one: {owner}" in str(refused.value)
            assert f"two: {owner}" in str(refused.value)
            with fo.slice(saying([FPGA, fo.Needs(cores=1)])) as s:
                assert s.run() == ["none\n"]
    with fo.slice(WHICH) as s:
        assert s.run() == ["one\n"]


def test_a_board_that_fails_is_passed_over(boards: tuple[Board, Board]) -> None:
    boards[0].part = replace(ARTIX7, idcode=0)
    for _ in range(2):  # the second time it is out of use
        with fo.slice(WHICH) as s:
            assert s.run() == ["two\n"]
    with pytest.raises(fo.SliceRefused, match=r"needs 2 fpga, node .* one: taken out of use: "):
        fo.slice(saying(fo.Needs(devices={"fpga": 2})))


@pytest.fixture
def bit(tmp_path: Path) -> Path:
    file = tmp_path / "a.bit"
    file.write_bytes(xilinx_bit("7a35tcpg236", SYNC + bytes(999)))
    return file


def lines_of(*ports: int) -> SliceDevices:
    """Of a program; the boards are behind the serial lines 0, 1, ..."""
    made = SliceDevices()
    fpgas = [
        Fpga(name=f"fpga{n}", address=f"127.0.0.1:{port}", port=f"{n}")
        for n, port in enumerate(ports)
    ]
    made.know(here().devices(fpgas, ("openfpgaloader",), ask=False))
    return made


def want(line: int, file: Callable[[], Path]) -> WantedBoard:
    return WantedBoard(f"task{line}", f"{line}", file)


@contextmanager
def mute(on_call: Callable[[], None]) -> Iterator[tuple[int, Callable[[], None]]]:
    """A board that never answers: its port, and what ends the wait."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        wire, _ = listener.accept()
        on_call()
        over.wait(PATIENCE_SECONDS)
        listener.close()
        wire.close()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        yield listener.getsockname()[1], over.set
    finally:
        over.set()
        serving.join()


def test_boards_are_given_back_when_another_one_is_interrupted(
    boards: tuple[Board, Board], bit: Path
) -> None:
    main = threading.main_thread().ident or 0
    with mute(lambda: signal.pthread_kill(main, signal.SIGINT)) as (port, _):
        devices = lines_of(boards[0].port, port)
        with pytest.raises(KeyboardInterrupt):
            devices.hold_boards([want(0, lambda: bit), want(1, lambda: bit)])
    assert boards[0].loads == 1
    held("fpga0", boards[0]).release()
    hold = devices.hold_boards([want(0, lambda: bit)])
    assert (hold.why, hold.ports) == ("", ("0",))
    hold.close()


def test_a_bitstream_that_cannot_be_read_is_said_before_a_board_is_loaded(
    boards: tuple[Board, Board], bit: Path
) -> None:
    devices = lines_of(boards[0].port, boards[1].port)
    hold = devices.hold_boards([want(0, lambda: bit), want(1, lambda: bit.parent)])
    assert hold.why == f"task 'task1': {bit.parent}: Is a directory"
    assert boards[0].loads == 0
    held("fpga0", boards[0]).release()


def test_two_bitstreams_for_one_board_are_refused(
    boards: tuple[Board, Board], bit: Path, tmp_path: Path
) -> None:
    other = tmp_path / "b.bit"
    other.write_bytes(bit.read_bytes() + bytes(4))
    devices = lines_of(boards[0].port)
    hold = devices.hold_boards([want(0, lambda: bit), want(0, lambda: other)])
    assert hold.why == "task 'task0': fpga0: in use by another task or slice of this program"
    held("fpga0", boards[0]).release()


def test_boards_can_be_given_back_while_another_is_made_or_loaded(
    boards: tuple[Board, Board], bit: Path
) -> None:
    """Whoever wants the one that is being loaded has to wait for it."""
    called, made = threading.Event(), threading.Event()

    def slow() -> Path:
        called.set()
        assert made.wait(PATIENCE_SECONDS)
        return bit

    with mute(called.set) as (port, end):
        devices = lines_of(boards[0].port, port)
        holds = [devices.hold_boards([want(0, lambda: bit)]) for _ in range(2)]
        other = threading.Thread(
            target=lambda: holds.append(devices.hold_boards([want(1, slow)])), daemon=True
        )
        other.start()
        for go_on in (made.set, end):
            assert called.wait(PATIENCE_SECONDS)
            called.clear()
            closing = threading.Thread(target=holds.pop(0).close, daemon=True)
            closing.start()
            closing.join(PATIENCE_SECONDS)
            assert not closing.is_alive()
            go_on()
        other.join()
        assert holds[0].why.startswith("task 'task1': fpga1: ")
        held("fpga0", boards[0]).release()
