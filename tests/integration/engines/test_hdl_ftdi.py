"""Bodies in Verilog at the FIFO of an FT232H: all of it is real but USB, the chip and the FPGA."""

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos._user_folders import cache_folder
from flowos.engine.bodies._bitstream import top_file
from flowos.engine.bodies._simulated import simulation
from tests.moody import EARLY, ENDLESS, MOODY, PORTS, WORDS, failure, moody, run, words
from tests.port_locks import locking

CHIP = Path(__file__).parents[2] / "ftdi_chip.cpp"
PORT = "i:0x0403:0x6014"


def ftdi(port: str = PORT, **options: Any) -> Any:
    return moody(**{"link": "ftdi", "port": port, **options})


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    """Simulates the chip and the board to the pins between them; stands for libftdi."""
    design = ftdi().body.fun.design
    text = top_file(design, "ftdi").read_text()
    whole = replace(design, top="flowos_fifo", files=(*design.files, ("", text)))
    code = f'#include "Vmodule.h"\n{CHIP.read_text()}'
    found = ctypes.CDLL(str(simulation(whole, lambda *_: code, code)))
    found.chip_faults.argtypes = (ctypes.c_int64,) * 5
    return found


@pytest.fixture
def chip(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets what goes wrong."""
    monkeypatch.setattr("flowos.engine.bodies._ftdi_line._LIBRARY", library._name)
    library.chip_faults(0, -1, -1, -1, -1)

    def faults(
        open_code: int = 0,
        damaged_in: int = -1,
        damaged_out: int = -1,
        silent: int = -1,
        lost: int = -1,
    ) -> None:
        library.chip_faults(open_code, damaged_in, damaged_out, silent, lost)

    yield faults
    assert library.chip_opened() == 0


@pytest.mark.usefixtures("chip")
def test_a_board_at_a_fifo_gives_what_the_simulation_gives() -> None:
    """More than it can hold at once, with all bytes that have a meaning on the line."""
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 2**32, 4000, np.uint32) for _ in "ab")
    a[:300] = random.choice(np.frombuffer(b"\xc0\xdb\xdc\xdd" * 8, np.uint32), 300)
    (found,) = run(ftdi(), a, b)
    assert np.array_equal(found, a + b)
    port_a, port_b = (fo.flow_input(name, WORDS) for name in "ab")
    twice = fo.flow_output(ftdi()(port_a, port_b), ftdi()(port_b, port_b))
    with fo.slice(twice, workers="thread", cores=2) as opened:
        sums: Any = opened.run(words(1, 2), words(3, 4))
    assert [each.tolist() for each in sums] == [[4, 6], [6, 8]]
    assert run(ftdi(), words(), words())[0].tolist() == []
    said = failure(ftdi(), words(1, EARLY, 2), words(0, 0, 0))
    assert f"DeviceError: {PORT}: module moody ended stream 'm' after 2 beats" in said
    assert "no tlast with beat 2" in failure(ftdi(), words(1, ENDLESS), words(0, 0))
    other = fo.hdl(MOODY.read_text(), "moody", **{**PORTS, "link": "ftdi", "port": PORT})
    assert "the board has another module than this moody" in failure(other, words(1), words(1))


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"damaged_in": 20}, "it received a damaged frame (CRC)"),
        ({"damaged_out": 22}, "a damaged frame came (CRC); it took "),
        ({"silent": 0}, "the board said nothing for 1.0 s: it does not say what it is"),
        ({"silent": 20}, "the board said nothing for 1.0 s: it took "),
        ({"lost": 20}, "usb bulk read failed; is it still plugged in?"),
        ({"open_code": -3}, "there is no such device; is it plugged in?"),
        ({"open_code": -4}, "there is no right to open it: a rule of udev gives it, ATTRS{idV"),
        ({"open_code": -5}, "another program has it open"),
        ({"open_code": -6}, "all fine"),
    ],
)
def test_what_goes_wrong_is_one_line(
    chip: Any, monkeypatch: pytest.MonkeyPatch, faults: dict[str, int], said: str
) -> None:
    """And the next call has nothing of it."""
    chip(**faults)
    with monkeypatch.context() as patch:
        patch.setattr("flowos.engine.bodies._uart_module._MIN_SECONDS", 1.0)
        found = failure(ftdi(), words(*range(50)), words(*range(50)))
    assert f"task 'moody' raised DeviceError: {PORT}: {said}" in found
    assert "baud" not in found
    chip()
    assert run(ftdi(), words(1), words(2))[0].tolist() == [3]


@pytest.mark.usefixtures("chip")
def test_another_program_has_its_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("flowos.engine.bodies._one_owner._OTHERS_SECONDS", 0.1)
    run(ftdi(), words(1), words(2))
    (lock,) = (cache_folder() / "ports").iterdir()
    with locking(str(lock), "fcntl.flock(line, fcntl.LOCK_EX)") as pid:
        assert f"{PORT}: process {pid} (" in failure(ftdi(), words(1), words(2))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    said = failure(ftdi(), words(1), words(2))
    assert f"{PORT}: no lock can be written to {tmp_path / 'file'}" in said


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowos.engine.bodies._ftdi_line._LIBRARY", "libnone.so.0")
    said = failure(ftdi(), words(1), words(2))
    assert "there is no libftdi: apt-get install libftdi1-2" in said
    with pytest.raises(fo.WiringError, match=r"for link='ftdi' it is made by the tools of the dev"):
        fo.bitstream(ftdi())
