"""What every driver of devices promises; see flowos.drivers._devices. A new one joins `DEVICES`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import pytest

from flowos.drivers import (
    DEVICES,
    MISSING,
    TOO_LATE,
    DeviceDriver,
    DeviceFacts,
    DeviceWork,
    ScanStep,
    StepAnswer,
    ToolStep,
    device_driver_named,
)
from flowos.model import Bitstream, DeviceError, Fpga, NodeDevice

GPUS = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa)
  MIG 3g.20gb     Device  0: (UUID: MIG-b0)
  MIG 3g.20gb     Device  1: (UUID: MIG-b1)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-cc)
"""
CLINFO = """\
#PLATFORMS                                        1
[POCL/*]    CL_PLATFORM_NAME                                Portable Computing Language
[POCL/0]    CL_DEVICE_NAME                                  pthread-haswell-AMD EPYC
[POCL/0]    CL_DEVICE_VENDOR                                AuthenticAMD
"""
XRT = """\
Device(s) Present
|BDF             |Shell                        |Logic UUID  |Device ID     |Device Ready*  |
|[0000:b3:00.1]  |xilinx_u250_gen3x16_base_4   |0xabc       |user(inst=1)  |Yes            |
"""
USB = """\
found 1 USB device
Bus device vid:pid       probe type      manufacturer serial               product
001 004    0x0403:0x6010 FTDI2232        Digilent     210319A2C3D4         Digilent USB Device
"""
DETECTED = """\
index 0:
\tidcode 0x362d093
\tmanufacturer xilinx
\tfamily artix a7 35t
\tmodel  xc7a35
\tirlength 6
"""
MANAGER = "/sys/class/fpga_manager/fpga0/name=Xilinx Zynq FPGA Manager"
FORMS = ("xilinx .bit", "xilinx raw", "ecp5", "ice40", "xclbin")


@dataclass(frozen=True)
class Known:
    """What a driver finds in texts that its tools print, and what shows that a device is there."""

    facts: DeviceFacts
    names: tuple[str, ...]
    there: tuple[StepAnswer, ...] = ()
    takes: tuple[str, ...] = ()
    resets: bool = False
    tool: str = ""


def said(*texts: str) -> tuple[StepAnswer, ...]:
    return tuple(StepAnswer(0, text) for text in texts)


TABLE = (Fpga(name="ulx", board="ulx3s"),)
KNOWN = {
    "cpu": Known(DeviceFacts(answers=said("Model name:    EPYC"), cores=2), ("cpu",)),
    "opencl": Known(
        DeviceFacts(answers=said(CLINFO)), ("opencl-pocl-0",), said(CLINFO), tool="clinfo"
    ),
    "cuda": Known(
        DeviceFacts(answers=said(GPUS), gpus=("0", "1")),
        ("gpu0-mig0", "gpu0-mig1", "gpu1"),
        said(GPUS),
        resets=True,
        tool="nvidia-smi",
    ),
    "openfpgaloader": Known(
        DeviceFacts(answers=said(USB), fpgas=TABLE),
        ("ulx",),
        said(DETECTED),
        takes=("xilinx .bit", "xilinx raw", "ecp5", "ice40"),
        resets=True,
        tool="openFPGALoader",
    ),
    "fpga-manager": Known(
        DeviceFacts(answers=said(MANAGER)), ("fpga0",), said(MANAGER), takes=("xilinx raw",)
    ),
    "xrt": Known(
        DeviceFacts(answers=said(XRT)),
        ("xrt-0000:b3:00.1",),
        said(XRT),
        takes=("xclbin",),
        resets=True,
        tool="xrt-smi",
    ),
}
every = pytest.mark.parametrize("name", DEVICES)


def found(name: str) -> tuple[DeviceDriver, NodeDevice]:
    """The last device: of several GPUs one without instances."""
    driver = device_driver_named(name)
    return driver, driver.find(KNOWN[name].facts)[-1]


def works(driver: DeviceDriver, device: NodeDevice) -> list[DeviceWork]:
    known = KNOWN[driver.name]
    file = PurePath("/x.bin")
    loads = [driver.configure(device, stream(form), file) for form in known.takes]
    resets = [driver.reset(device)] if known.resets else []
    return [driver.acquire(device), driver.verify(device), *loads, *resets]


def stream(form: str) -> Bitstream:
    return Bitstream(digest="sha256:ab", form=form)  # type: ignore[arg-type]


def refusal(work: DeviceWork, answers: Sequence[StepAnswer]) -> DeviceError:
    with pytest.raises(DeviceError) as refused:
        work.read(answers)
    return refused.value


@every
def test_what_it_finds_it_drives_itself(name: str) -> None:
    driver = device_driver_named(name)
    devices = driver.find(KNOWN[name].facts)
    assert tuple(device.name for device in devices) == KNOWN[name].names
    assert {device.driver for device in devices} == {driver.name} == {name}
    assert {device.kind for device in devices} == {driver.kind}
    assert all(device.at for device in devices)


@every
def test_where_its_tool_is_missing_there_is_nothing(name: str) -> None:
    driver = device_driver_named(name)
    nothing = DeviceFacts(answers=tuple(StepAnswer(MISSING) for _ in driver.looks))
    assert len(driver.find(nothing)) == (name == "cpu")


@every
def test_a_device_that_is_there_is_acquired_and_released(name: str) -> None:
    driver, device = found(name)
    seen = driver.acquire(device).read(KNOWN[name].there)
    assert replace(seen, part="", idcode=None, about="") == replace(device, part="", about="")
    assert driver.release(seen).read(()) == seen


@every
def test_a_device_that_is_gone_is_at_fault(name: str) -> None:
    driver, device = found(name)
    if KNOWN[name].there:
        error = refusal(driver.acquire(device), said("", ""))
        assert error.faulty
        assert str(error).startswith(f"{device.name}: ")


@every
def test_a_missing_tool_is_named_and_a_silent_one_is_the_devices_fault(name: str) -> None:
    driver, device = found(name)
    if tool := KNOWN[name].tool:
        for work in works(driver, device):
            missing = refusal(work, [StepAnswer(MISSING)])
            assert tool in str(missing)
            assert not missing.faulty
            assert refusal(work, [StepAnswer(TOO_LATE)]).faulty


@every
def test_it_takes_the_bitstreams_of_its_kind_alone(name: str) -> None:
    driver, device = found(name)
    for form in FORMS:
        if form not in KNOWN[name].takes:
            with pytest.raises(DeviceError, match=rf"^{device.name}: "):
                driver.configure(device, stream(form), PurePath("/x.bin"))
        else:
            work = driver.configure(device, stream(form), PurePath("/x.bin"))
            assert "/x.bin" in " ".join(map(str, work.steps))
            assert work.read(said("done", "")) == device


@every
def test_it_resets_or_says_that_it_cannot(name: str) -> None:
    driver, device = found(name)
    if KNOWN[name].resets:
        assert driver.reset(device).read(said("ok")) == device
    else:
        with pytest.raises(DeviceError, match="no reset"):
            driver.reset(device)


@every
def test_each_tool_has_a_limit(name: str) -> None:
    driver, device = found(name)
    steps = [*driver.looks, *(step for work in works(driver, device) for step in work.steps)]
    timed = [step for step in steps if isinstance(step, (ToolStep, ScanStep))]
    assert all(0 < step.seconds <= 60 for step in timed)
