"""Two operations of DeepBench, forward, through PyTorch: a matrix product and a convolution.

As in table 2 of seed 004: 5124 x 9124 x 2560, and 224 x 224 x 3 with 16 images.
"""

from flowos.model import Chart, CudaDevice, Effort, Pairs
from flowos.probes._base import Headline, ProbeInfo
from flowos.probes._gpu import TorchProbe, energy_charts, nominal_gpu_flops

TYPES = ("f32", "tf32", "f16", "bf16")
HOST_TYPES = ("f32",)
SECONDS = {"quick": 1.0, "normal": 2.0, "full": 8.0}


class DeepBench(TorchProbe):
    """Metrics flops (flop/s), flops_per_joule and power (W) per device.

    The program sweeps operation and type itself.
    """

    measure = "deepbench"
    info = ProbeInfo(
        name="deepbench",
        title="DeepBench",
        charts=(
            Chart(
                title="Two operations of DeepBench",
                kind="bars",
                x="type",
                metrics=("flops",),
                series=("device",),
                facets=("operation",),
                x_label="type",
                y_label="flop/s",
                about="The convolution has three channels, so it is far from the peak.",
            ),
            *energy_charts("DeepBench", "flops", "flop/J", "type", ("operation",)),
        ),
        headlines=tuple(
            Headline(f"DeepBench {name}, f32", "flops", (("operation", name), ("type", "f32")))
            for name in ("gemm", "convolution")
        ),
        nominal=nominal_gpu_flops,
    )

    def details(self, device: CudaDevice | None, effort: Effort) -> Pairs:
        types = ",".join(TYPES if device else HOST_TYPES)
        return (("seconds", str(SECONDS[effort])), ("types", types))
