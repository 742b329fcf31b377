from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from types import MappingProxyType

import pytest

from flowos.model import (
    Case,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Run,
    Unmeasured,
)
from flowos.probes._nominal import nominal_flops
from flowos.probes.fio import Fio
from flowos.probes.flops import Flops, suspicious
from flowos.probes.gemm import Gemm
from flowos.probes.stream import Stream
from flowos.probes.working_set import WorkingSet
from flowos.report import Report, Section, html

PROBE = Flops()
MakeNode = Callable[..., Facts]
CasesOf = Callable[..., tuple[Case, ...]]
ANSWER = """{"readings": [{"metric": "flops", "unit": "flop/s", "levels": {"isa": "avx2",
"type": "f64"}, "notes": {"kernel": "12 chains"}, "values": [6e10, 7e10]}]}"""


@pytest.fixture
def cases_of(node: MakeNode) -> Callable[..., tuple[Case, ...]]:
    def of(sockets: int = 1, cores: int = 2) -> tuple[Case, ...]:
        cases = PROBE.cases(node(sockets, cores), MeasurementRequest())
        assert not isinstance(cases, Unmeasured)
        return cases

    return of


def answered(stdout: str) -> Outcome:
    return Outcome(end=Exited(0), stdout=stdout.encode())


def measured(
    isa: str,
    best: float,
    cores: str = "1",
    kind: str = "f64",
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Measurement:
    """refused: instruction sets, and why."""
    details = tuple((f"refused {sets}", why) for sets, why in refused.items())
    levels = (("cores", cores), ("isa", isa), ("type", kind))
    integers = kind == "i8"
    return Measurement(
        case=Case("flops", levels=levels, details=details),
        metric="ops" if integers else "flops",
        unit="op/s" if integers else "flop/s",
        count=1,
        median=best,
        low=best,
        high=best,
        best=best,
    )


def test_one_core_one_socket_and_all_are_measured(cases_of: CasesOf) -> None:
    cases = cases_of(sockets=2, cores=20)
    assert [case.level("cores") for case in cases] == ["1", "20", "40"]
    assert PROBE.program(cases[1]).cores == 20
    assert PROBE.program(cases[0]).argv == ("--cpus", "0", "--repetitions", "4")


def test_the_program_is_built_without_asking_for_an_instruction_set(cases_of: CasesOf) -> None:
    build = PROBE.program(cases_of()[0]).build
    assert build is not None
    assert (build.source, build.flags) == ("flops.c", ("-O2", "-pthread"))


def test_a_change_of_a_header_changes_the_key_of_the_build(cases_of: CasesOf) -> None:
    build = PROBE.program(cases_of()[0]).build
    assert build is not None
    assert build.key != replace(build, flags=("-O3",)).key
    assert build.key.startswith("flops-")


def test_without_a_compiler_nothing_is_measured(node: MakeNode) -> None:
    assert isinstance(PROBE.cases(node(compilers=()), MeasurementRequest()), Unmeasured)


def test_readings_carry_instruction_set_and_type(cases_of: CasesOf) -> None:
    case = cases_of()[0]
    readings = PROBE.read(case, answered(ANSWER))
    assert not isinstance(readings, Unmeasured)
    assert readings[0].levels == (("isa", "avx2"), ("type", "f64"))
    assert PROBE.ceiling(case) is None
    assert 0 < PROBE.seconds(case) < 2


def test_a_wider_set_that_is_slower_is_doubted_by_name() -> None:
    (doubt,) = suspicious((measured("avx2", 70e9), measured("avx512f", 42e9)))
    assert doubt.startswith("avx512f f64 on 1 core does 42 Gflop/s, less than the narrower avx2")
    assert "with 70 Gflop/s:" in doubt


@pytest.mark.parametrize(("rate", "doubted"), [(63e9, False), (62.9e9, True)])
def test_a_wider_set_may_be_a_tenth_slower(rate: float, doubted: bool) -> None:
    assert bool(suspicious((measured("avx2", 70e9), measured("avx512f", rate)))) is doubted


@pytest.mark.parametrize(("wider", "more"), [(1, ""), (2, "; and 1 more alike"), (3, "; and 2 m")])
def test_of_many_doubts_the_first_is_told(wider: int, more: str) -> None:
    slower = [measured(isa, 10e9) for isa in ("avx", "avx2", "avx512f")[:wider]]
    (doubt,) = suspicious((measured("sse4.2", 70e9), *slower))
    assert doubt.startswith("avx f64 on 1 core does 10 Gflop/s")
    assert ("more alike" in doubt) is (wider > 1)
    assert more in doubt


def test_sets_in_order_other_probes_and_other_cores_raise_no_doubt() -> None:
    fine = (measured("avx", 68e9), measured("avx2", 66e9), measured("avx512f", 130e9))
    assert suspicious(fine) == ()
    assert suspicious((measured("avx2", 9.0, cores="2"), measured("avx512f", 8.0))) == ()


def test_sets_are_compared_for_the_type_that_they_have() -> None:
    both = (measured("avx512f", 130e9), measured("avx512_bf16", 99e9, kind="bf16"))
    assert suspicious((*both, measured("amx_int8", 9e9, kind="i8"))) == ()
    tiles = (measured("avx512_vnni", 80e9, kind="i8"), measured("amx_int8", 9e9, kind="i8"))
    (doubt,) = suspicious(tiles)
    assert doubt.startswith(
        "amx_int8 i8 on 1 core does 9 Gop/s, less than the narrower avx512_vnni"
    )


def test_tiles_that_the_kernel_refuses_are_told_once_for_each_number_of_cores() -> None:
    why = "the kernel refuses the tiles of AMX: Invalid argument"
    both = {"amx_int8, amx_bf16": why}
    rows = [measured(isa, 1e9, n, refused=both) for n in ("1", "2") for isa in ("avx", "avx2")]
    (one, told), (two, _) = PROBE.left_out(rows)
    assert (one.label, two.level("cores")) == ("flops cores=1 isa=amx_int8, amx_bf16", "2")
    assert told.reason == why
    assert "Linux 5.16" in told.remedy
    assert PROBE.left_out([measured("avx2", 1e9)]) == ()


def test_each_set_that_computes_wrong_is_told() -> None:
    wrong = {"avx512_bf16": "its sums are wrong", "avx_vnni": "Illegal instruction"}
    left = PROBE.left_out([measured("avx2", 1e9, refused=wrong)])
    assert {case.level("isa"): told.reason for case, told in left} == wrong
    assert {told.remedy for _, told in left} == {""}


def test_the_page_shows_each_type_in_a_panel_and_integers_in_op_per_second(
    node: MakeNode,
) -> None:
    rows = (
        measured("avx512f", 130e9),
        measured("amx_bf16", 2.1e12, kind="bf16"),
        measured("avx512_vnni", 1.1e12, kind="i8"),
        measured("amx_int8", 4.3e12, kind="i8"),
    )
    run = Run(
        id="r",
        started="2026-11-20T10:00:00Z",
        host="h",
        version="1",
        request=MeasurementRequest(),
        facts=node(),
    )
    section = Section(probe="flops", title=PROBE.info.title, charts=PROBE.info.charts)
    page = unescape(html(Report(run=run, measurements=rows, sections=(section,))))
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    first, second = (page.index(f"{what} ceiling per inst") for what in ("Arithmetic", "Integer"))
    assert all(words in page[first:second] for words in ("type f64", "type bf16", "Tflop/s"))
    assert "type i8" not in page[first:second]
    assert all(words in page[second:] for words in ("type i8", "amx_int8", "4.30 Top/s"))


def test_the_nominal_ceiling_is_that_of_the_paper() -> None:
    """Seed 001, section 3.1: 2200 MHz x 20 cores x 32 (64) flop per clock = 1.4 (2.8) Tflop/s."""
    assert nominal_flops(2.2e9, "avx512f", "f64", 20) == pytest.approx(1.408e12)
    assert nominal_flops(2.2e9, "avx512f", "f32", 20) == pytest.approx(2.816e12)
    assert nominal_flops(2.2e9, "sve", "f64", 20) is None
    assert nominal_flops(2.2e9, "avx2", "f16", 20) is None


def test_the_nominal_ceiling_of_a_case_names_its_assumptions(node: MakeNode) -> None:
    here = node(nominal_hz=2.0e9)
    case = Case("flops", levels=(("cores", "2"), ("isa", "avx2"), ("type", "f64")))
    assert Flops.info.nominal(case, "flop/s", here) == ("2.00 GHz x avx2 x 2 pipes x 2 cores", 64e9)
    gemm = Case(
        "gemm",
        levels=(("cores", "2"), ("isa", "default"), ("type", "f64")),
        details=(("widest", "avx512f"),),
    )
    said = "2.00 GHz x avx512f x 2 pipes x 2 cores"
    assert Gemm.info.nominal(gemm, "flop/s", here) == (said, 128e9)
    assert Flops.info.nominal(case.at(isa="sve"), "flop/s", here) is None
    assert Flops.info.nominal(case, "Hz", here) is None
    assert Fio.info.nominal(Case("fio"), "byte/s", here) is None


def test_without_a_known_clock_or_memory_there_is_no_nominal_ceiling(node: MakeNode) -> None:
    case = Case("flops", levels=(("cores", "2"), ("isa", "avx2"), ("type", "f64")))
    assert Flops.info.nominal(case, "flop/s", node()) is None
    assert Stream.info.nominal(Case("stream"), "byte/s", node()) is None


def test_the_nominal_speed_of_memory_bounds_only_what_lies_in_memory(node: MakeNode) -> None:
    facts = node(l3_bytes=32 << 20)
    facts = replace(facts, memory=replace(facts.memory, bytes_per_second=100e9))
    in_memory = Case("working_set", levels=(("bytes", str(256 << 20)),))
    assert Stream.info.nominal(Case("stream"), "byte/s", facts) == ("memory, nominal", 100e9)
    assert WorkingSet.info.nominal(in_memory, "byte/s", facts) == ("memory, nominal", 100e9)
    assert WorkingSet.info.nominal(in_memory.at(bytes="65536"), "byte/s", facts) is None
    assert WorkingSet.info.nominal(in_memory, "second", facts) is None
