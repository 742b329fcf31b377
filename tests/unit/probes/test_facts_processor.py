"""Processors, their cores and caches, from constructed files of the kernel."""

import re

import pytest

from flowos.model import Facts
from flowos.probes._facts_tree import cpu_list, size_bytes
from flowos.probes.facts import read_facts

CPUS = "/sys/devices/system/cpu"


def machine(files: dict[str, str]) -> Facts:
    """With these files of /sys/devices/system/cpu, or of a whole path."""
    paths = {p if p.startswith("/") else f"{CPUS}/{p}": text for p, text in files.items()}
    return read_facts({"files": paths})


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        (
            {"/sys/devices/cpu_atom/cpus": "1", "/sys/devices/cpu_core/cpus": "0"},
            ["performance", "efficiency"],
        ),
        ({"/sys/devices/cpu_atom/cpus": "0-1"}, ["", ""]),
        ({"cpu0/cpu_capacity": "1000", "cpu1/cpu_capacity": "850"}, ["", ""]),
        (
            {"cpu0/cpu_capacity": "1000", "cpu1/cpu_capacity": "849"},
            ["performance", "efficiency"],
        ),
        ({"cpu0/cpu_capacity": "1000"}, ["", ""]),
        ({"cpu0/cpu_capacity": "1000", "cpu1/cpu_capacity": "0"}, ["", ""]),
    ],
)
def test_kinds_of_cores_are_said_by_the_kernel_or_lie_clearly_apart(
    files: dict[str, str], kinds: list[str]
) -> None:
    assert [cpu.kind for cpu in machine({"online": "0-1", **files}).cpus] == kinds


@pytest.mark.parametrize(("khz", "hz"), [("0", None), ("-1", None), ("1", 1e3), ("x", None)])
def test_a_highest_clock_is_above_0(khz: str, hz: float | None) -> None:
    found = machine({"online": "0", "cpu0/cpufreq/cpuinfo_max_freq": khz})
    assert [cpu.nominal_hz for cpu in found.cpus] == [hz]


def test_a_socket_that_is_not_known_is_the_first() -> None:
    packages = {f"cpu{n}/topology/physical_package_id": text for n, text in enumerate(("0", "-1"))}
    assert [cpu.socket for cpu in machine({"online": "0-2", **packages}).cpus] == [0, 0, 0]


def test_caches_that_cannot_be_are_left_out_and_the_others_are_not() -> None:
    def index(number: int, level: str, size: str, **more: str) -> dict[str, str]:
        at = f"cpu0/cache/index{number}"
        files = {"level": level, "size": size, "type": "Unified", **more}
        return {f"{at}/{name}": text for name, text in files.items()}

    found = machine(
        {
            "online": "0",
            **index(0, "", "1K"),
            **index(1, "0", "1K"),
            **index(2, "-1", "1K"),
            **index(3, "1", "0K"),
            **index(4, "1", "32K", coherency_line_size="128"),
            **index(5, "2", "1M"),
            "cpu1/cache/index0/level": "1",
            "cpu1/cache/index0/size": "48K",
        }
    )
    assert [(c.level, c.size_bytes, c.line_bytes, c.cpus) for c in found.caches] == [
        (1, 32 << 10, 128, (0,)),
        (2, 1 << 20, 64, (0,)),
    ]


# --- names ---

MIDR = """\
0x41 0xd03 Arm Cortex-A53         0x41 0xd05 Arm Cortex-A55      0x41 0xd07 Arm Cortex-A57
0x41 0xd08 Arm Cortex-A72         0x41 0xd09 Arm Cortex-A73      0x41 0xd0b Arm Cortex-A76
0x41 0xd0c Arm Neoverse-N1        0x41 0xd40 Arm Neoverse-V1     0x41 0xd41 Arm Cortex-A78
0x41 0xd44 Arm Cortex-X1          0x41 0xd49 Arm Neoverse-N2     0x41 0xd4f Arm Neoverse-V2
0x41 0xd84 Arm Neoverse-V3        0x41 0xd85 Arm Cortex-X925     0x41 0xd87 Arm Cortex-A725
0x41 0xd8e Arm Neoverse-N3        0x42 0x516 Broadcom ThunderX2  0x43 0x0a1 Cavium ThunderX
0x43 0x0af Cavium ThunderX2       0x46 0x001 Fujitsu A64FX       0x4e 0x004 NVIDIA Carmel
0x48 0xd01 HiSilicon Kunpeng 920 (TaiShan v110)                  0x48 0xd02 HiSilicon TaiShan v120
0x51 0x001 Qualcomm Oryon         0x61 0x022 Apple M1 Icestorm   0x61 0x023 Apple M1 Firestorm
0x6d 0xd49 Microsoft Cobalt 100   0xc0 0xac3 Ampere Ampere-1     0xc0 0xac4 Ampere Ampere-1A"""
"""Implementer, part and name: of lscpu (util-linux), newer ones of the kernel's cputype.h."""


@pytest.mark.parametrize(
    ("implementer", "part", "name"),
    re.findall(r"(0x..) (0x...) (\S.*?)(?=  |$)", MIDR, re.MULTILINE),
)
def test_arm_cores_are_named_as_lscpu_does(implementer: str, part: str, name: str) -> None:
    cpuinfo = f"processor : 0\nCPU implementer : {implementer}\nCPU part : {part}"
    assert read_facts({"files": {"/proc/cpuinfo": cpuinfo}}).cpu_model == name


def test_of_more_than_three_kinds_of_cores_three_are_named() -> None:
    cpuinfo = "\n\n".join(f"processor : {n}\nmodel name : Core {n // 2}" for n in range(8))
    assert read_facts({"files": {"/proc/cpuinfo": cpuinfo}}).cpu_model == "Core 0 + Core 1 + Core 2"
    cpuinfo = "\n\n".join(f"processor : {n}\ncpu : POWER{9 + n}" for n in range(2))
    assert read_facts({"files": {"/proc/cpuinfo": cpuinfo}}).cpu_model == "POWER9"


# --- values ---


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8", (0, 1, 2, 3, 8)),
        (" 2 , 1-1\n", (1, 2)),
        ("3-2,x,-1,1-,5", (5,)),
        ("65534-999999", (65534, 65535, 65536)),
        ("", ()),
    ],
)
def test_a_list_of_cpus_is_read_as_the_kernel_writes_it(text: str, cpus: tuple[int, ...]) -> None:
    assert cpu_list(text) == cpus


@pytest.mark.parametrize(
    ("text", "size"),
    [("512", 512), ("32K", 32768), ("2M", 2097152), ("1G", 1 << 30), ("1T", None), ("", None)],
)
def test_the_size_of_a_cache_has_a_unit(text: str, size: int | None) -> None:
    assert size_bytes(text) == size
