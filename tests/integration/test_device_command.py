"""`flowos device` with Debian's openFPGALoader, and boards that are emulated down to the TAP."""

import fcntl
import hashlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.engine import HeldDevice, here
from flowos.model import DeviceError, Fpga
from tests.bitstreams import SYNC, ecp5, xilinx_bit
from tests.tap import ARTIX7, ECP5, Board, Fault, Part, board
from tests.waiting import comes

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
Plug = Callable[..., Board]
DATA = SYNC + bytes(range(256)) * 8


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWOS_DEVICES_DIR", str(tmp_path / "locks"))
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    (tmp_path / "flowos.toml").touch()
    (tmp_path / "a.bit").write_bytes(xilinx_bit("7a35tcpg236", DATA))
    (tmp_path / "e.bit").write_bytes(ecp5(ECP5.idcode, DATA))


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Plug]:
    """Adds a board, by name, to the settings."""
    with ExitStack() as boards:

        def plugged(name: str, part: Part, fault: Fault = "", seconds: float = 20) -> Board:
            made = boards.enter_context(board(part, fault))
            with (tmp_path / "flowos.toml").open("a") as file:
                table = f'[fpgas.{name}]\naddress = "127.0.0.1:{made.port}"\n'
                file.write(f"{table}limit_seconds = {seconds}\n")
            return made

        yield plugged


def line_of(name: str, flowos: Flowos) -> str:
    listed = flowos("device", "list").stdout.splitlines()
    return next(line for line in listed if line.startswith(f"{name} "))


def fpga(made: Board, name: str = "arty") -> Fpga:
    return Fpga(name=name, address=f"127.0.0.1:{made.port}")


def test_the_tool_alone_proves_nothing(flowos: Flowos, plug: Plug, tmp_path: Path) -> None:
    """It ends with 0 where no board is, and where one is that never was DONE."""
    scan = ["openFPGALoader", "--scan-usb"]
    assert subprocess.run(scan, capture_output=True).returncode == 0
    dead, stuck = plug("dead", replace(ARTIX7, idcode=0xFFFFFFFF)), plug("stuck", ARTIX7, "no DONE")
    for made, words in ((dead, ["--detect"]), (stuck, ["a.bit"])):
        reached = ["--cable", "xvc-client", "--ip", "127.0.0.1", "--port", str(made.port)]
        words = ["openFPGALoader", *reached, *words]
        said = subprocess.run(words, capture_output=True, cwd=tmp_path)
        assert said.returncode == 0, said
    for name, why in (("dead", "no FPGA behind it"), ("stuck", "no DONE")):
        assert why in flowos("device", "verify", name, code=1).stderr


@pytest.mark.parametrize(
    ("part", "file", "model"), [(ARTIX7, "a.bit", "xc7a35"), (ECP5, "e.bit", "LFE5U-25")]
)
def test_a_board_gets_the_very_bits_of_its_bitstream(
    part: Part, file: str, model: str, flowos: Flowos, plug: Plug, tmp_path: Path
) -> None:
    made = plug("one", part)
    assert model in line_of("one", flowos)
    done = json.loads(flowos("device", "load", file, "--json").stdout)
    assert (done["did"], done["device"]["name"]) == ("loaded", "one")
    assert made.done
    whole = (tmp_path / file).read_bytes()
    assert done["bitstream"]["digest"] == "sha256:" + hashlib.sha256(whole).hexdigest()
    sent = made.received
    assert hashlib.sha256(sent[-len(DATA) :]).digest() == hashlib.sha256(DATA).digest()
    assert (
        f"verified, has {done['bitstream']['digest'][:19]}"
        in flowos("device", "verify", "one").stdout
    )


def test_a_bitstream_that_is_loaded_is_not_loaded_again(flowos: Flowos, plug: Plug) -> None:
    made, second = plug("first", ARTIX7), plug("second", ARTIX7)
    assert "it is not configured" in flowos("device", "load", "a.bit").stdout
    for _ in range(2):
        said = flowos("device", "load", "a.bit").stdout
        assert "had it already" in said
        assert "it has this bitstream already" in said
    assert (made.loads, second.loads) == (1, 0)
    flowos("device", "load", "a.bit", "--device", "first", "--again")
    assert made.loads == 2


def test_a_board_that_lost_its_power_is_loaded_anew(flowos: Flowos, plug: Plug) -> None:
    made = plug("arty", ARTIX7)
    flowos("device", "load", "a.bit")
    made.lose_power()
    assert "no DONE" in flowos("device", "verify", "arty", code=1).stderr
    assert "loaded sha256" in flowos("device", "load", "a.bit").stdout
    made.lose_power()
    assert "loaded sha256" in flowos("device", "load", "a.bit").stdout
    assert made.done


def test_the_bitstream_of_another_part_is_refused_before_it_is_loaded(
    flowos: Flowos, plug: Plug
) -> None:
    made = plug("arty", ARTIX7)
    said = flowos("device", "load", "e.bit", "--device", "arty", code=1).stderr
    assert "arty: the bitstream is for LFE5U-25, the device is xc7a35" in said
    assert "no FPGA can take e.bit" in flowos("device", "load", "e.bit", code=1).stderr
    assert made.received == b""
    plug("ulx", ECP5)
    assert "ulx (LFE5U-25): loaded" in flowos("device", "load", "e.bit").stdout


@pytest.mark.parametrize(
    ("part", "fault", "why", "seconds"),
    [
        (ARTIX7, "no DONE", "it is not configured: no DONE", 20),
        (ECP5, "no DONE", "it is not configured: no DONE", 20),
        (ARTIX7, "link lost", "the link was lost", 20),
        (ECP5, "no answer", "no answer within 0.5 s", 0.5),
    ],
)
def test_a_board_that_fails_is_taken_out_until_it_is_reset(
    part: Part, fault: Fault, why: str, seconds: float, flowos: Flowos, plug: Plug
) -> None:
    made, file = plug("bad", part, fault, seconds), "a.bit" if part is ARTIX7 else "e.bit"
    said = flowos("device", "load", file, code=1).stderr
    assert said.startswith("flowos device: bad: ")
    assert why in said
    assert said.count("\n") == 1
    assert f"OUT OF USE: {said.strip().removeprefix('flowos device: bad: ')}" in line_of(
        "bad", flowos
    )
    again = flowos("device", "load", file, code=1).stderr
    assert "bad: taken out of use: " in again
    assert again.endswith(" (flowos device reset bad)\n")
    made.mend()
    assert "bad" in flowos("device", "reset", "bad").stdout
    assert "loaded" in flowos("device", "load", file).stdout


def test_a_wrong_idcode_is_no_board_of_ours(flowos: Flowos, plug: Plug, tmp_path: Path) -> None:
    plug("unknown", replace(ARTIX7, idcode=0x13844093))
    plug("dead", replace(ARTIX7, idcode=0xFFFFFFFF))
    plug("other", replace(ARTIX7, idcode=0x03631093))
    with (tmp_path / "flowos.toml").open("a") as file:
        file.write('part = "xc7a35t"\n')  # of the last table
    for name, why in (
        ("unknown", "openFPGALoader knows no part with the IDCODE 0x13844093"),
        ("dead", "its cable answers, and no FPGA behind it"),
        ("other", "flowos.toml says part xc7a35t, and its IDCODE 0x03631093 is that of xc7a100"),
    ):
        said = flowos("device", "load", "a.bit", "--device", name, code=1).stderr
        assert f"{name}: {why}" in said.replace("taken out of use: ", "")


def test_a_device_has_one_owner_which_the_next_one_is_told(flowos: Flowos, plug: Plug) -> None:
    made = plug("arty", ARTIX7)
    (device,) = here().devices([fpga(made)], ("openfpgaloader",), ask=False)
    with HeldDevice(device) as held:
        assert held.device.part == "xc7a35"
        for words in (("load", "a.bit", "--device"), ("verify",), ("reset",)):
            said = flowos("device", *words, "arty", code=1).stderr
            assert f"arty: in use by process {held.record.owner.pid} of " in said  # type: ignore[union-attr]
        assert "in use by process" in line_of("arty", flowos)
        also = replace(device, name="same board, other name")
        with pytest.raises(DeviceError, match="same board, other name: in use by"):
            HeldDevice(also)
    assert "in use" not in line_of("arty", flowos)


HOLD = """
import signal, sys
from flowos.engine import HeldDevice, here
from flowos.model import Fpga
(device,) = here().devices([Fpga(name="arty", address=sys.argv[1])], ("openfpgaloader",), ask=False)
held = HeldDevice(device)
print("held", flush=True)
signal.pause()
"""


def test_the_kernel_takes_back_what_a_killed_program_held(flowos: Flowos, plug: Plug) -> None:
    made = plug("arty", ARTIX7)
    program = subprocess.Popen(
        [sys.executable, "-c", HOLD, f"127.0.0.1:{made.port}"], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "held\n"
        assert f"process {program.pid}" in flowos("device", "verify", "arty", code=1).stderr
    finally:
        program.send_signal(signal.SIGKILL)
        program.communicate()
    assert comes(lambda: "in use" not in line_of("arty", flowos))
    flowos("device", "load", "a.bit")


def test_bad_input_gets_one_line(flowos: Flowos, plug: Plug, tmp_path: Path) -> None:
    plug("arty", ARTIX7)
    (tmp_path / "text.bit").write_text("no bits")
    for words, code, why in (
        (("verify", "atry"), 2, "no device 'atry'; did you mean 'arty'?"),
        (("verify", "zzz"), 2, "no device 'zzz'; there are cpu, "),
        (("reset", "cpu"), 1, "cpu: driver cpu has no reset for it"),
        (("load", "none.bit"), 1, "none.bit: no such file"),
        (("load", "."), 1, ".: it is no file"),
        (("load", "text.bit"), 1, "text.bit: it is no bitstream"),
        (("load", "a.bit", "--device", "cpu"), 1, "cpu: it takes no bitstream"),
    ):
        said = flowos("device", *words, code=code).stderr
        assert said.startswith(f"flowos device: {why}"), said
        assert said.count("\n") == 1


def test_without_a_board_nothing_can_be_loaded(flowos: Flowos, tmp_path: Path) -> None:
    assert "there is no FPGA: name one" in flowos("device", "load", "a.bit", code=1).stderr
    (tmp_path / "flowos.toml").write_text('[fpgas.gone]\naddress = "127.0.0.1:1"\n')
    assert "gone: " in flowos("device", "load", "a.bit", code=1).stderr
    assert "nothing listens there" in line_of("gone", flowos)


def test_dry_run_says_what_would_be_run_and_loads_nothing(flowos: Flowos, plug: Plug) -> None:
    made = plug("arty", ARTIX7)
    said = flowos("device", "load", "a.bit", "--dry-run").stdout
    assert "arty (xc7a35): would load" in said
    assert f"    openFPGALoader --cable xvc-client --ip 127.0.0.1 --port {made.port}" in said
    assert "--reset" in flowos("device", "reset", "arty", "--dry-run").stdout
    assert made.received == b""


def test_a_lock_folder_that_cannot_be_one_is_named(
    flowos: Flowos, plug: Plug, tmp_path: Path, variables: dict[str, str]
) -> None:
    plug("arty", ARTIX7)
    (tmp_path / "file").touch()
    for folder, why in (("file", "it is no folder"), ("file/below", "Not a directory")):
        variables["FLOWOS_DEVICES_DIR"] = str(tmp_path / folder)
        said = flowos("device", "verify", "arty", code=1).stderr
        assert said.startswith("flowos device: devices cannot be locked in")
        assert why in said


def test_what_others_wrote_into_a_lock_is_no_more_than_a_record(
    flowos: Flowos, plug: Plug, tmp_path: Path
) -> None:
    plug("arty", ARTIX7)
    flowos("device", "load", "a.bit")
    (lock,) = (tmp_path / "locks").glob("openfpgaloader*")
    lock.write_text("{" * 100_000)
    assert "loaded" in flowos("device", "load", "a.bit").stdout
    lock.unlink()
    lock.mkdir()
    said = flowos("device", "verify", "arty", code=1).stderr
    assert "its lock" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("wrote", "shown"),
    [
        ("[" * 16_000, "in use by a program that does not say its name"),
        ({"since": 1e300}, "in use by a program that does not say its name"),
        ({"since": 1e17}, "in use by a program that does not say its name"),
        ({"since": "nan"}, "in use by a program that does not say its name"),
        ({"user": "\x1b[2J", "program": "a\nb"}, "in use by process 1 of ?[2J since "),
    ],
)
def test_a_lock_that_another_user_wrote_is_one_line(
    wrote: str | dict[str, object], shown: str, flowos: Flowos, plug: Plug, tmp_path: Path
) -> None:
    plug("arty", ARTIX7)
    flowos("device", "load", "a.bit")
    (lock,) = (tmp_path / "locks").glob("openfpgaloader*")
    if isinstance(wrote, dict):
        owner = {"pid": 1, "user": "x", "program": "p", "since": 1.0} | wrote
        wrote = json.dumps({"owner": owner, "loaded": "", "loaded_at": 0.0, "out": ""})
    lock.write_text(wrote)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert shown in line_of("arty", flowos)
        said = flowos("device", "verify", "arty", code=1).stderr
    assert f"arty: {shown}" in said
    assert said.count("\n") == 1
    lock.write_text(json.dumps({"owner": None, "loaded": "", "loaded_at": 0.0, "out": "\x1b\n"}))
    assert line_of("arty", flowos).endswith("OUT OF USE: ??")


def test_a_look_at_a_device_does_not_make_it_busy(plug: Plug, tmp_path: Path) -> None:
    (device,) = here().devices([fpga(plug("arty", ARTIX7))], ("openfpgaloader",), ask=False)
    HeldDevice(device).release()
    (lock,) = (tmp_path / "locks").iterdir()
    look = lock.open()
    fcntl.flock(look, fcntl.LOCK_SH)
    ending = threading.Timer(0.1, look.close)
    ending.start()
    with HeldDevice(device) as held:
        assert held.record.owner is not None
    ending.join()
