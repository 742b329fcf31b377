"""Nominal memory speed from SMBIOS tables, built here field by field after DSP0134 7.18; GPUs."""

import pytest

from flowos.model import Memory
from flowos.probes.facts import read_facts

UNKNOWN = 0xFFFF


def structure(kind: int, formatted: bytes, *strings: str) -> bytes:
    tail = b"\0".join(s.encode() for s in strings) + b"\0\0" if strings else b"\0\0"
    return bytes([kind, len(formatted) + 4, 0, 0]) + formatted + tail


def module(
    locator: str,
    bank: str = "",
    *,
    rate: int = 3200,
    size: int = 16384,
    width: int = 64,
    module_rate: int = 3200,
    rest: bytes = b"",
) -> bytes:
    """A type 17 structure of version 2.7, or longer by `rest`."""
    fields = bytearray(0x22 - 4)

    def put(at: int, value: int, length: int = 2) -> None:
        fields[at - 4 : at - 4 + length] = value.to_bytes(length, "little")

    put(0x08, width)
    put(0x0A, width)
    put(0x0C, size)
    put(0x10, 2, 1)
    put(0x11, 3 if bank else 0, 1)
    put(0x15, module_rate)
    put(0x20, rate)
    return structure(17, bytes(fields) + rest, *filter(None, ("Maker Z", locator, bank)))


def memory(*structures: bytes) -> Memory:
    table = b"".join((structure(0, bytes(20), "BIOS"), *structures, structure(127, b"")))
    return read_facts({"binaries": {"/sys/firmware/dmi/tables/DMI": table.hex()}}).memory


def test_two_modules_on_one_channel_are_one_channel() -> None:
    found = memory(*(module(f"DIMM {n}", f"P0 CHANNEL {c}") for c in "ABCDEFGH" for n in (0, 1)))
    assert found == Memory(
        channels=8,
        transfers_per_second=3.2e9,
        bytes_per_second=8 * 3.2e9 * 8,
        source="SMBIOS",
    )


@pytest.mark.parametrize(
    ("labels", "channels"),
    [
        ([("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P1 CHANNEL A")], 2),
        ([("ChannelA-DIMM0", "BANK 0"), ("ChannelB-DIMM0", "BANK 2")], 2),
        ([("ChannelA-DIMM0", "BANK 0"), ("ChannelA-DIMM1", "BANK 1")], 1),
        ([("P1-DIMMA1", ""), ("P1-DIMMA2", ""), ("P2-DIMMA1", "")], 2),
        ([("DIMM_P0_A0", ""), ("DIMM_P0_B0", ""), ("DIMM_P1_A0", "")], 3),
        ([("NODE 1 CHANNEL 0 DIMM 0", ""), ("NODE 1 CHANNEL 0 DIMM 1", "")], 1),
    ],
)
def test_channels_are_told_by_the_makers_labels(
    labels: list[tuple[str, str]], channels: int
) -> None:
    found = memory(*(module(*each) for each in labels))
    assert (found.channels, found.source) == (channels, "SMBIOS")


@pytest.mark.parametrize(
    "labels",
    [
        [f"DIMM_{socket}{slot}" for socket in "AB" for slot in range(1, 13)],
        [f"PROC 1 DIMM {slot}" for slot in range(1, 9)],
    ],
)
def test_labels_that_number_slots_make_each_module_a_channel_and_say_so(labels: list[str]) -> None:
    found = memory(*(module(each) for each in labels))
    assert found.channels == len(labels)
    assert found.source == "SMBIOS, taking each module for a channel"


def test_empty_slots_are_no_channels() -> None:
    found = memory(module("DIMM_A1"), module("DIMM_B1", size=0), module("DIMM_C1", rate=0))
    assert found.channels == 2


def test_the_slowest_module_sets_the_rate_of_all() -> None:
    found = memory(module("DIMM_A1", rate=3200), module("DIMM_B1", rate=2400))
    assert found.bytes_per_second == 2 * 2.4e9 * 8


def test_narrow_chips_of_laptops_count_by_their_width() -> None:
    chips = (module(f"Channel {n}", rate=6400, width=16) for n in range(8))
    assert memory(*chips).bytes_per_second == 8 * 6.4e9 * 2


def test_the_set_rate_goes_before_the_modules_own() -> None:
    assert memory(module("DIMM_A1", rate=2933)).transfers_per_second == 2.933e9
    assert memory(module("DIMM_A1", rate=0)).transfers_per_second == 3.2e9


def test_rates_beyond_16_bits_stand_in_the_extended_field() -> None:
    both = (
        bytes(0x54 - 0x22) + (0x01020304).to_bytes(4, "little") + (0x05060708).to_bytes(4, "little")
    )
    found = memory(module("DIMM_A1", rate=UNKNOWN, rest=both))
    assert found.transfers_per_second == 0x05060708 * 1e6
    found = memory(module("DIMM_A1", rate=0, module_rate=UNKNOWN, rest=both))
    assert found.transfers_per_second == 0x01020304 * 1e6


@pytest.mark.parametrize(("length", "rate"), [(0x16, None), (0x17, 3.2e9), (0x21, 3.2e9)])
def test_an_older_structure_has_the_modules_rate_if_it_has_one(
    length: int, rate: float | None
) -> None:
    """Of version 2.3 and before; half of a field is none."""
    whole = module("DIMM_A1", rate=0x0B75)
    cut = bytes([17, length, 0, 0]) + whole[4:length] + b"Maker Z\0DIMM_A1\0\0"
    assert memory(cut).transfers_per_second == rate


@pytest.mark.parametrize(("size", "channels"), [(0, None), (0x40, 1), (UNKNOWN, 1)])
def test_a_module_is_there_unless_its_size_is_0(size: int, channels: int | None) -> None:
    assert memory(module("DIMM_A1", size=size)).channels == channels


def test_a_label_of_number_0_is_none_whatever_strings_there_are() -> None:
    fields = bytearray(module("DIMM 0")[4:0x22])
    fields[0x10 - 4] = 0
    found = memory(structure(17, bytes(fields), "CHANNEL A"))
    assert found.source == "SMBIOS, taking each module for a channel"


@pytest.mark.parametrize(("length", "channels"), [(4, 1), (3, None)])
def test_a_structure_of_a_header_alone_is_passed_over_and_a_shorter_one_ends_the_table(
    length: int, channels: int | None
) -> None:
    assert memory(bytes([126, length, 0, 0, 0, 0]), module("DIMM_A1")).channels == channels


@pytest.mark.parametrize(
    "unreadable",
    [
        module("RAM", rate=0, module_rate=0),
        module("RAM", width=UNKNOWN),
        module("RAM", width=0),
        structure(17, bytes(8)),
        bytes([17, 2, 0, 0, 0, 0]),
        b"",
    ],
)
def test_a_table_that_tells_no_speed_gives_none(unreadable: bytes) -> None:
    """As QEMU's, and those of old versions."""
    assert memory(unreadable) == Memory()


@pytest.mark.parametrize("text", ["xyz", module("DIMM_A1")[:-2].hex(), module("A")[:20].hex()])
def test_a_table_that_is_cut_or_is_none_gives_none(text: str) -> None:
    assert read_facts({"binaries": {"/sys/firmware/dmi/tables/DMI": text}}).memory == Memory()


def test_entries_are_read_where_the_table_is_not() -> None:
    at = "/sys/firmware/dmi/entries/17-{}/raw"
    entries = {at.format(n): module(f"DIMM_{'AB'[n]}1").hex() for n in (0, 1)}
    assert read_facts({"binaries": entries}).memory.channels == 2
    both = entries | {"/sys/firmware/dmi/tables/DMI": module("DIMM_A1").hex()}
    assert read_facts({"binaries": both}).memory.channels == 1


# --- limits of groups ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("50000 100000", 0.5),
        ("1 4", 0.25),
        ("max 100000", None),
        ("0 100000", None),
        ("-1 100000", None),
        ("50000 0", None),
        ("50000", None),
    ],
)
def test_a_quota_is_the_time_of_a_period(text: str, cpus: float | None) -> None:
    assert read_facts({"files": {"/sys/fs/cgroup/a/cpu.max": text}}).quota_cpus == cpus
    quota, _, period = text.partition(" ")
    of_v1 = {"cfs_quota_us": quota.replace("max", "-1"), "cfs_period_us": period}
    files = {f"/sys/fs/cgroup/cpu/a/cpu.{name}": value for name, value in of_v1.items()}
    assert read_facts({"files": files}).quota_cpus == cpus


@pytest.mark.parametrize(
    ("machine", "limit", "bytes_"),
    [
        (1 << 30, (1 << 30) - 1, (1 << 30) - 1),
        (1 << 30, 1 << 30, None),
        (1 << 30, 1, 1),
        (1 << 30, 0, None),
        (1 << 30, -1, None),
        (0, 1 << 40, 1 << 40),
        (0, (1 << 63) - 4096, None),
    ],
)
def test_a_limit_of_memory_binds_below_what_the_machine_has(
    machine: int, limit: int, bytes_: int | None
) -> None:
    files = {"/sys/fs/cgroup/a/memory.max": str(limit)}
    files |= {"/proc/meminfo": f"MemTotal: {machine >> 10} kB"} if machine else {}
    assert read_facts({"files": files}).memory_limit_bytes == bytes_


# --- GPUs, hypervisors: what else the machine is -----------------------------------------------


def test_gpus_are_named_by_their_driver_else_by_pci_numbers() -> None:
    pci = "/sys/bus/pci/devices/0000:0{}:00.0"
    makers = enumerate((("0x10de", "0x2330"), ("0x1002", "0x740f"), ("0x8086", "0x0bd5")))
    files = {f"{pci.format(n)}/vendor": vendor for n, (vendor, _) in makers}
    files[f"{pci.format(0)}/device"] = "0x2330"
    assert read_facts({"files": files}).gpus == (
        "NVIDIA GPU (PCI 10de:2330)", "AMD GPU (PCI 1002:)", "Intel GPU (PCI 8086:)",
    )  # fmt: skip
    files["/proc/driver/nvidia/gpus/0000:00:00.0/information"] = "Model: \t NVIDIA H100\nIRQ: 1"
    files["/proc/driver/nvidia/gpus/0000:05:00.0/information"] = "IRQ: 1"
    files["/sys/class/kfd/kfd/topology/nodes/0/name"] = ""
    files["/sys/class/kfd/kfd/topology/nodes/1/name"] = "gfx90a"
    assert read_facts({"files": files}).gpus == (
        "NVIDIA H100", "AMD gfx90a", "Intel GPU (PCI 8086:)",
    )  # fmt: skip


def test_xen_names_itself_in_sysfs() -> None:
    assert read_facts({"files": {"/sys/hypervisor/type": "xen\n"}}).hypervisor == "xen"
