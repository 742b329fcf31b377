"""The kernels of `fo.kernels` on arrays: sort, prefix sum, merge, histogram, matrix product.

What seed 000 names as kernels of work on large data; STREAM bounds those that memory bounds.
"""

from flowos.model import (
    Case,
    Chart,
    Effort,
    Facts,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes._arrays import CACHES_PER_ARRAY, elements_for, last_cache_bytes
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, read_answer
from flowos.probes._cores import core_sets, options_of
from flowos.probes._gpu import HOST, START_SECONDS

SECONDS = {"quick": 12.0, "normal": 60.0, "full": 300.0}
"""For all calls, their data and the checks."""
SMALL = (1 << 16, 1 << 20)
"""Elements of vectors in a core's cache, and of those near memory's edge; a third is beyond all."""
GPU_SIZES = (1 << 20, 1 << 24, 1 << 27)
ORDERS = {"quick": (256, 1000), "normal": (256, 1000, 2048), "full": (256, 1000, 2048, 4096)}
TYPES = {"i32": 4, "i64": 8, "f32": 4, "f64": 8}
NO_NUMPY = Unmeasured(reason="no Python here has NumPy", remedy="pip install numpy")


class Kernels(Probe):
    """Metrics elements (1/s), bandwidth (byte/s, what must be moved at least), flops (flop/s).

    Axis `device` is "cpu", or the GPU's number, as CUDA counts. The program sweeps kernel, type
    and n itself. One thread, but for gemm and large sorts.
    """

    info = ProbeInfo(
        name="kernels",
        title="Kernels on arrays (fo.kernels)",
        charts=(
            Chart(
                title="Kernels over the number of elements",
                kind="curve",
                x="n",
                metrics=("elements",),
                series=("type",),
                facets=("kernel", "device"),
                x_label="elements",
                y_label="elements/s",
                log_x=True,
                log_y=True,
                about="As fo.kernels computes them, with a new array for each result.",
            ),
            Chart(
                title="Kernels that memory bounds",
                kind="curve",
                x="n",
                metrics=("bandwidth",),
                series=("type",),
                facets=("kernel", "device"),
                x_label="elements",
                y_label="byte/s",
                log_x=True,
                log_y=True,
                about="Bytes that must be read and written at least.",
            ),
        ),
        headlines=(
            Headline("Sort, f64", "elements", (("kernel", "sort"), ("type", "f64"))),
            Headline("Prefix sum, f64", "bandwidth", (("kernel", "prefix_sum"), ("type", "f64"))),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """Only if the probe is asked for by name; on GPUs where a Python has CuPy."""
        if self.name not in request.probes:
            return ()
        numpy, cupy = facts.tool("numpy"), facts.tool("cupy")
        host = _on_host(facts, numpy, request.effort) if numpy else ()
        return (*host, *(_on_gpus(facts, cupy, request.effort) if cupy else ())) or NO_NUMPY

    def seconds(self, case: Case) -> float:
        start = 1.0 if case.level("device") == HOST else START_SECONDS
        return start + 1.2 * float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        on_gpu = case.level("device") != HOST
        options = options_of(case, "device", "seconds", "sizes", "orders", "types")
        threads = case.detail("threads", "1")
        names = () if on_gpu else ("OMP", "OPENBLAS", "BLIS", "MKL")
        return Program(
            argv=(case.detail("python"), *options),
            script="kernels.py",
            variables=tuple((f"{name}_NUM_THREADS", threads) for name in names),
            cores=int(threads),
            on_gpu=on_gpu,
            limit_seconds=120 + 10 * float(case.detail("seconds")),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return read_answer(outcome, "kernels")

    def ceiling(self, case: Case) -> Case | None:
        """STREAM's copy by one thread, or by the GPU, beyond the caches; the best GEMM."""
        device, kind = case.level("device"), case.level("type")
        if case.level("kernel") == "gemm":
            cores = (("cores", case.detail("threads")),) if device == HOST else ()
            there = "gemm" if device == HOST else "gpu_gemm"
            return Case(there, levels=(*cores, ("type", kind)))
        if int(case.level("n", "0")) * TYPES.get(kind, 0) < int(case.detail("beyond", "0")):
            return None
        if device == HOST:
            return Case("stream").at(metric="copy", threads="1")
        return Case("gpu_stream").at(device=device, kernel="copy")


def _on_host(facts: Facts, numpy: Tool, effort: Effort) -> tuple[Case, ...]:
    sizes = (*SMALL, max(2 * SMALL[-1], elements_for(facts)))
    beyond = CACHES_PER_ARRAY * last_cache_bytes(facts)
    details = (("device", HOST), ("threads", str(len(core_sets(facts)[-1]))))
    return (_case(HOST, numpy, effort, sizes, (*details, ("beyond", str(beyond)))),)


def _on_gpus(facts: Facts, cupy: Tool, effort: Effort) -> tuple[Case, ...]:
    return tuple(
        _case(
            str(gpu.number),
            cupy,
            effort,
            GPU_SIZES,
            (
                ("device", f"cuda:{gpu.number}"),
                ("beyond", str(CACHES_PER_ARRAY * gpu.cache_bytes)),
            ),
        )
        for gpu in facts.cuda
    )


def _case(
    device: str, python: Tool, effort: Effort, sizes: tuple[int, ...], details: Pairs
) -> Case:
    return Case(
        "kernels",
        levels=(("device", device),),
        details=(
            ("python", str(python.path)),
            (python.name, python.version),
            ("seconds", str(SECONDS[effort])),
            ("sizes", ",".join(map(str, sizes))),
            ("orders", ",".join(map(str, ORDERS[effort]))),
            ("types", ",".join(TYPES)),
            *details,
        ),
    )
