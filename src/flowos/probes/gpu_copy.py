"""Copies between host and GPU: into it, back, and both at once.

After CUDA's bandwidthTest, as in figure 5 of seed 004.
"""

from flowos.model import Chart, CudaDevice, Effort, Pairs
from flowos.probes._base import Headline, ProbeInfo
from flowos.probes._gpu import TorchProbe

SIZES = {
    "quick": (1 << 20, 64 << 20),
    "normal": tuple(1 << bits for bits in (12, 16, 18, 20, 22, 24, 26, 28)),
    "full": tuple(1 << bits for bits in range(12, 31)),
}
SECONDS = {"quick": 1.0, "normal": 3.0, "full": 12.0}


class GpuCopy(TorchProbe):
    """Metric bandwidth (byte/s) per device; the program sweeps to, pages and bytes itself.

    to: device, host, or both at once, then counting both. pages: pinned, locked in memory, or
    pageable, which the driver copies through a buffer of its own.
    """

    measure = "copy"
    on_host = False
    gpu_alone = False
    info = ProbeInfo(
        name="gpu_copy",
        title="Copies between host and GPU",
        charts=(
            Chart(
                title="Copies between host and GPU",
                kind="curve",
                x="bytes",
                metrics=("bandwidth",),
                series=("to", "pages"),
                facets=("device",),
                x_label="bytes of one copy",
                y_label="byte/s",
                log_x=True,
                log_y=True,
                ceilings=False,
            ),
        ),
        headlines=(
            Headline("Host to GPU", "bandwidth", (("to", "device"), ("pages", "pinned"))),
            Headline("GPU to host", "bandwidth", (("to", "host"), ("pages", "pinned"))),
        ),
    )

    def details(self, device: CudaDevice | None, effort: Effort) -> Pairs:
        sizes = ",".join(map(str, SIZES[effort]))
        return (("seconds", str(SECONDS[effort])), ("sizes", sizes))
