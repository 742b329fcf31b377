"""Matrix products on GPUs through PyTorch, per type of number, with tensor cores and without.

After figure 4 of seed 001: GEMM over matrix size against clock x multiprocessors x width.
"""

from flowos._dataclasses import replace
from flowos.model import (
    Case,
    Chart,
    CudaDevice,
    Effort,
    Facts,
    Measurement,
    MeasurementRequest,
    Pairs,
    Unmeasured,
)
from flowos.probes._base import ComparedCase, Headline, ProbeInfo, compared_case
from flowos.probes._env_charts import env_curve
from flowos.probes._gpu import HOST, TorchProbe, energy_charts, nominal_gpu_flops
from flowos.probes._intensity import Intensity, of_product

TYPES = ("f64", "f32", "tf32", "f16", "bf16", "fp8")
BYTES = {"f64": 24, "f32": 12, "tf32": 12, "f16": 6, "bf16": 6, "fp8": 4}
"""Of an element of both factors and of the product, which of fp8 is bf16."""
HOST_TYPES = ("f64", "f32", "bf16")
"""Those that PyTorch multiplies on processors with a library made for it."""
SIZES = {
    "quick": (1024, 4096, 8192),
    "normal": (256, 512, 1024, 2048, 3264, 4096, 8192, 9216, 13056),
    "full": (256, 512, 1024, 1536, 2048, 3264, 4096, 6144, 8192, 9216, 11264, 13056, 16384),
}
"""3264, 9216 and 13056 are those at which the paper's types are fastest."""
HOST_MAX_SIZE = {"quick": 1024, "normal": 2048, "full": 4096}
SECONDS = {"quick": 3.0, "normal": 8.0, "full": 60.0}


class GpuGemm(TorchProbe):
    """Metrics flops (flop/s), flops_per_joule and power (W); the program sweeps type and n itself.

    f32 is FP32 throughout; tf32, f16, bf16 and fp8 use tensor cores, and f64 where cuBLAS does so.
    """

    measure = "gemm"
    info = ProbeInfo(
        name="gpu_gemm",
        title="Matrix products by PyTorch, on GPUs",
        charts=(
            Chart(
                title="GEMM by PyTorch over matrix size",
                kind="curve",
                x="n",
                metrics=("flops",),
                series=("type",),
                facets=("device",),
                x_label="n (matrices of n x n)",
                y_label="flop/s",
                log_y=True,
                about="By the library that PyTorch calls (cuBLAS), of random numbers.",
            ),
            *energy_charts(
                "GEMM by PyTorch", "flops", "flop/J", "type", about=", at the largest size"
            ),
        ),
        headlines=(
            Headline("Matrix product by PyTorch, f64", "flops", (("type", "f64"),)),
            Headline("Matrix product by PyTorch, f32", "flops", (("type", "f32"),)),
            Headline("Matrix product by PyTorch, bf16", "flops", (("type", "bf16"),)),
        ),
        roofs=("flops",),
        deciding=("flops",),
        env_charts=(
            env_curve(
                "GEMM by PyTorch", "n", "flops", "type", "PyTorch of each environment.", "flop/s"
            ),
        ),
        own_python=True,
        nominal=nominal_gpu_flops,
    )

    def details(self, device: CudaDevice | None, effort: Effort) -> Pairs:
        sizes = [n for n in SIZES[effort] if device or n <= HOST_MAX_SIZE[effort]]
        return (
            ("seconds", str(SECONDS[effort])),
            ("sizes", ",".join(map(str, sizes))),
            ("types", ",".join(TYPES if device else HOST_TYPES)),
        )

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """Quick sizes on the first device, by the PyTorch of each environment."""
        cases = self.cases(facts, replace(request, effort="quick"))
        if isinstance(cases, Unmeasured):
            return cases
        return tuple(
            compared_case(self, case, ("device",), f"PyTorch {case.detail('torch')}")
            for case in cases[:1]
        )

    def intensity(self, measured: Measurement) -> Intensity | None:
        if measured.unit != "flop/s":
            return None
        kind, n = measured.case.level("type"), int(measured.case.level("n"))
        return of_product(f"GEMM by PyTorch {kind}", kind, n, BYTES[kind])

    def ceiling(self, case: Case) -> Case | None:
        """On processors the arithmetic ceiling of all cores for this type."""
        if case.level("device") != HOST or case.level("type") not in ("f64", "f32"):
            return None
        return Case("flops", levels=(("type", case.level("type")),))
