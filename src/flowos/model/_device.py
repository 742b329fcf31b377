"""Devices of a node, what they are configured with, and FPGAs that flowos.toml names."""

import re
from typing import Any, Literal

from flowos._dataclasses import dataclass, field

DeviceKind = Literal["cpu", "opencl", "gpu", "fpga"]

XVC = "xvc-client"
"""How openFPGALoader calls a Xilinx Virtual Cable: JTAG over TCP."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OF_OTHERS = re.compile(r"cpu|gpu\d+(-mig\d+)?|opencl-.*")
"""Names of devices that are found before those of flowos.toml, and would hide them."""
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(rf"{_BYTE}(?:\.{_BYTE}){{3}}:(\d{{1,5}})")
_MAX_SECONDS = 1e6


def _doc(sentence: str) -> dict[str, Any]:
    return {"doc": sentence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fpga:
    """An FPGA of this machine, as `[fpgas.NAME]` says. Raises ValueError for what cannot be."""

    name: str
    cable: str = field(
        default=XVC,
        metadata=_doc(
            "what reaches it, as `openFPGALoader --list-cables` calls it; by default a Xilinx "
            "Virtual Cable, JTAG over TCP"
        ),
    )
    address: str = field(
        default="",
        metadata=_doc(
            "of a Xilinx Virtual Cable: its IPv4 address and port, as in `10.0.0.7:2542`"
        ),
    )
    serial: str = field(
        default="", metadata=_doc("of a cable on USB, where there are several: its serial number")
    )
    board: str = field(
        default="",
        metadata=_doc("as `openFPGALoader --list-boards` calls it; it implies the cable"),
    )
    part: str = field(
        default="",
        metadata=_doc(
            "which it is: `ice40 8k` and so on of one without JTAG; of others, what JTAG has to say"
        ),
    )
    port: str = field(
        default="",
        metadata=_doc(
            "the serial line to it, as in `/dev/ttyUSB1`: slices load it for tasks of `fo.hdl` "
            "with `link='uart'`"
        ),
    )
    limit_seconds: float = field(
        default=60.0, metadata=_doc("how long one step may take, a load too, before it is ended")
    )

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name: {self.name!r}: expected letters, digits, _.- (not first)")
        if _OF_OTHERS.fullmatch(self.name):
            raise ValueError(f"name: {self.name!r}: a device that is found has it; choose another")
        for name in ("cable", "serial", "board"):
            value = getattr(self, name)
            if value and not _WORD.fullmatch(value):
                raise ValueError(f"{name}: {value!r}: expected letters, digits, _.:-")
        if not 0 < self.limit_seconds < _MAX_SECONDS:
            raise ValueError(f"limit_seconds: {self.limit_seconds}: expected a number above 0")
        over_tcp = self.cable == XVC and not self.board
        if over_tcp and not self.address:
            raise ValueError("address: a Xilinx Virtual Cable has one: address = '10.0.0.7:2542'")
        if self.address and not over_tcp:
            raise ValueError(f"address: a cable {XVC} has one, and no other")
        if self.serial and over_tcp:
            raise ValueError("serial: a cable on USB has one, a Xilinx Virtual Cable has none")
        found = _ADDRESS.fullmatch(self.address)
        if self.address and (found is None or not 0 < int(found[1]) < 65536):
            raise ValueError(f"address: {self.address!r}: expected IPv4:PORT, as 10.0.0.7:2542")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDevice:
    """Something of a node that computes.

    driver: its name in `drivers.DEVICES`. at: where the driver reaches it; with the driver it is
    the device itself, whatever its name. part: of an FPGA, as its vendor or its loader says.
    idcode: as JTAG reads it. cdi: its name in containers. options: words of the driver's tool.
    port: the serial line to it. unusable: why it cannot be used, and what would help.
    """

    name: str
    kind: DeviceKind
    driver: str
    at: str
    about: str = ""
    part: str = ""
    idcode: int | None = None
    cdi: str = ""
    options: tuple[str, ...] = ()
    port: str = ""
    limit_seconds: float = 60.0
    unusable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitstream:
    """What an FPGA is configured with. digest: "sha256:HEX" of the file, its identity.

    part: that it is for, "" if the file does not say. idcode: that its own check wants.
    """

    digest: str
    form: Literal["xilinx .bit", "xilinx raw", "ecp5", "ice40", "xclbin"]
    part: str = ""
    idcode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOwner:
    """The program that has a device for itself. since: seconds since 1970."""

    pid: int
    user: str
    program: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """What is known of a device from one program to the next, until the node is booted.

    loaded: digest of the bitstream that it was configured with last, and when; out: why it was
    taken out of use.
    """

    owner: DeviceOwner | None = None
    loaded: str = ""
    loaded_at: float = 0.0
    out: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A device as it is now; `record.owner` is None of one that no program holds."""

    device: NodeDevice
    record: DeviceRecord = DeviceRecord()
