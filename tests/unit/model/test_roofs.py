"""Roofs: what memory and arithmetic permit a kernel."""

from flowos.model import Case, Measurement, Roof, Roofline, RooflineKernel


def measured(median: float, best: float, unit: str) -> Measurement:
    return Measurement(
        case=Case("p"), metric="m", unit=unit, count=3, median=median, low=0.0, high=0.0, best=best
    )


def kernel(type_: str, intensity: float, unit: str = "flop/s") -> RooflineKernel:
    return RooflineKernel(
        label="k", type=type_, intensity=intensity, measured=measured(6.0, 7.0, unit)
    )


F32 = Roof(label="f32", measured=measured(70.0, 80.0, "flop/s"))
F64 = Roof(label="f64", measured=measured(30.0, 40.0, "flop/s"))
MEMORY = Roof(label="memory", measured=measured(9.0, 10.0, "byte/s"))
LINES = Roofline(device="", memory=MEMORY, arithmetic=(F32, F64), kernels=())


def test_a_roof_is_the_best_that_was_seen() -> None:
    assert (MEMORY.rate, F32.rate, F64.rate) == (10.0, 80.0, 40.0)


def test_bytes_a_second_are_operations_by_the_intensity() -> None:
    assert kernel("f64", 0.5).flops == 6.0
    assert kernel("f64", 0.5, "byte/s").flops == 3.0


def test_memory_bounds_a_kernel_up_to_the_ridge_of_its_type() -> None:
    assert (LINES.ridge(F64), LINES.ridge(F32)) == (4.0, 8.0)
    at = (0.5, 4.0, 16.0)
    assert [LINES.attainable(kernel("f64", each)) for each in at] == [5.0, 40.0, 40.0]
    assert [LINES.attainable(kernel("f32", each)) for each in at] == [5.0, 40.0, 80.0]


def test_a_type_whose_roof_was_not_measured_has_the_highest() -> None:
    assert LINES.roof_of(kernel("f64", 1.0)) is F64
    assert LINES.roof_of(kernel("f16", 1.0)) is F32
