"""Bodies in Verilog on a card behind XDMA: all of it is real but PCIe, its driver and the FPGA."""

import ctypes
import fcntl
import os
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.drivers.hdl.xdma_talk import XdmaCall
from flowos.engine import xdma_cards
from flowos.engine.bodies._bitstream import top_file
from flowos.engine.bodies._simulated import simulation
from flowos.operations.doctor import card_checks
from tests.moody import EARLY, ENDLESS, MOODY, PORTS, SWALLOW, WORDS, failure, moody, run, words
from tests.port_locks import as_another_user, locking
from tests.waiting import comes

CARD = Path(__file__).parents[2] / "xdma_card.cpp"
RunCard = Callable[..., None]
GONE, QUIET = 18, 200_000
"""The bridge gives a program up after 2**18 cycles, where a card waits for 2**30; the simulation
stands still before that, as a loaded machine takes its time."""


def xdma(port: str = "/dev/xdma9", **options: Any) -> Any:
    return moody(**{"link": "xdma", "port": port, **options})


def card_of(task: Any, width: int = 32) -> RunCard:
    """Simulates the card of a task to the streams of XDMA, whose words have so many bytes."""
    text = top_file(task.body.fun.design, "xdma").read_text()
    text = text.replace("BYTES = 32)", f"BYTES = {width})").replace("GONE = 30", f"GONE = {GONE}")
    design = task.body.fun.design
    whole = replace(design, top="flowos_card", files=(*design.files, ("", text)))
    code = f'#include "Vmodule.h"\n{CARD.read_text()}'
    library = ctypes.CDLL(str(simulation(whole, lambda *_: code, code)))
    library.run_card.restype = None
    found: RunCard = library.run_card
    return found


@pytest.fixture(scope="module")
def run_card() -> RunCard:
    return card_of(xdma())


@contextmanager
def card(
    run_card: RunCard, folder: Path, silent: int = -1, idle: ctypes.c_int64 | None = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The port of a card, and what takes it out. silent: from this byte of its answers on. idle: it
    counts there the cycles since a word moved."""
    paths = [folder / f"xdma0_{way}_0" for way in ("h2c", "c2h")]
    for path in paths:
        os.mkfifo(path)
    ends = [os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in paths]
    stop = ctypes.c_int32(0)
    quiet = QUIET if idle is None else 4 << GONE
    count = ctypes.c_int64(0) if idle is None else idle
    numbers = (ctypes.c_int64(silent), ctypes.c_int64(quiet), ctypes.byref(count))
    words = (*ends, ctypes.byref(stop), *numbers)
    thread = threading.Thread(target=run_card, args=words)
    thread.start()

    def take_out() -> None:
        stop.value = 1
        thread.join()
        while ends:
            os.close(ends.pop())

    try:
        yield str(folder / "xdma0"), take_out
    finally:
        take_out()
        for path in paths:
            path.unlink()


def test_a_card_behind_xdma_gives_what_the_simulation_gives(
    run_card: RunCard, tmp_path: Path
) -> None:
    """Also far more than the FIFOs and the card hold, which answers while it reads."""
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 2**32, 50_000, np.uint32) for _ in "ab")
    with card(run_card, tmp_path) as (port, _):
        (found,) = run(xdma(port), a, b)
        assert np.array_equal(found, a + b)
        for count in (1, 7, 8, 9, 16):
            assert run(xdma(port), a[:count], b[:count])[0].tolist() == [*(a + b)[:count]]
        assert run(xdma(port), words(), words())[0].tolist() == []
        with fo.slice(two_of(port), workers="process", cores=2) as opened:
            sums: Any = opened.run(words(1, 2), words(3, 4))
        assert [each.tolist() for each in sums] == [[4, 6], [6, 8]]


def two_of(port: str) -> fo.Flow:
    a, b = (fo.flow_input(name, WORDS) for name in "ab")
    return fo.flow_output(xdma(port)(a, b), xdma(port)(b, b))


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        (EARLY, "module moody ended stream 'm' after 2 beats (tlast), before its output was full"),
        (ENDLESS, "module moody gave no tlast with beat 3 of stream 'm', the last of its output"),
        (SWALLOW, "module moody gave no end within 100600 cycles (limit_cycles): it took 3 beats "),
    ],
)
def test_a_module_that_does_not_end_its_stream_rightly_is_named(
    run_card: RunCard, tmp_path: Path, mood: int, said: str
) -> None:
    """As in the simulation; and the next call has nothing of it."""
    values = (1, mood, 2) if mood == EARLY else (1, 2, mood)
    with card(run_card, tmp_path) as (port, _):
        found = failure(xdma(port), words(*values), words(0, 0, 0))
        assert f"task 'moody' raised DeviceError: {port}: {said}" in found
        assert run(xdma(port), words(1), words(2))[0].tolist() == [3]


ODD = """module odd(input aclk, input aresetn, input [95:0] s_tdata, input s_tvalid, input s_tlast,
  output s_tready, output [23:0] m_tdata, output m_tvalid, output m_tlast, input m_tready);
assign s_tready = m_tready, m_tvalid = s_tvalid, m_tlast = s_tlast;
assign m_tdata = {s_tdata[39:32], s_tdata[15:0]};
endmodule"""


@pytest.mark.parametrize("width", [8, 16, 64])
def test_beats_of_any_width_pass_words_of_any_width(width: int, tmp_path: Path) -> None:
    task = fo.hdl(
        ODD,
        "odd",
        inputs={"a": WORDS, "b": fo.array(fo.uint64, ("n",))},
        outputs={"low": fo.array(fo.uint16, ("n",)), "next": fo.array(fo.uint8, ("n",))},
        into={"s": ("a", "b")},
        out={"m": ("low", "next")},
        link="xdma",
        port=str(tmp_path / "xdma0"),
    )
    random = np.random.default_rng(7)
    with card(card_of(task, width), tmp_path):
        for count in (1, 15, 500):
            a = random.integers(0, 2**32, count, np.uint32)
            b = random.integers(0, 2**63, count, np.uint64)
            low, following = run(task, a, b)
            assert np.array_equal(low, a.astype(np.uint16))
            assert np.array_equal(following, b.astype(np.uint8))


def test_what_a_module_does_not_take_is_read_away(run_card: RunCard, tmp_path: Path) -> None:
    a = np.zeros(20_000, np.uint32)
    a[1] = EARLY
    with card(run_card, tmp_path) as (port, _):
        assert "after 2 beats (tlast)" in failure(xdma(port), a, a)
        assert run(xdma(port), words(1), words(2))[0].tolist() == [3]


def test_a_card_with_another_module_is_refused(run_card: RunCard, tmp_path: Path) -> None:
    other = {**PORTS, "link": "xdma", "port": str(tmp_path / "xdma0")}
    with card(run_card, tmp_path) as (port, _):
        changed = fo.hdl(MOODY.read_text(), "moody", **other)
        said = f"{port}: the card has another module than this moody: load the bitstream that "
        assert said in failure(changed, words(1, 2), words(1, 2))
        assert run(xdma(port), words(1), words(2))[0].tolist() == [3]


@pytest.mark.parametrize("silent", [0, 64])
def test_a_card_that_says_nothing_is_said(
    run_card: RunCard, tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowos.engine.bodies._xdma_module._MIN_SECONDS", 1.0)
    with card(run_card, tmp_path, silent) as (port, _):
        said = failure(xdma(port), words(*range(32)), words(*range(32)))
    assert f"{port}: the card said nothing for 1.0 s: it took 320 of 320 bytes, and gave " in said
    assert f"gave {silent} of 192" in said


def test_a_card_that_takes_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowos.engine.bodies._xdma_module._MIN_SECONDS", 0.1)
    with card(lambda *_: None, tmp_path) as (port, _):
        said = failure(xdma(port), *[np.zeros(200_000, np.uint32)] * 2)
    assert "the card said nothing for" in said
    assert "and gave 0 of 800064" in said


def test_a_card_that_goes_in_the_middle_is_said(run_card: RunCard, tmp_path: Path) -> None:
    caught: list[str] = []
    with card(run_card, tmp_path, silent=64) as (port, take_out):
        task = xdma(port, limit_cycles=10**10)
        thread = threading.Thread(
            target=lambda: caught.append(failure(task, words(*range(32)), words(*range(32))))
        )
        thread.start()
        assert comes(lambda: len(opened(port)) == 4)
        take_out()
        thread.join()
    assert f"{port}: the card is gone; is its driver still loaded?" in caught[0]


def opened(port: str) -> list[str]:
    """Files of a card that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:  # that of the folder itself
            continue
    return [name for name in found if name.startswith(port)]


def test_what_is_left_of_a_call_that_was_cut_short_is_no_answer(
    run_card: RunCard, tmp_path: Path
) -> None:
    """A program that was killed: one that had sent all, and one in the middle of its stream."""
    design = xdma().body.fun.design
    call = XdmaCall(where="", design=design, number=1, takes=99, gives=99, limit_cycles=10**6)
    idle = ctypes.c_int64(0)
    with card(run_card, tmp_path, idle=idle) as (port, _):
        for sent in (call.sends, 256):
            to = os.open(f"{port}_h2c_0", os.O_WRONLY)
            os.write(to, (call.head + bytes(call.sends))[:sent])
            os.close(to)
            answered = call.expects if sent == call.sends else 96
            assert comes(lambda count=answered: waiting(f"{port}_c2h_0") == count)  # type: ignore[misc]
            assert comes(lambda: idle.value > 2 << GONE)
            said = failure(xdma(port), words(1, 2), words(3, 4))
            assert f"{port}: what came is no answer to this call, but of one that was cut" in said
            assert run(xdma(port), words(1, 2), words(3, 4))[0].tolist() == [4, 6]


def waiting(fifo: str) -> int:
    """Bytes that it holds."""
    count = ctypes.c_int32(0)
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    finally:
        os.close(fd)
    return count.value


def test_a_card_that_cannot_be_opened_is_said(
    run_card: RunCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = words(1)
    said = "/dev/xdma9_h2c_0: there is no such card; is its driver loaded (modprobe xdma)?"
    assert said in failure(xdma(), one, one)
    monkeypatch.setattr("flowos.engine.bodies._one_owner._OTHERS_SECONDS", 0.1)
    with card(run_card, tmp_path) as (port, _):
        with locking(f"{port}_h2c_0", "fcntl.flock(line, fcntl.LOCK_EX)") as pid:
            said = f"{port}: process {pid} ({sys.executable} -c import fcntl"
            assert said in failure(xdma(port), one, one)
        Path(f"{port}_h2c_0").chmod(0)
        with as_another_user():
            found = failure(xdma(port), one, one)
    assert "h2c_0: there is no right to open it: a rule of udev gives it" in found


def test_doctor_says_which_cards_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setattr("flowos.engine.xdma_cards", lambda: xdma_cards(folder))
        assert not [*card_checks()]
        with card(lambda *_: None, folder) as (port, _):
            (check,) = card_checks()
            assert (check.name, check.works) == (f"card {port}", True)
            Path(f"{port}_c2h_0").chmod(0)
            with as_another_user():
                (check,) = card_checks()
        assert not check.works
        assert check.says == "no task of fo.hdl reaches it: there is no right to open it"
        assert check.remedy.startswith("a rule of udev gives it")


def test_the_tools_of_the_vendor_make_the_bitstream_of_a_card() -> None:
    with pytest.raises(fo.WiringError, match=r"for link='xdma' it is made by the tools") as caught:
        fo.bitstream(xdma())
    file = Path(str(caught.value).partition("which is in ")[2].partition(", and of")[0])
    assert "module flowos_card #(" in file.read_text()
    wrong = "module m(input clk);\n wire = 1;\nendmodule\n"
    with pytest.raises(fo.FlowosError, match=r"source\.v:2:"):
        fo.bitstream(fo.hdl(wrong, "m", **PORTS, link="xdma", port="x"))
