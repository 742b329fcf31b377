"""FPGAs on a JTAG or SPI cable, by openFPGALoader.

It ends with 0 when it loaded a board that never was DONE, and where it says FAIL, and it waits for
ever for a silent cable. So its text is read, each step has a limit, and over a Xilinx Virtual Cable
the TAP itself is asked: for its whole IDCODE, and after a load for DONE.
"""

import re
from pathlib import PurePath

from flowos._dataclasses import replace
from flowos.drivers._bitstreams import ECP5_PARTS, REVISION, same_part
from flowos.drivers._devices import (
    TOO_LATE,
    DeviceFacts,
    DeviceStep,
    DeviceWork,
    ScanStep,
    StepAnswer,
    StepAnswers,
    ToolStep,
    faulty,
    nothing,
    refuse_failed_tool,
)
from flowos.drivers._jtag import TapStatus, is_lattice, read_status, status_scan
from flowos.model import XVC, Bitstream, DeviceError, DeviceKind, Fpga, NodeDevice

_TOOL = "openFPGALoader"
_REMEDY = "install it (Debian: apt-get install openfpgaloader)"
_FOUND = re.compile(
    r"idcode\s+(0x[0-9a-f]+)\s+manufacturer (\S+)\s+family (\S.*?)\s*\n\s*model\s+(\S+)"
)
_UNKNOWN = re.compile(r"Unknown device with IDCODE: (0x[0-9a-f]+)")
_PROBE = re.compile(r"^(\d{3}) (\d{3})\s+0x([0-9a-f]{4}):0x([0-9a-f]{4}) (.*)$", re.MULTILINE)
_FILE_TYPES = {"xilinx .bit": "bit", "ecp5": "bit", "xilinx raw": "bin", "ice40": "bin"}
_RIGHTS = (
    "there is no right to open it: with the udev rule of Debian's package group plugdev has "
    "(usermod -aG plugdev USER); plug it in again after both"
)
_COMPLAINTS = (
    (re.compile(r"(?i)usb_open\(\) failed|LIBUSB_ERROR_ACCESS|permission denied"), _RIGHTS, False),
    (
        re.compile(r"(?i)LIBUSB_ERROR_BUSY|unable to claim"),
        "another program has its cable open",
        False,
    ),
    (
        re.compile(r"device not found|can't get USB device|No cable found"),
        "its cable is not there",
        True,
    ),
    (re.compile(r"Connection error|connection failure"), "nothing listens there", True),
    (
        re.compile(r"shut down the connection|[Ss]end error|Receive error"),
        "the link was lost",
        True,
    ),
    (re.compile(r"mismatch between target"), "the bitstream is of another part", False),
    (
        re.compile(r"unable to open ftdi device|JTAG init failed"),
        "its cable cannot be opened",
        True,
    ),
)
"""What it says, what that is, and whether the device is at fault."""


class OpenFpgaLoader:
    """at: the address of a virtual cable; else cable or board, and the serial number."""

    name = "openfpgaloader"
    kind: DeviceKind = "fpga"
    looks: tuple[DeviceStep, ...] = (ToolStep((_TOOL, "--scan-usb")),)

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]:
        """Those of flowos.toml; of USB the cables, as only a load that is verified proves more."""
        named = tuple(map(named_fpga, facts.fpgas))
        if any(not _address(device) for device in named):
            return named  # which of the cables is whose, openFPGALoader knows
        return (*named, *(probe for answer in facts.answers for probe in _probes(answer)))

    def acquire(self, device: NodeDevice) -> DeviceWork:
        if device.unusable:
            raise DeviceError(f"{device.name}: {device.unusable}")
        if _has_no_jtag(device):
            return nothing(device)
        steps: tuple[DeviceStep, ...] = (_tool(device, "--detect"),)
        steps += (_scan(device),) if _address(device) else ()

        def read(answers: StepAnswers) -> NodeDevice:
            _refuse_failed(device, answers[0], "does not answer")
            found = _FOUND.findall(answers[0].text)
            if len(found) != 1:
                raise faulty(device, _not_one(len(found)))
            idcode, _, family, model = found[0]
            seen = replace(device, idcode=int(idcode, 16), part=model, about=family)
            if len(answers) > 1:
                status = _status(device, answers[1], lattice=False)
                if (status.idcode ^ int(idcode, 16)) & ~REVISION:
                    raise faulty(
                        device, f"its IDCODE changes: {idcode}, then {status.idcode:#010x}"
                    )
                part = ECP5_PARTS.get(status.idcode, model)
                seen = replace(seen, idcode=status.idcode, part=part)
            if device.part and not same_part(device.part, seen.part):
                raise DeviceError(
                    f"{device.name}: flowos.toml says part {device.part}, and its IDCODE "
                    f"{seen.idcode:#010x} is that of {seen.part}"
                )
            return seen

        return DeviceWork(steps, read)

    def configure(self, device: NodeDevice, bitstream: Bitstream, file: PurePath) -> DeviceWork:
        if bitstream.form not in _FILE_TYPES:
            raise DeviceError(f"{device.name}: {file}: {_TOOL} loads no {bitstream.form}")
        kind = _FILE_TYPES[bitstream.form]
        loads = _tool(device, "--write-sram", "--quiet", "--file-type", kind, str(file))

        def read(answers: StepAnswers) -> NodeDevice:
            _refuse_failed(device, answers[0], "was not loaded")
            return device

        return DeviceWork((loads,), read)

    def verify(self, device: NodeDevice) -> DeviceWork:
        """Over USB only that the FPGA is there; its status is not shown."""
        if not _address(device):
            return self.acquire(device)
        lattice = device.idcode is not None and is_lattice(device.idcode)

        def read(answers: StepAnswers) -> NodeDevice:
            status = _status(device, answers[0], lattice=lattice)
            if device.idcode is not None and status.idcode != device.idcode:
                was = f"{device.idcode:#010x}"
                raise faulty(device, f"its IDCODE was {was}, and is {status.idcode:#010x}")
            if status.done is False:
                raise DeviceError(f"{device.name}: it is not configured: no DONE")
            return device

        return DeviceWork((_scan(device, lattice=lattice),), read)

    def reset(self, device: NodeDevice) -> DeviceWork:
        """Its configuration is gone, of those parts that do so; all answer."""
        if _has_no_jtag(device):
            raise DeviceError(f"{device.name}: {_TOOL} has no reset for it; load a bitstream")

        def read(answers: StepAnswers) -> NodeDevice:
            _refuse_failed(device, answers[0], "was not reset")
            return device

        return DeviceWork((_tool(device, "--reset"),), read)

    def release(self, device: NodeDevice) -> DeviceWork:
        return nothing(device)


def named_fpga(fpga: Fpga) -> NodeDevice:
    """The device of a table of flowos.toml."""
    host, _, port = fpga.address.partition(":")
    reached = ("--board", fpga.board) if fpga.board else ("--cable", fpga.cable)
    over_usb = (*reached, *(("--ftdi-serial", fpga.serial) if fpga.serial else ()))
    return NodeDevice(
        name=fpga.name,
        kind="fpga",
        driver=OpenFpgaLoader.name,
        at=fpga.address or " ".join(over_usb[1::2]),
        part=fpga.part,
        options=("--cable", XVC, "--ip", host, "--port", port) if fpga.address else over_usb,
        port=fpga.port,
        limit_seconds=fpga.limit_seconds,
    )


def _probes(answer: StepAnswer) -> tuple[NodeDevice, ...]:
    """Cables on USB that no table names."""
    return tuple(
        NodeDevice(
            name=f"usb-{bus}-{number}",
            kind="fpga",
            driver=OpenFpgaLoader.name,
            at=f"usb-{bus}-{number}",
            about=" ".join(words.split()),
            unusable="a cable on USB: a table [fpgas.NAME] of flowos.toml says what it leads to",
        )
        for bus, number, _, _, words in _PROBE.findall(answer.text)
    )


def _has_no_jtag(device: NodeDevice) -> bool:
    return device.part.startswith("ice40")


def _address(device: NodeDevice) -> str:
    return device.at if "--ip" in device.options else ""


def _tool(device: NodeDevice, *words: str) -> ToolStep:
    return ToolStep((_TOOL, *device.options, *words), device.limit_seconds)


def _scan(device: NodeDevice, *, lattice: bool = False) -> ScanStep:
    return ScanStep(device.at, *status_scan(lattice=lattice), device.limit_seconds)


def _status(device: NodeDevice, answer: StepAnswer, *, lattice: bool) -> TapStatus:
    if answer.code:
        late = f"no answer within {device.limit_seconds:g} s"
        why = late if answer.code == TOO_LATE else f"the link was lost: {answer.text}"
        raise faulty(device, why)
    found = read_status(answer.bits, lattice=lattice)
    if found is None:
        raise faulty(device, "its virtual cable answers, and no FPGA behind it")
    return found


def _not_one(count: int) -> str:
    if count:
        return f"{count} FPGAs are in its chain; FlowOS takes chains of one"
    return "its cable answers, and no FPGA behind it"


def _refuse_failed(device: NodeDevice, answer: StepAnswer, what: str) -> None:
    refuse_failed_tool(device, answer, _TOOL, _REMEDY)
    if unknown := _UNKNOWN.search(answer.text):
        raise DeviceError(f"{device.name}: {_TOOL} knows no part with the IDCODE {unknown[1]}")
    lines = [line.strip() for line in answer.text.splitlines() if line.strip()]
    failed = next((line for line in lines if "FAIL" in line), "")
    if answer.code == 0 and not failed:
        return
    for pattern, why, is_faulty in _COMPLAINTS:
        if said := pattern.search(answer.text):
            error = faulty(device, f"it {what}: {why} ({_TOOL}: {said[0]})")
            error.faulty = is_faulty
            raise error
    ended = f"ended by signal {-answer.code}" if answer.code < 0 else f"ended with {answer.code}"
    raise faulty(device, f"it {what}: {_TOOL} {ended}: {failed or ' / '.join(lines[-2:])}"[:300])
