"""Rooflines of what was measured; intensities are closed forms."""

from dataclasses import replace

import pytest

from flowos.model import Case, Measurement, Pairs
from flowos.probes import probe_named, rooflines


def measured(
    probe: str, metric: str, unit: str, value: float, details: Pairs = (), **levels: str
) -> Measurement:
    return Measurement(
        case=Case(probe, tuple(levels.items()), details),
        metric=metric,
        unit=unit,
        count=1,
        median=value,
        low=value,
        high=value,
        best=value,
    )


MEMORY = measured("working_set", "memory", "byte/s", 60e9, cores="2")
PEAK = measured("flops", "flops", "flop/s", 250e9, cores="2", isa="avx512f", type="f64")
NARROW = measured("flops", "flops", "flop/s", 120e9, cores="2", isa="avx2", type="f64")
TRIAD = measured("stream", "triad", "byte/s", 55e9, threads="2", stores="nt")
PLAIN = measured("stream", "triad", "byte/s", 40e9, threads="2", stores="plain")
COPY = measured("stream", "copy", "byte/s", 58e9, threads="2", stores="nt")
ITERATION = (
    ("bytes_per_iteration", "8200"),
    ("flops_per_iteration", "2800"),
    ("precision", "fp32"),
)
N = 1000


def gemm(value: float, kind: str = "f64", n: int = N, probe: str = "gemm") -> Measurement:
    return measured(probe, "flops", "flop/s", value, type=kind, n=str(n))


def test_the_best_roofs_and_the_best_setting_of_each_kernel_are_taken() -> None:
    (found,) = rooflines((MEMORY, NARROW, PEAK, PLAIN, TRIAD, COPY, gemm(1e9), gemm(2e9)))
    assert (found.device, found.memory.measured) == ("", MEMORY)
    assert [(roof.label, roof.measured) for roof in found.arithmetic] == [("f64", PEAK)]
    assert [(k.label, k.measured) for k in found.kernels] == [
        ("STREAM triad", TRIAD),
        ("GEMM f64", gemm(2e9)),
    ]
    (turned,) = rooflines((gemm(2e9), gemm(1e9), TRIAD, PLAIN, PEAK, NARROW, MEMORY))
    assert turned == found


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (MEMORY, TRIAD),
        (PEAK, gemm(1e9)),
        (MEMORY, PEAK),
        (measured("gone", "flops", "flop/s", 1e9, type="f64"), MEMORY),
        (MEMORY, PEAK, gemm(0.0)),
    ],
)
def test_without_both_roofs_and_a_kernel_there_is_none(rows: tuple[Measurement, ...]) -> None:
    assert rooflines(rows) == ()


def test_a_kernel_that_gave_nothing_at_the_median_is_left_out() -> None:
    assert rooflines((MEMORY, PEAK, replace(gemm(1e9), median=0.0))) == ()


def test_the_memory_roof_is_stream_where_the_working_set_was_not_measured() -> None:
    (found,) = rooflines((PEAK, PLAIN, TRIAD))
    assert found.memory.measured == TRIAD


def test_each_gpu_has_its_own_and_the_host_of_pytorch_is_the_processors() -> None:
    rows = [
        (
            measured("gpu_stream", "bandwidth", "byte/s", 3e12, kernel="triad", device=device),
            measured("gpu_stream", "bandwidth", "byte/s", 3.1e12, kernel="copy", device=device),
            measured("gpu_gemm", "flops", "flop/s", 5e13, device=device, type="f64", n="4096"),
            measured("gpu_gemm", "flops_per_joule", "flop/J", 1e9, device=device, type="f64"),
            measured("nbody", "power", "W", 600.0, device=device, type="f64"),
        )
        for device in ("0", "1", "cpu")
    ]
    found = rooflines(tuple(m for some in rows for m in some))
    assert [each.device for each in found] == ["0", "1", ""]
    assert {k.label for k in found[0].kernels} == {"STREAM triad", "GEMM by PyTorch f64"}
    assert found[0].memory.rate == 3.1e12


def test_a_power_is_no_point() -> None:
    probe = probe_named("gpu_stream")
    assert probe
    assert probe.intensity(measured("gpu_stream", "power", "W", 1.0, kernel="triad")) is None


@pytest.mark.parametrize(
    ("m", "flop_per_byte"),
    [
        (TRIAD, 2 / 24),
        (gemm(1.0), 2 * N**3 / (3 * 8 * N**2)),
        (gemm(1.0, "f32"), 2 * N**3 / (3 * 4 * N**2)),
        (gemm(1.0, "tf32", probe="gpu_gemm"), 2 * N**3 / (3 * 4 * N**2)),
        (gemm(1.0, "bf16", probe="gpu_gemm"), 2 * N**3 / (3 * 2 * N**2)),
        (gemm(1.0, "fp8", probe="gpu_gemm"), 2 * N**3 / ((1 + 1 + 2) * N**2)),
        (
            measured("nbody", "flops", "flop/s", 1.0, (("bodies", "8192"),), type="f32"),
            20 * 8192**2 / (8192 * (4 + 3) * 4),
        ),
        (
            measured("hpl", "flops", "flop/s", 1.0, n="4000"),
            (2 / 3 * 4000**3 + 3 / 2 * 4000**2) / (16 * 4000**2),
        ),
        (measured("hpcg", "bandwidth", "byte/s", 1.0), 0.158),
        (measured("solve", "bandwidth", "byte/s", 1.0, ITERATION), 28 / 82),
    ],
)
def test_operations_over_bytes_that_must_be_moved(m: Measurement, flop_per_byte: float) -> None:
    probe = probe_named(m.case.probe)
    assert probe
    at = probe.intensity(m)
    assert at
    assert at.flop_per_byte == pytest.approx(flop_per_byte)


@pytest.mark.parametrize(
    "m",
    [
        COPY,
        measured("clock", "clock", "Hz", 4e9),
        measured("hpl", "time", "second", 1.0, n="4000"),
        measured("hpcg", "flops", "flop/s", 1e9),
        measured("solve", "total", "second", 1.0, (*ITERATION, ("levels", "1"))),
        measured("solve", "bandwidth", "byte/s", 1e9),
        measured("solve", "bandwidth", "byte/s", 1e9, ITERATION, nodes="2"),
    ],
)
def test_a_number_without_counted_operations_has_no_intensity(m: Measurement) -> None:
    probe = probe_named(m.case.probe)
    assert probe
    assert probe.intensity(m) is None


def test_an_iteration_of_the_solver_stands_by_its_preconditioner_and_precision() -> None:
    rows = [
        measured(
            "solve",
            "bandwidth",
            "byte/s",
            50e9,
            (*ITERATION, ("levels", levels)),
            problem="poisson",
        )
        for levels in ("1", "5")
    ]
    single = measured("flops", "flops", "flop/s", 500e9, cores="2", isa="avx512f", type="f32")
    (found,) = rooflines((MEMORY, PEAK, single, *rows))
    assert [(k.label, k.type) for k in found.kernels] == [
        ("CG, IC, poisson", "f32"),
        ("CG, multigrid, poisson", "f32"),
    ]
    assert found.kernels[0].flops == pytest.approx(50e9 * 28 / 82)
    assert found.attainable(found.kernels[0]) == pytest.approx(60e9 * 28 / 82)


def test_bf16_is_a_roof_of_its_own_type_alone_and_integers_are_none() -> None:
    tiles = measured("flops", "flops", "flop/s", 9e12, cores="2", isa="amx_bf16", type="bf16")
    integers = measured("flops", "ops", "op/s", 2e13, cores="2", isa="amx_int8", type="i8")
    half = gemm(4e12, "bf16", probe="gpu_gemm")
    half = replace(half, case=half.case.at(device="cpu"))
    (found,) = rooflines((MEMORY, PEAK, tiles, integers, gemm(2e11), half))
    assert [roof.label for roof in found.arithmetic] == ["bf16", "f64"]
    roofs = {kernel.type: found.roof_of(kernel).measured for kernel in found.kernels}
    assert roofs == {"f64": PEAK, "bf16": tiles}
