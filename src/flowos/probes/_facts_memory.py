"""Limits of memory and CPU time from cgroups, and the nominal speed of memory from SMBIOS.

SMBIOS: DMTF DSP0134 3.7, section 7.18 (type 17, one structure per memory device).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flowos.model import Memory
from flowos.probes._facts_tree import Tree, number

_MEMORY_DEVICE, _END = 17, 127
_NOT_INSTALLED, _UNKNOWN = 0, 0xFFFF
_CHANNEL = re.compile(r"(?i)channel[ _-]?[a-z0-9]+|dimm[ _-]?(?:p\d+[ _-]?)?[a-z](?=\d)")
_SOCKET = re.compile(r"(?i)(?:cpu|proc|node|socket|p)[ _-]?\d+")
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True, slots=True)
class Device:
    """A memory module: where it sits, its bus width and its rate."""

    locator: str
    bank: str
    width_bytes: int
    transfers_per_second: float


def quota_of(tree: Tree) -> float | None:
    """CPUs' worth of time that the tightest group on our path gets: cpu.max, or cfs quota (v1)."""
    shares = []
    for _, text in tree.matching(r".*/cpu\.max"):
        quota, _, period = text.partition(" ")
        shares.append(_share(number(quota), number(period)))
    for match, text in tree.matching(r"(.*)/cpu\.cfs_quota_us"):
        shares.append(_share(number(text), tree.number(f"{match[1]}/cpu.cfs_period_us")))
    return min((share for share in shares if share is not None), default=None)


def _share(quota: int | None, period: int | None) -> float | None:
    return quota / period if quota and period and quota > 0 and period > 0 else None


def memory_limit_of(tree: Tree, memory_bytes: int) -> int | None:
    """The tightest limit on our path, if it is below what the machine has."""
    found = (number(text) for _, text in tree.matching(r".*/memory\.(max|limit_in_bytes)"))
    most = memory_bytes or _UNLIMITED_BYTES
    return min((limit for limit in found if limit is not None and 0 < limit < most), default=None)


def nominal_memory(binaries: Mapping[str, str]) -> Memory:
    """Channels x transfers/s x width, of the modules that SMBIOS lists; empty if it tells none."""
    devices = [d for path in sorted(binaries) for d in _devices(_bytes(binaries[path]))]
    labels = [_channel_of(device) for device in devices]
    labelled = None not in labels
    on_channel = dict(zip(labels if labelled else range(len(devices)), devices, strict=True))
    if not devices:
        return Memory()
    slowest = min(device.transfers_per_second for device in devices)
    return Memory(
        channels=len(on_channel),
        transfers_per_second=slowest,
        bytes_per_second=sum(d.width_bytes for d in on_channel.values()) * slowest,
        source="SMBIOS" if labelled else "SMBIOS, taking each module for a channel",
    )


def _channel_of(device: Device) -> tuple[str, ...] | None:
    """Socket and channel by the module's labels, as "P0 CHANNEL A": modules that share wires.

    None where the labels do not tell: makers number slots each in their own way.
    """
    text = f"{device.bank} {device.locator}".upper()
    match = _CHANNEL.search(text)
    return (match[0], *_SOCKET.findall(text)) if match else None


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _structures(table: bytes) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Each structure's formatted part and its strings; stops where the table is cut."""
    at = 0
    while at + 4 <= len(table):
        length = table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0 or table[at] == _END:
            return
        strings = table[at + length : end].decode("latin-1").split("\0")
        yield table[at : at + length], tuple(strings)
        at = end + 2


def _devices(table: bytes) -> Iterator[Device]:
    for raw, strings in _structures(table):
        if raw[0] != _MEMORY_DEVICE or len(raw) < 0x17 or _word(raw, 0x0C) == _NOT_INSTALLED:
            continue
        rate, width = _rate(raw), _word(raw, 0x0A)
        if rate and width not in (0, _UNKNOWN):
            locator, bank = (_string(strings, raw[place]) for place in (0x10, 0x11))
            yield Device(locator, bank, width // 8, rate * 1e6)


def _word(raw: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(raw[at : at + size], "little") if at + size <= len(raw) else 0


def _rate(raw: bytes) -> int:
    """The rate that is set, else the module's, in millions of transfers a second; 0 unknown."""
    for at, extended in ((0x20, 0x58), (0x15, 0x54)):
        rate = _word(raw, at)
        rate = _word(raw, extended, 4) if rate == _UNKNOWN else rate
        if rate:
            return rate
    return 0


def _string(strings: tuple[str, ...], index: int) -> str:
    return strings[index - 1].strip() if 0 < index <= len(strings) else ""
