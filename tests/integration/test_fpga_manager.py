"""The kernel's FPGA manager, whose folder in sysfs is one of the test's here."""

from pathlib import Path

import pytest

from flowos.drivers import DeviceFacts
from flowos.drivers.devices.fpga_manager import FpgaManager
from flowos.engine import HeldDevice
from flowos.engine.devices._steps import take
from flowos.model import Bitstream, DeviceError

RAW = Bitstream(digest="sha256:" + "ab" * 32, form="xilinx raw")


def test_a_bitstream_is_handed_to_the_kernel_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_DEVICES_DIR", str(tmp_path / "locks"))
    sysfs, firmware = tmp_path / "fpga_manager", tmp_path / "firmware"
    at = sysfs / "fpga0"
    at.mkdir(parents=True)
    firmware.mkdir()
    for name, text in (("name", "Zynq"), ("state", "unknown"), ("status", ""), ("firmware", "")):
        (at / name).write_text(text + "\n" * bool(text))
    file = tmp_path / "x.bin"
    file.write_bytes(b"\xaa\x99\x55\x66")
    driver = FpgaManager(sysfs, firmware)
    (device,) = driver.find(DeviceFacts(answers=tuple(map(take, driver.looks))))
    assert (device.name, device.about) == ("fpga0", "Zynq")
    refused = pytest.raises(DeviceError, match="it is not configured: the kernel says 'unknown'")
    with HeldDevice(device, driver) as held, refused:
        held.deploy(RAW, file)
    assert (firmware / (at / "firmware").read_text()).read_bytes() == file.read_bytes()
    with pytest.raises(DeviceError, match="fpga0: taken out of use: it is not configured"):
        HeldDevice(device, driver)
    (at / "state").write_text("operating\n")
    with HeldDevice(device, driver, again=True) as held:
        assert held.deploy(RAW, file)
        assert not held.deploy(RAW, file)
    (at / "firmware").unlink()  # a kernel that loads by overlays alone
    refused = pytest.raises(DeviceError, match="fpga0/firmware cannot be written: No such file")
    with HeldDevice(device, driver, again=True) as held, refused:
        held.deploy(RAW, file, again=True)
