"""The reader of facts, on machines recorded or constructed in tests/data/machines."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowos.model import Facts, from_plain, to_plain
from flowos.probes._facts_tree import cpu_list
from flowos.probes.facts import read_facts

MACHINES = Path(__file__).parents[2] / "data" / "machines"
NAMES = sorted(path.stem for path in MACHINES.glob("*.json"))


def collected(name: str) -> dict[str, Any]:
    """A machine as the collector prints it; the format is in tests/data/machines/README.md."""
    raw: dict[str, Any] = json.loads((MACHINES / f"{name}.json").read_text())
    files = {}
    for path, text in raw["files"].items():
        listed = re.search(r"cpu\[([\d,-]+)\]", path)
        cpus = cpu_list(listed[1]) if listed else ()
        for cpu in cpus:
            files[re.sub(r"cpu\[[\d,-]+\]", f"cpu{cpu}", path)] = text
        if not listed:
            files[path] = text
    blocks = {n: lines for cpus, lines in raw["cpuinfo"].items() for n in cpu_list(cpus)}
    files["/proc/cpuinfo"] = "\n\n".join(f"processor\t: {n}\n{blocks[n]}" for n in sorted(blocks))
    return raw | {"files": files}


def facts_of(name: str) -> Facts:
    return read_facts(collected(name))


def changed(name: str, files: dict[str, str | None], **more: object) -> Facts:
    """The machine with some files other (None: absent)."""
    raw = collected(name)
    there = {path: text for path, text in (raw["files"] | files).items() if text is not None}
    return read_facts(raw | {"files": there} | more)


def counted(facts: Facts) -> tuple[int, int, int, int]:
    """CPUs, cores, sockets, nodes."""
    cores, sockets = {cpu.core for cpu in facts.cpus}, {cpu.socket for cpu in facts.cpus}
    return len(facts.cpus), len(cores), len(sockets), len(facts.nodes)


def caches(facts: Facts) -> dict[tuple[int, str, int, int], int]:
    """(level, kind, KiB, CPUs that share it) -> how many."""
    return dict(Counter((c.level, c.kind, c.size_bytes >> 10, len(c.cpus)) for c in facts.caches))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("2x64-smt-4-nodes-a-socket", (256, 128, 2, 8)),
        ("arm-2x80", (160, 160, 2, 2)),
        ("cpuset-of-3", (8, 4, 1, 1)),
        ("epyc-vm-2", (2, 2, 1, 1)),
        ("hybrid-cores", (20, 12, 1, 1)),
        ("quota-of-1.5", (4, 4, 1, 1)),
        ("quota-of-1.5-v1", (2, 2, 1, 1)),
    ],
)
def test_cpus_cores_sockets_and_nodes_are_counted(
    name: str, counts: tuple[int, int, int, int]
) -> None:
    assert counted(facts_of(name)) == counts


def test_every_machine_of_the_folder_is_counted_above() -> None:
    mark = test_cpus_cores_sockets_and_nodes_are_counted.pytestmark[0]  # type: ignore[attr-defined]
    assert [name for name, _ in mark.args[1]] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_facts_survive_being_stored(name: str) -> None:
    facts = facts_of(name)
    assert from_plain(Facts, json.loads(json.dumps(to_plain(facts)))) == facts


# --- 2 x 64 cores, SMT, 4 nodes a socket -----------------------------------------------------


def test_cores_are_unique_although_the_kernel_numbers_each_socket_from_0() -> None:
    facts = facts_of("2x64-smt-4-nodes-a-socket")
    siblings = {cpu.number for cpu in facts.cpus if cpu.core == 70}
    assert siblings == {70, 198}
    assert [cpu.number for cpu in facts.one_per_core] == list(range(128))


def test_each_node_has_its_cores_and_lies_in_one_socket() -> None:
    facts = facts_of("2x64-smt-4-nodes-a-socket")
    sockets = {n.number: {facts.cpus[cpu].socket for cpu in n.cpus} for n in facts.nodes}
    assert sockets == {n: {n // 4} for n in range(8)}
    assert facts.nodes[5].cpus == (*range(80, 96), *range(208, 224))
    assert facts.nodes[5].memory_bytes == 65930005 * 1024
    assert {cpu.node for cpu in facts.cpus if cpu.number in (80, 223)} == {5}


def test_caches_are_listed_once_with_who_shares_them() -> None:
    assert caches(facts_of("2x64-smt-4-nodes-a-socket")) == {
        (1, "data", 32, 2): 128,
        (1, "instruction", 32, 2): 128,
        (2, "unified", 512, 2): 128,
        (3, "unified", 32768, 16): 16,
    }


def test_gpus_are_named_and_service_displays_left_out() -> None:
    assert facts_of("2x64-smt-4-nodes-a-socket").gpus == ("NVIDIA A100-SXM4-80GB",)


# --- hybrid cores ----------------------------------------------------------------------------


def test_hybrid_cores_are_told_apart_and_favoured_cores_are_no_third_kind() -> None:
    facts = facts_of("hybrid-cores")
    assert Counter(cpu.kind for cpu in facts.cpus) == {"performance": 16, "efficiency": 4}
    assert [cpu.kind for cpu in facts.cpus[15:17]] == ["performance", "efficiency"]
    assert (2, "unified", 2048, 4) in caches(facts)
    assert facts.cpus[8].nominal_hz == 4.9e9


@pytest.mark.parametrize("told_by", ["cpufreq/cpuinfo_max_freq", "cpu_capacity"])
def test_hybrid_cores_are_known_by_clock_or_capacity_too(told_by: str) -> None:
    speeds = {f"/sys/devices/system/cpu/cpu{n}/{told_by}": "1024" for n in range(16)}
    speeds |= {f"/sys/devices/system/cpu/cpu{n}/{told_by}": "718" for n in range(16, 20)}
    unnamed = {f"/sys/devices/cpu_{kind}/cpus": None for kind in ("core", "atom")}
    facts = changed("hybrid-cores", {**unnamed, **speeds})
    assert Counter(cpu.kind for cpu in facts.cpus) == {"performance": 16, "efficiency": 4}


# --- Arm -------------------------------------------------------------------------------------


def test_arm_cores_are_named_although_cpuinfo_has_no_model_name() -> None:
    facts = facts_of("arm-2x80")
    assert facts.cpu_model == "Arm Neoverse-N1"
    assert facts.instruction_sets == ("neon", "neon_dotprod")
    assert {cpu.kind for cpu in facts.cpus} == {""}


def test_cores_of_two_kinds_are_both_named() -> None:
    block = "processor : {}\nFeatures : asimd{}\nCPU implementer : 0x41\nCPU part : {}"
    cpuinfo = "\n\n".join((block.format(0, " sve", "0xd85"), block.format(1, "", "0xd87")))
    facts = read_facts({"files": {"/proc/cpuinfo": cpuinfo}})
    assert facts.cpu_model == "Arm Cortex-X925 + Arm Cortex-A725"
    assert facts.instruction_sets == ("neon",), "what only some cores can do, a program cannot use"


def test_an_arm_part_that_is_not_in_the_table_keeps_its_numbers() -> None:
    cpuinfo = "processor : 0\nCPU implementer : 0x99\nCPU part : 0x123"
    assert read_facts({"files": {"/proc/cpuinfo": cpuinfo}}).cpu_model == (
        "implementer 0x99 part 0x123"
    )


@pytest.mark.parametrize(
    ("files", "uname", "name"),
    [
        ({"/proc/cpuinfo": "processor : 0\ncpu : POWER9, altivec"}, [], "POWER9, altivec"),
        ({"/sys/firmware/devicetree/base/model": "Board 5"}, [], "Board 5"),
        ({}, ["Linux", "z", "6.1", "#1", "s390x"], "s390x"),
        ({}, [], "unknown"),
    ],
)
def test_other_processors_are_named_by_what_there_is(
    files: dict[str, str], uname: list[str], name: str
) -> None:
    assert read_facts({"files": files, "uname": uname}).cpu_model == name


@pytest.mark.parametrize(
    ("flags", "sets"),
    [
        (
            "amx_bf16 avx512_bf16 avx_vnni amx_tile amx_int8",
            "avx_vnni avx512_bf16 amx_int8 amx_bf16",
        ),
        ("amx_bf16 amx_int8 avx512_vnni", "avx512_vnni"),
        ("asimd asimddp i8mm bf16", "neon neon_dotprod neon_i8mm neon_bf16"),
        ("asimd", "neon"),
    ],
)
def test_sets_for_bf16_and_integers_follow_from_the_flags(flags: str, sets: str) -> None:
    cpuinfo = f"processor : 0\nflags : {flags}"
    assert read_facts({"files": {"/proc/cpuinfo": cpuinfo}}).instruction_sets == tuple(sets.split())


# --- limits ----------------------------------------------------------------------------------


def test_a_cpuset_of_3_cpus_is_respected() -> None:
    facts = facts_of("cpuset-of-3")
    assert facts.allowed == (1, 5, 6)
    assert [cpu.number for cpu in facts.usable] == [1, 5, 6]
    assert [cpu.number for cpu in facts.one_per_core] == [1, 6], "5 shares its core with 1"
    assert facts.quota_cpus is None
    assert facts.memory_limit_bytes == 8 << 30
    assert facts.hypervisor == "KVM"


def test_a_quota_on_a_group_above_ours_holds() -> None:
    facts = facts_of("quota-of-1.5")
    assert facts.quota_cpus == 1.5
    assert facts.memory_limit_bytes == 2 << 30
    assert facts.hypervisor == "unknown"


def test_a_quota_of_cgroup_v1_holds_and_its_unlimited_memory_is_none() -> None:
    facts = facts_of("quota-of-1.5-v1")
    assert facts.quota_cpus == 1.5
    assert facts.memory_limit_bytes is None


def test_a_quota_above_the_cpus_there_are_binds_nothing() -> None:
    facts = changed("quota-of-1.5", {"/sys/fs/cgroup/kubepods.slice/pod7/cpu.max": "max 100000"})
    assert facts.quota_cpus is None


def test_offline_cpus_are_left_out_and_named() -> None:
    at = "/sys/devices/system/cpu"
    facts = changed("cpuset-of-3", {f"{at}/online": "0-3,6", f"{at}/offline": "4-5,7"})
    assert [cpu.number for cpu in facts.cpus] == [0, 1, 2, 3, 6]
    assert facts.allowed == (1, 6)
    assert next(m for m in facts.missing if "offline" in m.what).loses == "CPUs 4-5,7 are not used"
    assert max(cpu for cache in facts.caches for cpu in cache.cpus) == 6


# --- this machine ----------------------------------------------------------------------------


def test_a_virtual_machine_without_clock_and_smbios_says_so() -> None:
    facts = facts_of("epyc-vm-2")
    wide = ("avx512f", "avx512_vnni", "avx512_bf16")
    assert facts.instruction_sets == ("sse4.2", "avx", "avx2", "avx_vnni", *wide)
    assert [cpu.nominal_hz for cpu in facts.cpus] == [None, None], "cpuinfo's MHz is the TSC's"
    assert (3, "unified", 32768, 2) in caches(facts), "32 MiB, not the 384 MiB of the C library"
    missing = {m.what: m for m in facts.missing}
    assert "clock_hz=" in missing["nominal clock"].remedy
    assert "memory_bytes_per_second=" in missing["nominal memory speed"].remedy
    assert facts.hypervisor == "KVM"


def test_one_node_has_all_memory() -> None:
    facts = facts_of("epyc-vm-2")
    assert [node.memory_bytes for node in facts.nodes] == [facts.memory_bytes]


def test_what_a_person_says_of_the_machine_is_believed() -> None:
    raw = collected("epyc-vm-2")
    nominal = [("clock_hz", 4.1e9), ("memory_bytes_per_second", 6e11), ("other", 1.0)]
    facts = read_facts(raw, nominal)
    assert {cpu.nominal_hz for cpu in facts.cpus} == {4.1e9}
    assert (facts.memory.bytes_per_second, facts.memory.source) == (6e11, "given")
    assert not {"nominal clock", "nominal memory speed"} & {m.what for m in facts.missing}


# --- absence and garbage ---------------------------------------------------------------------


def test_nothing_at_all_is_one_cpu_and_a_list_of_what_is_missing() -> None:
    facts = read_facts({})
    assert counted(facts) == (1, 1, 1, 1)
    assert facts.allowed == (0,)
    told = {missing.what for missing in facts.missing}
    assert {"C compiler", "OpenMP", "MPI", "BLAS library", "fio", "cache sizes"} <= told
    assert all(missing.loses and missing.remedy for missing in facts.missing)


def test_a_system_is_named_by_its_distribution_else_by_its_kernel() -> None:
    uname = ["Linux", "h", "6.1", "#1", "x86_64"]
    files = {"/etc/os-release": 'ID=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'}
    found = read_facts({"files": files, "uname": uname})
    assert (found.system, found.host, found.kernel) == (
        "Debian GNU/Linux 12 (bookworm)",
        "h",
        "6.1",
    )
    assert read_facts({"uname": uname}).system == "Linux"


@pytest.mark.parametrize(
    ("count", "cpus"),
    [(1, 1), (2, 2), (0, 1), (-3, 1), ("4", 1), (None, 1)],
)
def test_without_any_list_there_are_as_many_cpus_as_python_counts(count: object, cpus: int) -> None:
    found = read_facts({"cpu_count": count})
    assert (len(found.cpus), found.memory_bytes) == (cpus, 0)


def test_without_sysfs_the_cpus_are_those_of_cpuinfo() -> None:
    raw = collected("epyc-vm-2")
    files = {p: t for p, t in raw["files"].items() if not p.startswith("/sys")}
    facts = read_facts(raw | {"files": files})
    assert counted(facts) == (2, 2, 1, 1)
    assert facts.caches == ()


def test_without_sibling_lists_cores_are_told_by_their_numbers() -> None:
    raw = collected("2x64-smt-4-nodes-a-socket")
    files = {p: t for p, t in raw["files"].items() if "siblings" not in p}
    assert counted(read_facts(raw | {"files": files})) == (256, 128, 2, 8)


def test_caches_of_unknown_size_are_left_out() -> None:
    at = "/sys/devices/system/cpu/cpu[01]/cache/index[0-9]/size"
    files = dict.fromkeys((p for p in collected("epyc-vm-2")["files"] if re.fullmatch(at, p)), "")
    facts = changed("epyc-vm-2", {**files})
    assert facts.caches == ()
    assert "cache sizes" in {missing.what for missing in facts.missing}


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
broken_text = st.text(max_size=30) | st.sampled_from(
    ["-1", "0", "9" * 400, "99999-0", "0-99999999", "max", "max 0", "-5 100000", "1 0", "0x41", "٣"]
)


@settings(max_examples=150)
@given(st.data())
def test_garbage_in_any_file_never_raises(data: st.DataObject) -> None:
    raw = collected(data.draw(st.sampled_from(["cpuset-of-3", "epyc-vm-2", "quota-of-1.5"])))
    for path in data.draw(st.lists(st.sampled_from(sorted(raw["files"])), max_size=8)):
        raw["files"][path] = data.draw(broken_text)
    facts = read_facts(raw)
    assert facts.cpus
    assert set(facts.allowed) <= {cpu.number for cpu in facts.cpus}


PARTS = ["files", "binaries", "commands", "uname", "uid", "cpu_count", "tried", "storage"]
PARTS += ["compilers", "mpis", "libraries", "tools"]
records = st.dictionaries(st.text(max_size=8), junk, max_size=3)


@pytest.mark.no_cover
@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(PARTS), junk | st.lists(records, max_size=3), max_size=4))
def test_garbage_in_any_part_never_raises(parts: dict[str, Any]) -> None:
    assert read_facts(collected("quota-of-1.5") | parts).cpus


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_garbage_in_the_smbios_table_never_raises(table: bytes) -> None:
    device = bytes([17, 0x22, 0, 0]) + table
    for content in (table, device):
        memory = read_facts({"binaries": {"/sys/firmware/dmi/tables/DMI": content.hex()}}).memory
        assert memory.channels is None or memory.channels > 0
