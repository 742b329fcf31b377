"""Numbers are scaled in one place, with three digits, and what is no number says so."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.model import Cache, Facts, LogicalCpu
from flowos.report import number
from flowos.report._units import ONE, common_scale, digits, scale_for, share, size, span
from flowos.report._words import facts_rows, machine_line


@pytest.mark.parametrize(
    ("value", "unit", "metric", "shown"),
    [
        (61.2e9, "byte/s", "", "61.2 GB/s"),
        (133e9, "flop/s", "", "133 Gflop/s"),
        (999.9e9, "flop/s", "", "1.00 Tflop/s"),
        (0.9995e9, "byte/s", "", "1.00 GB/s"),
        (0.9994e9, "byte/s", "", "999 MB/s"),
        (0.11e-6, "second", "", "110 ns"),
        (5.7e-6, "second", "", "5.70 us"),
        (1e-10, "second", "", "0.100 ns"),
        (3661.0, "second", "", "3661 s"),
        (70.5e3, "1/s", "iops", "70.5 k IOPS"),
        (70.5, "1/s", "iops", "70.5 IOPS"),
        (70.5e3, "1/s", "rate", "70.5 k/s"),
        (4.1e9, "Hz", "", "4.10 GHz"),
        (3.004, "1", "", "3.00"),
        (0.0, "byte/s", "", "0 B/s"),
        (-2e9, "byte/s", "", "-2.00 GB/s"),
        (math.nan, "byte/s", "", "n/a"),
        (math.inf, "second", "", "n/a"),
    ],
)
def test_a_number_reads_well(value: float, unit: str, metric: str, shown: str) -> None:
    assert number(value, unit, metric) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.inf, "n/a"),
        (0.9996, "1.00"),
        (0.9995, "1.00"),
        (9.996, "10.0"),
        (1e-4, "0.000100"),
        (9.99e-5, "9.99e-05"),
        (999999, "999999"),
        (1e6, "1.00e+06"),
        (1e7, "1.00e+07"),
        (1e-5, "1.00e-05"),
        (123456, "123456"),
    ],
)
def test_three_digits_also_at_the_edges(value: float, shown: str) -> None:
    assert digits(value) == shown


@given(st.floats(min_value=1e-4, max_value=999.4))
def test_any_number_below_a_thousand_has_three_digits(value: float) -> None:
    shown = digits(value)
    assert len(shown.replace(".", "").lstrip("0")) == 3
    assert float(shown) == pytest.approx(value, rel=0.00501)
    assert digits(-value) == f"-{shown}"


@pytest.mark.parametrize(
    ("values", "unit", "symbol"),
    [
        ((1e8, 1e8, 2e9), "byte/s", "GB/s"),
        ((0.99e8, 0.99e8, 2e9), "byte/s", "MB/s"),
        ((1e9, 1e6), "byte/s", "GB/s"),
        ((0.0, 0.2), "second", "ms"),
        ((math.nan, 2e6), "byte/s", "MB/s"),
    ],
)
def test_most_values_read_as_a_tenth_to_a_thousand_of_their_scale(
    values: tuple[float, ...], unit: str, symbol: str
) -> None:
    assert common_scale(values, unit).symbol == symbol


def test_what_has_no_unit_is_not_scaled() -> None:
    assert (ONE.text(1.5), number(1.5e9, "1"), number(1500, "")) == ("1.50", "1.50e+09", "1500")


def test_the_ends_of_a_span_share_their_unit() -> None:
    assert span(900e6, 1.1e9, "byte/s") == "0.900 to 1.10 GB/s"
    assert span(1.0, math.nan, "byte/s") == "n/a"


def test_shares_and_sizes() -> None:
    assert [share(v) for v in (0.883, 0.0123, 1.04, math.nan)] == ["88%", "1.2%", "104%", "n/a"]
    assert [share(v) for v in (0.095, 0.0949)] == ["10%", "9.5%"]
    assert [share(v) for v in (0.00047, 0.000999, 0.001, 0.0)] == ["0.047%", "0.1%", "0.1%", "0.0%"]
    assert [size(v) for v in (0, 0.5, 1023)] == ["0 B", "0.5 B", "1023 B"]
    assert [size(v) for v in (8, 1 << 10, 3 << 19, 32 << 20, 1 << 41, math.inf)] == [
        "8 B",
        "1 KiB",
        "1.5 MiB",
        "32 MiB",
        "2 TiB",
        "n/a",
    ]


def test_a_scale_without_any_number_is_the_base_unit() -> None:
    assert scale_for((math.nan,), "second").symbol == "s"


BARE = Facts(
    host="h",
    system="S",
    kernel="k",
    architecture="riscv64",
    cpu_model="c",
    cpus=(LogicalCpu(number=3, core=0, socket=0, node=0),),
    allowed=(3,),
)


def test_what_is_not_known_of_a_machine_is_left_out() -> None:
    assert machine_line(BARE) == "1 core, S, kernel k"
    for name, words in {
        "kvm": "a virtual machine under kvm",
        "unknown": "a virtual machine",
    }.items():
        assert machine_line(replace(BARE, hypervisor=name)).endswith(f"kernel k, {words}")
    rows = dict(facts_rows(BARE))
    assert rows["Usable"] == "1 core, cpu 3"
    assert rows["Memory"] == "nominal bandwidth unknown"
    assert "Caches" not in rows


def test_a_machine_on_which_we_may_use_nothing_is_described() -> None:
    nothing = Facts(
        host="h", system="S", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
    )
    assert dict(facts_rows(nothing))["Usable"] == "0 cores, no cpu"


def test_numbers_side_by_side_take_the_unit_in_which_most_read_well() -> None:
    def common(*values: float, unit: str = "byte/s") -> str:
        return common_scale(values, unit).symbol

    assert common(40e6, 60e9, 70e9) == "GB/s"
    assert common(9e6, 100e6, 1e9, 15e9) == "GB/s"
    assert common(300e-9, 5e-6, 400e-6, unit="second") == "us"
    assert common(980e-6, 1.9e-3, 54e-6, 70e-6, unit="second") == "us"
    assert common(50e9, 99e9, 250e9, 1.3e12) == "GB/s"
    assert common(0.0, math.nan) == "B/s"


def test_caches_alike_are_counted_and_a_single_one_is_not() -> None:
    def cache(level: int, number: int) -> Cache:
        return Cache(level=level, kind="unified", size_bytes=1 << 20, line_bytes=64, cpus=(number,))

    facts = replace(BARE, caches=(cache(2, 0), cache(2, 1), cache(3, 0)))
    rows = dict(facts_rows(facts))
    assert "2 x L2 unified 1 MiB, L3 unified 1 MiB" in rows.values()
