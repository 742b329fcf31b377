"""FPGAs next to the processors of a chip (Zynq, Agilex), by the kernel's FPGA manager in sysfs.

`name`, `state` and `status` are of every kernel. `firmware`, which loads a file of /lib/firmware by
its name, is of the kernels of AMD and Intel; others load by device tree overlays.
"""

from pathlib import PurePath

from flowos.drivers._devices import (
    NOT_ALLOWED,
    AsItIs,
    CopyStep,
    DeviceFacts,
    DeviceStep,
    DeviceWork,
    FilesStep,
    StepAnswers,
    WriteStep,
    faulty,
)
from flowos.model import Bitstream, DeviceError, DeviceKind, NodeDevice

SYSFS, FIRMWARE = PurePath("/sys/class/fpga_manager"), PurePath("/lib/firmware")
_CONFIGURED = "operating"


class FpgaManager(AsItIs):
    """at: its folder in sysfs."""

    name = "fpga-manager"
    kind: DeviceKind = "fpga"

    def __init__(self, sysfs: PurePath = SYSFS, firmware: PurePath = FIRMWARE) -> None:
        self._firmware = firmware
        self.looks: tuple[DeviceStep, ...] = (FilesStep(sysfs, "*/name"),)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        lines = [line for answer in facts.answers for line in answer.text.splitlines()]
        found = [
            (PurePath(path).parent, about) for path, _, about in (x.partition("=") for x in lines)
        ]
        return tuple(
            NodeDevice(name=at.name, kind="fpga", driver=self.name, at=str(at), about=about)
            for at, about in found
        )

    def acquire(self, device: NodeDevice) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            if not answers[0].text:
                raise faulty(device, f"{device.at} is gone: the kernel has no such FPGA any more")
            return device

        return DeviceWork((FilesStep(PurePath(device.at), "name"),), read)

    def configure(self, device: NodeDevice, bitstream: Bitstream, file: PurePath) -> DeviceWork:
        if bitstream.form != "xilinx raw":
            wants = "it takes raw data (Vivado's .bin, bootgen's .bit.bin)"
            raise DeviceError(f"{device.name}: {file}: it is of form {bitstream.form}; {wants}")
        kept = f"flowos-{bitstream.digest.removeprefix('sha256:')[:16]}.bin"

        def read(answers: StepAnswers) -> NodeDevice:
            for answer, path in zip(
                answers, (self._firmware, f"{device.at}/firmware"), strict=False
            ):
                if answer.code == NOT_ALLOWED:
                    raise DeviceError(
                        f"{device.name}: {path} may not be written: only root may load it, or whom "
                        f"an administrator lets (chgrp and chmod g+w)"
                    )
                if answer.code:
                    raise DeviceError(f"{device.name}: {path} cannot be written: {answer.text}")
            return device

        copied = CopyStep(file, self._firmware / kept)
        return DeviceWork((copied, WriteStep(PurePath(device.at) / "firmware", kept)), read)

    def verify(self, device: NodeDevice) -> DeviceWork:
        def read(answers: StepAnswers) -> NodeDevice:
            state, status = (answer.text.partition("=")[2] for answer in answers)
            if not answers[0].text:
                raise faulty(device, f"{device.at} is gone")
            if state != _CONFIGURED:
                raise faulty(
                    device, f"it is not configured: the kernel says {state!r} {status}".strip()
                )
            return device

        at = PurePath(device.at)
        return DeviceWork((FilesStep(at, "state"), FilesStep(at, "status")), read)
