"""Readers of what tools say of devices, case by case; see also tests/contract/test_devices.py."""

from pathlib import PurePath

import pytest

from flowos.drivers import MISSING, NOT_ALLOWED, TOO_LATE, DeviceFacts, ScanStep, StepAnswer
from flowos.drivers._jtag import read_status, status_scan
from flowos.drivers.devices.cuda import Cuda
from flowos.drivers.devices.fpga_manager import FpgaManager
from flowos.drivers.devices.opencl import OpenCl
from flowos.drivers.devices.openfpgaloader import OpenFpgaLoader, named_fpga
from flowos.drivers.devices.xrt import Xrt
from flowos.model import Bitstream, DeviceError, Fpga, NodeDevice
from tests.contract.test_devices import CLINFO, DETECTED, GPUS, MANAGER, USB, XRT, said
from tests.tap import ARTIX7, ECP5, Board, Part

LOADER = OpenFpgaLoader()
ARTY = named_fpga(Fpga(name="arty", address="10.0.0.7:2542", limit_seconds=5))
USB_BOARD = named_fpga(Fpga(name="usb", cable="ft2232", serial="A1"))
ICE = named_fpga(Fpga(name="ice", board="ice40_generic", part="ice40 8k"))
BIT = Bitstream(digest="sha256:ab", form="xilinx .bit")


def tap(part: Part, *, done: bool = False, lattice: bool = False) -> StepAnswer:
    """What an emulated TAP answers to the scan."""
    board = Board(part)
    board._status = done << part.done_bit
    return StepAnswer(0, bits=board.shift(*status_scan(lattice=lattice)))


def test_mig_instances_stand_for_their_gpu_with_their_names_in_containers() -> None:
    cdi = ("nvidia.com/gpu=0:1", "nvidia.com/gpu=GPU-cc", "nvidia.com/gpu=all")
    found = Cuda().find(DeviceFacts(answers=said(GPUS), gpus=("0", "1"), cdi=cdi))
    assert [(each.at, each.cdi) for each in found] == [
        ("MIG-b0", ""),
        ("MIG-b1", "nvidia.com/gpu=0:1"),
        ("GPU-cc", "nvidia.com/gpu=GPU-cc"),
    ]


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (("1",), ["gpu1"]),
        (("GPU-cc",), ["gpu1"]),
        (("MIG-b1",), ["gpu0-mig1"]),
        ((), []),
    ],
)
def test_gpus_that_cuda_is_not_shown_are_none_of_ours(
    visible: tuple[str, ...], names: list[str]
) -> None:
    found = Cuda().find(DeviceFacts(answers=said(GPUS), gpus=visible))
    assert [each.name for each in found] == names


def test_only_a_whole_gpu_is_reset() -> None:
    mig, _, gpu = Cuda().find(DeviceFacts(answers=said(GPUS), gpus=("0", "1")))
    with pytest.raises(DeviceError, match="gpu0-mig0: a MIG instance has no reset"):
        Cuda().reset(mig)
    with pytest.raises(DeviceError, match=r"gpu1: nvidia-smi does not reset it: .*permission"):
        Cuda().reset(gpu).read([StepAnswer(4, "Insufficient permission")])


def test_a_gpu_that_fell_off_the_bus_is_at_fault() -> None:
    *_, gpu = Cuda().find(DeviceFacts(answers=said(GPUS), gpus=("1",)))
    with pytest.raises(DeviceError, match="gpu1: nvidia-smi lists no GPU-cc any more"):
        Cuda().acquire(gpu).read([StepAnswer(15, "Unable to determine the device handle")])


def test_a_tool_that_may_not_be_started_is_named() -> None:
    (device,) = OpenCl().find(DeviceFacts(answers=said(CLINFO)))
    with pytest.raises(DeviceError, match="clinfo may not be started: Permission denied"):
        OpenCl().acquire(device).read([StepAnswer(NOT_ALLOWED, "Permission denied")])


def test_platforms_of_one_suffix_are_numbered_through() -> None:
    """Two builds of pocl, as clinfo 3 writes them."""
    text = CLINFO + CLINFO.replace("haswell", "znver3") + CLINFO.replace("POCL", "OTHER")
    found = OpenCl().find(DeviceFacts(answers=said(text)))
    assert [(each.name, each.at, each.about) for each in found] == [
        ("opencl-pocl-0", "POCL/0", "pthread-haswell-AMD EPYC"),
        ("opencl-pocl-1", "POCL/1", "pthread-znver3-AMD EPYC"),
        ("opencl-other-0", "OTHER/0", "pthread-haswell-AMD EPYC"),
    ]


def test_cables_on_usb_are_shown_until_a_table_names_one() -> None:
    (probe,) = LOADER.find(DeviceFacts(answers=said(USB)))
    assert (probe.name, probe.about) == (
        "usb-001-004",
        "FTDI2232 Digilent 210319A2C3D4 Digilent USB Device",
    )
    with pytest.raises(DeviceError, match=r"usb-001-004: a cable on USB: a table \[fpgas.NAME\]"):
        LOADER.acquire(probe)
    fpgas = (Fpga(name="arty", address="10.0.0.7:2542"),)
    assert len(LOADER.find(DeviceFacts(answers=said(USB), fpgas=fpgas))) == 2


def test_a_cable_is_named_in_words_of_openfpgaloader() -> None:
    assert ARTY.options == ("--cable", "xvc-client", "--ip", "10.0.0.7", "--port", "2542")
    assert (USB_BOARD.options, USB_BOARD.at) == (
        ("--cable", "ft2232", "--ftdi-serial", "A1"),
        "ft2232 A1",
    )
    assert (ICE.options, ICE.at) == (("--board", "ice40_generic"), "ice40_generic")


def test_over_a_virtual_cable_the_tap_itself_says_which_part_it_is() -> None:
    text = DETECTED.replace("0x362d093", "0x1111043").replace("xc7a35", "LFE5UM-25")
    seen = LOADER.acquire(ARTY).read([*said(text), tap(ECP5)])
    assert (seen.idcode, seen.part) == (0x41111043, "LFE5U-25")  # the revision is of the part
    seen = LOADER.acquire(ARTY).read([*said(DETECTED), tap(ARTIX7)])
    assert (seen.idcode, seen.part) == (0x0362D093, "xc7a35")


OTHER = Part(0x03631093, 6, 0x09, 0x05, 0x0B, done_bit=5)
DEAD = Part(0xFFFFFFFF, 6, 0x09, 0x05, 0x0B, done_bit=5)


@pytest.mark.parametrize(
    ("answers", "complaint", "faulty"),
    [
        ([*said(DETECTED), tap(OTHER)], "its IDCODE changes: 0x362d093, then 0x03631093", True),
        ([*said(DETECTED), tap(DEAD)], "answers, and no FPGA behind it", True),
        ([*said(DETECTED), StepAnswer(TOO_LATE)], "no answer within 5 s", True),
        ([*said(DETECTED), StepAnswer(1, "reset")], "the link was lost: reset", True),
        (said("found 0 devices"), "its cable answers, and no FPGA behind it", True),
        (said(DETECTED * 2), "2 FPGAs are in its chain", True),
        ([StepAnswer(1, "Unknown device with IDCODE: 0x1384")], "no part with the IDCODE", False),
        ([StepAnswer(1, "unable to open ftdi device: -4 (usb_open() failed)")], "no right", False),
        ([StepAnswer(1, "unable to open ftdi device: -3 (device not found)")], "not there", True),
        ([StepAnswer(1, "unable to open ftdi device: -6 ()")], "cannot be opened", True),
        ([StepAnswer(1, "LIBUSB_ERROR_BUSY")], "another program has its cable open", False),
        ([StepAnswer(-13, "Client orderly shut down the connection")], "link was lost", True),
        (
            [StepAnswer(-11, "a\nb\nc")],
            "does not answer: openFPGALoader ended by signal 11: b / c",
            True,
        ),
        ([StepAnswer(2, "")], "openFPGALoader ended with 2: ", True),
        ([StepAnswer(TOO_LATE)], "no answer within 5 s, openFPGALoader was ended", True),
    ],
)
def test_why_an_fpga_is_not_acquired(
    answers: list[StepAnswer], complaint: str, faulty: bool
) -> None:
    with pytest.raises(DeviceError) as refused:
        LOADER.acquire(ARTY).read(answers)
    assert complaint in str(refused.value)
    assert str(refused.value).startswith("arty: ")
    assert refused.value.faulty is faulty


def test_a_part_that_the_settings_promise_is_compared() -> None:
    wants = named_fpga(Fpga(name="a", address="10.0.0.7:2542", part="xc7a100t"))
    with pytest.raises(DeviceError, match=r"a: flowos.toml says part xc7a100t, and its IDCODE 0x"):
        LOADER.acquire(wants).read([*said(DETECTED), tap(ARTIX7)])
    named = named_fpga(Fpga(name="a", address="10.0.0.7:2542", part="xc7a35tcpg236"))
    assert LOADER.acquire(named).read([*said(DETECTED), tap(ARTIX7)]).part == "xc7a35"


def test_that_a_tool_says_fail_counts_before_its_exit_code() -> None:
    work = LOADER.configure(ICE, Bitstream(digest="", form="ice40"), PurePath("/x.bin"))
    with pytest.raises(DeviceError, match=r"ice: it was not loaded: .* Wait for CDONE FAIL"):
        work.read(said("Parse file DONE\nWait for CDONE FAIL"))


def test_the_bitstream_of_another_part_is_no_fault_of_the_board() -> None:
    work = LOADER.configure(ARTY, BIT, PurePath("/x.bit"))
    with pytest.raises(DeviceError, match="of another part") as refused:
        work.read([StepAnswer(1, "mismatch between target's idcode and bitstream idcode")])
    assert not refused.value.faulty


@pytest.mark.parametrize(("part", "idcode"), [(ARTIX7, 0x0362D093), (ECP5, 0x41111043)])
def test_done_is_read_from_the_tap(part: Part, idcode: int) -> None:
    lattice = part is ECP5
    device = NodeDevice(
        name="a", kind="fpga", driver="openfpgaloader", at="h:1", options=("--ip",), idcode=idcode
    )
    work = LOADER.verify(device)
    assert work.read([tap(part, done=True, lattice=lattice)]) == device
    with pytest.raises(DeviceError, match="a: it is not configured: no DONE"):
        work.read([tap(part, lattice=lattice)])
    with pytest.raises(DeviceError, match=r"its IDCODE was 0x.*, and is 0x03631093"):
        work.read([tap(OTHER, done=True)])


def test_of_another_maker_the_tap_says_its_idcode_alone() -> None:
    gowin = Part(0x0100481B, 8, 0x11, 0x17, 0x15, done_bit=5)
    assert read_status(tap(gowin).bits) == (0x0100481B, None)
    unknown = NodeDevice(
        name="a", kind="fpga", driver="openfpgaloader", at="h:1", options=("--ip",)
    )
    assert LOADER.verify(unknown).read([tap(gowin)]) == unknown


def test_a_cable_without_a_tap_is_taken_as_it_is() -> None:
    assert LOADER.acquire(ICE).steps == ()
    with pytest.raises(DeviceError, match="ice: openFPGALoader has no reset for it"):
        LOADER.reset(ICE)
    assert not any(isinstance(step, ScanStep) for step in LOADER.verify(USB_BOARD).steps)


def test_the_fpga_manager_copies_a_bitstream_and_writes_its_name() -> None:
    driver = FpgaManager(PurePath("/s"), PurePath("/f"))
    (device,) = driver.find(DeviceFacts(answers=said(MANAGER)))
    raw = Bitstream(digest="sha256:0123456789abcdef01", form="xilinx raw")
    copied, written = driver.configure(device, raw, PurePath("/x.bin")).steps
    assert "/f/flowos-0123456789abcdef.bin" in str(copied)
    assert "flowos-0123456789abcdef.bin" in str(written)
    assert f"{device.at}/firmware" in str(written)


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ([StepAnswer(NOT_ALLOWED)], "/lib/firmware may not be written: only root"),
        ([StepAnswer(0), StepAnswer(NOT_ALLOWED)], "fpga0/firmware may not be written: only root"),
        ([StepAnswer(0), StepAnswer(MISSING, "No such file")], "cannot be written: No such file"),
    ],
)
def test_why_the_fpga_manager_loads_nothing(answers: list[StepAnswer], complaint: str) -> None:
    (device,) = FpgaManager().find(DeviceFacts(answers=said(MANAGER)))
    raw = Bitstream(digest="sha256:ab", form="xilinx raw")
    with pytest.raises(DeviceError, match=complaint) as refused:
        FpgaManager().configure(device, raw, PurePath("/x.bin")).read(answers)
    assert not refused.value.faulty


def test_the_kernel_says_whether_an_fpga_is_configured() -> None:
    (device,) = FpgaManager().find(DeviceFacts(answers=said(MANAGER)))
    work = FpgaManager().verify(device)
    assert work.read(said("fpga0/state=operating", "fpga0/status=")) == device
    with pytest.raises(DeviceError, match="says 'write error' reconfig CRC error"):
        work.read(said("fpga0/state=write error", "fpga0/status=reconfig CRC error"))
    with pytest.raises(DeviceError, match="fpga0 is gone"):
        work.read(said("", ""))


def test_xrt_is_asked_by_the_name_that_its_tool_has() -> None:
    (card,) = Xrt().find(DeviceFacts(answers=(StepAnswer(MISSING), *said(XRT))))
    assert (card.options, card.part) == (("xbutil",), "xilinx_u250_gen3x16_base_4")
    with pytest.raises(DeviceError, match="xbutil ended with 1: no such device") as refused:
        Xrt().reset(card).read([StepAnswer(1, "no such\ndevice")])
    assert refused.value.faulty
