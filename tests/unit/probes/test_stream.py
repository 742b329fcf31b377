import json
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Cache,
    Case,
    Compiler,
    Exited,
    Facts,
    LogicalCpu,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.probes._arrays import elements_for, last_cache_bytes
from flowos.probes._suspicious import with_suspicion
from flowos.probes.stream import Stream, merged, stacks_of, thread_counts

MIB = 1 << 20
PROBE = Stream()


def compiler(name: str, version: str, openmp: bool = True) -> Compiler:
    family = name.partition("-")[0]
    assert family in ("gcc", "clang", "icx", "nvc", "other")
    return Compiler(
        name=name,
        family=family,  # type: ignore[arg-type]
        language="c",
        version=version,
        path=PurePath("/usr/bin") / name,
        openmp=openmp,
    )


def node(
    sockets: int = 1,
    cores: int = 2,
    threads: int = 1,
    l3_mib: int = 32,
    compilers: tuple[Compiler, ...] = (compiler("gcc-12", "12.2.0"),),
) -> Facts:
    """Cores numbered socket by socket, one L3 for each socket."""
    total = sockets * cores
    cpus = tuple(
        LogicalCpu(number=thread * total + core, core=core, socket=core // cores, node=0)
        for thread in range(threads)
        for core in range(total)
    )
    caches = tuple(
        Cache(
            level=3,
            kind="unified",
            size_bytes=l3_mib * MIB,
            line_bytes=64,
            cpus=tuple(c.number for c in cpus if c.socket == socket),
        )
        for socket in range(sockets)
    )
    first_level = Cache(level=1, kind="data", size_bytes=48 << 10, line_bytes=64, cpus=(0,))
    return Facts(
        host="n",
        system="Linux",
        kernel="6",
        architecture="x86_64",
        cpu_model="?",
        cpus=cpus,
        allowed=tuple(c.number for c in cpus),
        memory_bytes=256 << 30,
        caches=(first_level, *caches),
        instruction_sets=("sse4.2", "avx2", "avx512f"),
        compilers=compilers,
    )


def cases(facts: Facts, effort: str = "normal") -> tuple[Case, ...]:
    found = PROBE.cases(facts, MeasurementRequest(effort=effort))  # type: ignore[arg-type]
    assert not isinstance(found, Unmeasured)
    return found


def levels(found: tuple[Case, ...], axis: str) -> set[str]:
    return {case.level(axis) for case in found}


GCC_CLANG = (compiler("gcc-12", "12.2.0"), compiler("clang-16", "16.0.6"))


def test_no_compiler_with_openmp_says_what_to_install() -> None:
    without = node(compilers=(compiler("clang-16", "16.0.6", openmp=False),))
    found = PROBE.cases(without, MeasurementRequest())
    assert isinstance(found, Unmeasured)
    assert "apt install" in found.remedy


def test_cxx_and_unknown_compilers_are_not_taken() -> None:
    cxx = replace(compiler("gcc-12", "12"), language="c++")
    assert stacks_of(node(compilers=(cxx, compiler("other", "1")))) == ()


def test_quick_is_one_compiler_both_stores_one_thread_and_all_cores() -> None:
    found = cases(node(compilers=GCC_CLANG), "quick")
    assert [(c.level("compiler"), c.level("stores"), c.level("threads")) for c in found] == [
        ("gcc-12", "nt", "2"),
        ("gcc-12", "plain", "2"),
        ("gcc-12", "nt", "1"),
        ("gcc-12", "plain", "1"),
    ]


def test_normal_fits_forty_seconds_on_two_cores_in_four_rounds_of_two_turns() -> None:
    found = cases(node(compilers=GCC_CLANG))
    assert len(found) == 14
    assert 8 * sum(PROBE.seconds(c) for c in found) < 42
    assert levels(found, "flags") == {"O3-native", "O3-native-512", "O2"}
    assert levels(found, "pages") == {"huge", "system"}
    assert levels(found, "threads") == {"1", "2"}


def test_normal_takes_the_newest_compiler_of_each_family_and_full_takes_all() -> None:
    many = (compiler("gcc-9", "9.4.0"), compiler("gcc-12", "12.2.0"), *GCC_CLANG[1:])
    facts = node(compilers=many)
    assert levels(cases(facts), "compiler") == {"gcc-12", "clang-16"}
    assert levels(cases(facts, "full"), "compiler") == {"gcc-9", "gcc-12", "clang-16"}


def test_no_case_is_asked_for_twice() -> None:
    for effort in ("quick", "normal", "full"):
        found = cases(node(2, 8, 2, compilers=GCC_CLANG), effort)
        assert len(set(found)) == len(found)


def test_placements_that_come_to_the_same_are_measured_once_and_said() -> None:
    found = cases(node())
    assert {(c.level("places"), c.level("bind")) for c in found} == {
        ("cores", "close"),
        ("sockets", "close"),
    }
    assert merged(found)[0] == (
        "on this machine OpenMP places 1 or 2 threads alike by cores+close, cores+spread,"
        " threads+close and threads+spread (places+bind): measured once, as cores+close"
    )
    assert len(merged(found)) == len(set(merged(found)))
    assert merged([Case("stream", (("threads", "1"),))]) == ()


def test_full_holds_every_point_of_the_papers_table() -> None:
    found = cases(node(2, 4, 2, compilers=(compiler("gcc-12", "12.2.0"),)), "full")
    of_stack = {
        (c.level("places"), c.level("bind"), c.level("threads"))
        for c in found
        if c.level("flags") == "O3-native" and c.level("stores") == "nt"
    }
    stand_ins = {(*name.split("+"), c.level("threads")) for c in found for name in _same(c)}
    for places in ("threads", "cores", "sockets"):
        for bind in ("close", "spread"):
            for threads in ("1", "2", "4", "8", "16"):
                assert (places, bind, threads) in of_stack | stand_ins


def _same(case: Case) -> list[str]:
    return case.detail("same_as").split()


def test_intels_compiler_gets_its_flags_and_its_own_affinities() -> None:
    facts = node(2, 4, 2, compilers=(compiler("icx", "2025.0.4"),))
    found = cases(facts, "full")
    assert levels(found, "flags") == {"xHost", "xHost-zmm", "O2"}
    assert any("threads+scatter" in (*_same(c), _affinity(c)) for c in found)
    scatter = next(c for c in found if _affinity(c) == "cores+scatter")
    variables = dict(PROBE.program(scatter).variables)
    assert variables["KMP_AFFINITY"] == "granularity=core,scatter"
    assert "OMP_PLACES" not in variables


def _affinity(case: Case) -> str:
    return f"{case.level('places')}+{case.level('bind')}"


def test_nvidias_compiler_gets_the_papers_flags() -> None:
    (first, *_) = cases(node(compilers=(compiler("nvc", "23.1"),)))
    build = PROBE.program(first).build
    assert build is not None
    assert build.flags == ("-fast", "-mp", "-Mconcur")


@pytest.mark.parametrize("name", ["gcc-12", "clang-16", "icx"])
def test_loops_may_not_become_library_calls(name: str) -> None:
    for stack in stacks_of(node(compilers=(compiler(name, "16"),))):
        assert "-fno-builtin" in stack.flags
        assert ("-fno-tree-loop-distribute-patterns" in stack.flags) == (name == "gcc-12")


@pytest.mark.parametrize("name", ["gcc-12", "icx"])
def test_vectors_of_512_bits_are_not_asked_for_where_there_are_none(name: str) -> None:
    facts = replace(node(compilers=(compiler(name, "12"),)), instruction_sets=("avx2",))
    assert not any("512" in f or "zmm" in f for s in stacks_of(facts) for f in s.flags)


def test_arm_takes_its_own_spelling_of_native() -> None:
    arm = replace(node(), architecture="aarch64", instruction_sets=("neon",))
    assert "-mcpu=native" in stacks_of(arm)[0].flags


def test_arrays_are_four_times_all_last_level_caches_that_we_reach() -> None:
    two_sockets = node(sockets=2, cores=4, l3_mib=768)
    assert last_cache_bytes(two_sockets) == 2 * 768 * MIB
    assert elements_for(two_sockets) * 8 == 4 * 2 * 768 * MIB
    one_socket_allowed = replace(two_sockets, allowed=(0, 1))
    assert elements_for(one_socket_allowed) * 8 == 4 * 768 * MIB


def test_little_memory_makes_smaller_arrays_and_says_so() -> None:
    tight = replace(node(), memory_limit_bytes=600 * MIB)
    assert 3 * 8 * elements_for(tight) <= 300 * MIB
    first = cases(tight)[0]
    assert (
        first.detail("doubt")
        == "memory allows arrays of only 3.1 times the last-level caches, not 4"
    )


def test_far_too_little_memory_is_not_measured() -> None:
    found = PROBE.cases(replace(node(), memory_limit_bytes=64 * MIB), MeasurementRequest())
    assert isinstance(found, Unmeasured)


def test_unknown_caches_and_memory_still_give_arrays_and_a_doubt() -> None:
    unknown = replace(node(), caches=(), memory_bytes=0)
    assert elements_for(unknown) * 8 == 64 * MIB
    assert "caches are unknown" in cases(unknown)[0].detail("doubt")


def test_threads_go_by_doubling_to_all_cores_and_all_hardware_threads() -> None:
    assert thread_counts(node(cores=6, threads=2)) == (1, 2, 4, 6, 12)
    assert thread_counts(node(cores=1)) == (1,)


def test_a_quota_of_one_and_a_half_cpus_allows_one_thread() -> None:
    assert thread_counts(replace(node(cores=8), quota_cpus=1.5)) == (1,)
    assert thread_counts(replace(node(cores=8), quota_cpus=0.5)) == (1,)
    assert thread_counts(replace(node(cores=8), quota_cpus=3.0)) == (1, 2, 3)


def test_the_program_is_built_by_the_cases_compiler_and_bound_by_its_levels() -> None:
    case = cases(node())[0]
    program = PROBE.program(case)
    assert program.build is not None
    assert (program.build.source, program.build.compiler) == ("stream.c", "/usr/bin/gcc-12")
    assert "-march=native" in program.build.flags
    assert program.argv == ("16777216", "2", "8", "0.2", "nt", "system")
    assert dict(program.variables) == {
        "OMP_NUM_THREADS": "2",
        "OMP_DYNAMIC": "false",
        "OMP_PLACES": "cores",
        "OMP_PROC_BIND": "close",
    }
    assert (program.cores, program.limit_seconds > PROBE.seconds(case)) == (2, True)


def answer(cpus: str = "2") -> Outcome:
    notes = {"cpus": cpus}
    reading = {"metric": "triad", "unit": "byte/s", "values": [5e10], "levels": {}, "notes": notes}
    return Outcome(end=Exited(0), stdout=json.dumps({"readings": [reading]}).encode())


def test_a_good_answer_is_read_without_doubts() -> None:
    readings = PROBE.read(cases(node())[0], answer())
    assert not isinstance(readings, Unmeasured)
    assert readings[0].values == (5e10,)
    assert "suspicious" not in dict(readings[0].notes)


def test_threads_that_shared_a_cpu_and_small_arrays_are_noted() -> None:
    tight = replace(node(), memory_limit_bytes=600 * MIB)
    readings = PROBE.read(cases(tight)[0], answer(cpus="1"))
    assert not isinstance(readings, Unmeasured)
    assert dict(readings[0].notes)["suspicious"] == (
        "memory allows arrays of only 3.1 times the last-level caches, not 4; "
        "2 threads were seen on 1 cpus"
    )


def test_a_reason_already_noted_is_kept_and_not_said_twice() -> None:
    readings = PROBE.read(cases(node())[0], answer())
    assert not isinstance(readings, Unmeasured)
    twice = with_suspicion(with_suspicion(readings, ["a"]), ["b", "", "a"])
    assert dict(twice[0].notes)["suspicious"] == "a; b"


def test_a_program_that_found_its_answer_wrong_gives_no_number() -> None:
    wrong = Outcome(end=Exited(1), stderr=b"array a is wrong by a relative 0.5 after 8 passes\n")
    readings = PROBE.read(cases(node())[0], wrong)
    assert isinstance(readings, Unmeasured)
    assert "array a is wrong" in readings.reason


def test_memory_bounds_it_one_core_where_one_thread_ran() -> None:
    by_threads = {c.level("threads"): PROBE.ceiling(c) for c in cases(node())}
    memory = Case("working_set", levels=(("metric", "memory"),))
    assert by_threads == {"2": memory, "1": memory.at(cores="1")}


def test_the_charts_draw_axes_that_the_cases_have() -> None:
    axes = {axis for axis, _ in cases(node())[0].levels}
    for chart in PROBE.info.charts:
        assert {chart.x, *chart.series, *chart.facets} <= axes
