"""Nominal values against data sheets and to the byte."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import Case, Facts
from flowos.probes._arrays import CACHES_PER_ARRAY, last_cache_bytes
from flowos.probes._nominal import nominal_arithmetic, nominal_flops, nominal_memory

MakeNode = Callable[..., Facts]


@pytest.mark.parametrize(
    ("isa", "type_", "lanes"),
    [
        ("sse4.2", "f64", 2),
        ("sse4.2", "f32", 4),
        ("avx", "f64", 4),
        ("avx2", "f32", 8),
        ("avx512f", "f64", 8),
        ("avx512f", "f32", 16),
        ("neon", "f64", 2),
        ("neon", "f32", 4),
        ("amx_bf16", "bf16", 512 / 2),
        ("amx_int8", "i8", 1024 / 2),
        ("avx512_bf16", "bf16", None),
        ("avx512_vnni", "i8", None),
        ("sve", "f64", None),
        ("avx2", "f16", None),
    ],
)
def test_two_pipes_multiply_and_add_all_lanes_in_each_cycle(
    isa: str, type_: str, lanes: float | None
) -> None:
    found = nominal_flops(2.5e9, isa, type_, 6)
    assert found == (None if lanes is None else 2.5e9 * lanes * 2 * 2 * 6)


def test_tiles_are_named_by_their_operations_in_a_cycle(node: MakeNode) -> None:
    case = Case("flops", levels=(("cores", "2"), ("isa", "amx_int8"), ("type", "i8")))
    found = nominal_arithmetic(case, "op/s", node(nominal_hz=2.0e9))
    assert found == ("2.00 GHz x amx_int8 x 2048 op x 2 cores", 2 * 2.0e9 * 2048)


@pytest.fixture
def facts(node: MakeNode) -> Facts:
    return replace(node(), memory=replace(node().memory, bytes_per_second=51.2e9))


@pytest.mark.parametrize(("less", "known"), [(0, True), (1, False), (-1, True)])
def test_memory_is_measured_from_an_array_of_several_caches_on(
    facts: Facts, less: int, known: bool
) -> None:
    size = CACHES_PER_ARRAY * last_cache_bytes(facts) - less
    found = nominal_memory(Case("p", (("bytes", str(size)),)), "byte/s", facts)
    assert found == (("memory, nominal", 51.2e9) if known else None)


def test_a_rate_without_a_data_sheet_has_no_nominal_value(facts: Facts, node: MakeNode) -> None:
    case = Case("p")
    assert nominal_memory(case, "byte/s", facts) is not None
    assert nominal_memory(case, "flop/s", facts) is None
    assert nominal_memory(case, "byte/s", node()) is None


def test_the_slowest_core_decides_and_one_core_is_the_default(node: MakeNode) -> None:
    facts = node(nominal_hz=2e9)
    slower = replace(facts.cpus[0], nominal_hz=1e9)
    facts = replace(facts, cpus=(slower, *facts.cpus[1:]))
    case = Case("p", (("isa", "avx2"), ("type", "f64")))
    assert nominal_arithmetic(case, "flop/s", facts) == (
        "1.00 GHz x avx2 x 2 pipes x 1 core",
        16e9,
    )
    assert nominal_arithmetic(case.at(cores="2"), "flop/s", facts) == (
        "1.00 GHz x avx2 x 2 pipes x 2 cores",
        32e9,
    )
    assert nominal_arithmetic(case, "byte/s", facts) is None
