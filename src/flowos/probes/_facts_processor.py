"""Processor, instruction sets and hypervisor by /proc/cpuinfo, and the GPUs."""

import re
from collections.abc import Mapping

from flowos.probes._facts_tree import Tree

_ARM_PARTS = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x42, 0x516): "ThunderX2",
    (0x43, 0x0A1): "ThunderX",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng 920 (TaiShan v110)",
    (0x48, 0xD02): "TaiShan v120",
    (0x4E, 0x004): "Carmel",
    (0x51, 0x001): "Oryon",
    (0x61, 0x022): "M1 Icestorm",
    (0x61, 0x023): "M1 Firestorm",
    (0x6D, 0xD49): "Cobalt 100",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1A",
}
"""(implementer, part) of MIDR_EL1: Linux arch/arm64/include/asm/cputype.h."""

_ARM_MAKERS = {0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon"}
_ARM_MAKERS |= {0x4E: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple", 0x6D: "Microsoft", 0xC0: "Ampere"}

_NEEDED_FLAGS = (
    ("sse4.2", ({"sse4_2"},)),
    ("avx", ({"avx"},)),
    ("avx2", ({"avx2", "fma"},)),
    ("avx_vnni", ({"avx_vnni"},)),
    ("avx512f", ({"avx512f"},)),
    ("avx512_vnni", ({"avx512_vnni"},)),
    ("avx512_bf16", ({"avx512_bf16"},)),
    ("amx_int8", ({"amx_tile", "amx_int8"},)),
    ("amx_bf16", ({"amx_tile", "amx_bf16"},)),
    ("neon", ({"asimd"}, {"neon"})),
    ("neon_dotprod", ({"asimddp"},)),
    ("neon_i8mm", ({"i8mm"},)),
    ("neon_bf16", ({"bf16"},)),
    ("sve", ({"sve"},)),
)
"""Our names -> sets of kernel flags, any of which is enough."""

_GPU_MAKERS = {"0x10de": "NVIDIA GPU", "0x1002": "AMD GPU", "0x8086": "Intel GPU"}
"""By PCI vendor; the displays of service processors and hypervisors compute nothing."""

CpuinfoBlock = Mapping[str, str]


def blocks_of(cpuinfo: str) -> tuple[CpuinfoBlock, ...]:
    """One mapping per processor, names in lower case."""
    found = []
    for paragraph in re.split(r"\n\s*\n", cpuinfo):
        pairs = (line.partition(":") for line in paragraph.splitlines())
        block = {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
        if block:
            found.append(block)
    return tuple(found)


def model_of(tree: Tree, blocks: tuple[CpuinfoBlock, ...], architecture: str) -> str:
    """The processor's marketing name, for each kind of core."""
    named = (name for block in blocks if (name := block.get("model name") or _arm_name(block)))
    others = (block.get(key, "") for block in blocks for key in ("cpu", "cpu model", "uarch"))
    board = (tree.text("/sys/firmware/devicetree/base/model"), architecture)
    for source in (named, others, board):
        if names := [name for name in dict.fromkeys(source) if name]:
            return " + ".join(names[:3]) if source is named else names[0]
    return "unknown"


def _arm_name(block: CpuinfoBlock) -> str:
    """From "CPU implementer : 0x41" and "CPU part : 0xd0c"."""
    values = (block.get(name, "") for name in ("cpu implementer", "cpu part"))
    numbers = [int(text, 16) for text in values if re.fullmatch(r"0x[0-9a-f]{1,4}", text)]
    if len(numbers) != 2:
        return ""
    implementer, part = numbers
    maker = _ARM_MAKERS.get(implementer, f"implementer {implementer:#x}")
    return f"{maker} {_ARM_PARTS.get((implementer, part), f'part {part:#x}')}"


def instruction_sets_of(
    blocks: tuple[CpuinfoBlock, ...], allowed: tuple[int, ...]
) -> tuple[str, ...]:
    """The instruction sets of every core that we may run on, narrow to wide."""
    flags = [
        set((block.get("flags") or block.get("features", "")).split())
        for block in blocks
        if block.get("processor") in {str(n) for n in allowed}
    ]
    common = set.intersection(*flags) if flags else set()
    return tuple(name for name, choices in _NEEDED_FLAGS if any(c <= common for c in choices))


def hypervisor_of(tree: Tree, blocks: tuple[CpuinfoBlock, ...], lscpu: str) -> str:
    """The hypervisor's name, "unknown" where only its presence shows, "" on bare metal."""
    if match := re.search(r"(?m)^Hypervisor vendor:\s*(\S.*)$", lscpu):
        return match[1].strip()
    if name := tree.text("/sys/hypervisor/type"):
        return name
    return "unknown" if any("hypervisor" in b.get("flags", "").split() for b in blocks) else ""


def gpus_of(tree: Tree) -> tuple[str, ...]:
    """GPUs by the name their driver gives, or by PCI numbers where no driver names them."""
    nvidia = [
        match[1].strip()
        for _, text in tree.matching(r"/proc/driver/nvidia/gpus/[^/]+/information")
        if (match := re.search(r"(?m)^Model:\s*(.+)$", text))
    ]
    amd = [
        f"AMD {text}"
        for _, text in tree.matching(r"/sys/class/kfd/kfd/topology/nodes/[^/]+/name")
        if text
    ]
    named = {maker for maker, names in (("0x10de", nvidia), ("0x1002", amd)) if names}
    unnamed = []
    for match, maker in tree.matching(r"(/sys/bus/pci/devices/[^/]+)/vendor"):
        if maker in _GPU_MAKERS and maker not in named:
            device = tree.text(f"{match[1]}/device").removeprefix("0x")
            unnamed.append(f"{_GPU_MAKERS[maker]} (PCI {maker[2:]}:{device})")
    return (*nvidia, *amd, *unnamed)
