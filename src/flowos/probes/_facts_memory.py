"""Limits of memory and CPU time from cgroups, and the nominal speed of memory from SMBIOS.

SMBIOS: DMTF DSP0134 3.7, section 7.18 (type 17, one structure per memory device).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from flowos._dataclasses import dataclass
from flowos.model import Memory
from flowos.probes._facts_tree import Tree, number

_MEMORY_DEVICE, _END = 17, 127
_NOT_INSTALLED, _UNKNOWN = 0, 0xFFFF
_CHANNELS = (
    re.compile(r"(CHANNEL[ _-]?[A-Z0-9]+)"),
    re.compile(r"(DIMM[ _-]?(?:P\d+[ _-]?)?[A-Z])[012](?!\d)"),
)
"""Labels that name a channel, if those of all slots do: Dell's letter of A1 to A12 is a socket."""

_SOCKET = re.compile(r"(?:CPU|PROC|NODE|SOCKET|P)[ _-]?\d+")
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot for a memory module: its label, bus width, and rate (0: empty, unknown)."""

    label: str
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
    return quota / period if quota is not None and period and quota > 0 else None


def memory_limit_of(tree: Tree, memory_bytes: int) -> int | None:
    """The tightest limit on our path, if it is below what the machine has."""
    found = (number(text) for _, text in tree.matching(r".*/memory\.(max|limit_in_bytes)"))
    most = memory_bytes or _UNLIMITED_BYTES
    return min((limit for limit in found if limit is not None and 0 < limit < most), default=None)


def nominal_memory(binaries: Mapping[str, str]) -> Memory:
    """Channels x transfers/s x width, of the modules that SMBIOS lists; empty if it lists none."""
    tables = [path for path in sorted(binaries) if path.endswith("/DMI")] or sorted(binaries)
    slots = [slot for path in tables for slot in _slots(_bytes(binaries[path]))]
    label_of = _channel_labels(slots)
    modules = [slot for slot in slots if slot.transfers_per_second and slot.width_bytes]
    if not modules:
        return Memory()
    on_channel = {label_of(slot) if label_of else i: slot for i, slot in enumerate(modules)}
    slowest = min(module.transfers_per_second for module in modules)
    return Memory(
        channels=len(on_channel),
        transfers_per_second=slowest,
        bytes_per_second=sum(module.width_bytes for module in on_channel.values()) * slowest,
        source="SMBIOS" if label_of else "SMBIOS, taking each module for a channel",
    )


def _channel_labels(slots: list[Slot]) -> Callable[[Slot], object] | None:
    """A function from a slot to its channel and socket; None if the labels do not name it."""
    for pattern in _CHANNELS:
        if all(pattern.search(slot.label) for slot in slots):
            return partial(_channel_of, pattern)
    return None


def _channel_of(pattern: re.Pattern[str], slot: Slot) -> tuple[str, ...]:
    return (*pattern.findall(slot.label), *_SOCKET.findall(slot.label))


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _structures(table: bytes) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Each structure's formatted part and its strings, up to where the table is truncated."""
    at = 0
    while at + 4 <= len(table):
        length = table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0 or table[at] == _END:
            return
        strings = table[at + length : end].decode("latin-1").split("\0")
        yield table[at : at + length], tuple(strings)
        at = end + 2


def _slots(table: bytes) -> Iterator[Slot]:
    for raw, strings in _structures(table):
        if raw[0] == _MEMORY_DEVICE and len(raw) >= 0x17:
            label = " ".join(_string(strings, raw[at]) for at in (0x11, 0x10)).upper()
            empty, width = _word(raw, 0x0C) == _NOT_INSTALLED, _word(raw, 0x0A)
            yield Slot(
                label=label,
                width_bytes=0 if width == _UNKNOWN else width // 8,
                transfers_per_second=0.0 if empty else _rate(raw) * 1e6,
            )


def _word(raw: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(raw[at : at + size], "little") if at + size <= len(raw) else 0


def _rate(raw: bytes) -> int:
    """The configured rate, else the module's, in millions of transfers a second; 0 if unknown."""
    for at, extended in ((0x20, 0x58), (0x15, 0x54)):
        rate = _word(raw, at)
        rate = _word(raw, extended, 4) if rate == _UNKNOWN else rate
        if rate:
            return rate
    return 0


def _string(strings: tuple[str, ...], index: int) -> str:
    return strings[index - 1].strip() if 0 < index <= len(strings) else ""
