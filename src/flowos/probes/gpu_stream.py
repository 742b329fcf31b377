"""STREAM on GPUs through PyTorch, whose element-wise kernels are one pass each.

Source: McCalpin, STREAM; figure 7 of seed 001.
"""

from flowos.model import Chart, CudaDevice, Effort, Measurement, Pairs
from flowos.probes._base import Headline, ProbeInfo
from flowos.probes._gpu import TorchProbe, energy_charts, nominal_gpu_memory
from flowos.probes._intensity import TRIAD, Intensity

SECONDS = {"quick": 1.0, "normal": 2.0, "full": 8.0}
CACHES_PER_ARRAY = 4
MIN_BYTES, MAX_SHARE = 256 << 20, 0.2
HOST_BYTES = 64 << 20


class GpuStream(TorchProbe):
    """Metrics bandwidth (byte/s), bandwidth_per_joule and power (W) per device.

    The program sweeps the four kernels itself.
    """

    measure = "stream"
    info = ProbeInfo(
        name="gpu_stream",
        title="Memory bandwidth by PyTorch, of GPUs",
        charts=(
            Chart(
                title="STREAM by PyTorch",
                kind="bars",
                x="kernel",
                metrics=("bandwidth",),
                series=("device",),
                x_label="kernel",
                y_label="byte/s",
                about="Arrays of f64, each many times the cache.",
            ),
            *energy_charts("STREAM by PyTorch", "bandwidth", "byte/J", "kernel"),
        ),
        headlines=(Headline("STREAM triad by PyTorch", "bandwidth", (("kernel", "triad"),)),),
        roofs=("bandwidth",),
        nominal=nominal_gpu_memory,
    )

    def intensity(self, measured: Measurement) -> Intensity | None:
        is_triad = measured.case.level("kernel") == "triad" and measured.unit == "byte/s"
        return TRIAD if is_triad else None

    def details(self, device: CudaDevice | None, effort: Effort) -> Pairs:
        return (("seconds", str(SECONDS[effort])), ("bytes", str(_array_bytes(device))))


def _array_bytes(device: CudaDevice | None) -> int:
    """Of one array, as far as three of them fit into the memory."""
    if device is None:
        return HOST_BYTES
    wanted = max(MIN_BYTES, CACHES_PER_ARRAY * device.cache_bytes)
    return min(wanted, int(MAX_SHARE * device.memory_bytes)) // 4096 * 4096
