"""All-pairs gravity on processors, on each GPU and on 2, 4 .. of them, in f32 and f64.

After figure 6 of seed 004: 256,000 bodies, as CUDA's sample nbody counts operations.
"""

from flowos.model import (
    Case,
    Chart,
    Compiler,
    Effort,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes._base import (
    Headline,
    Probe,
    ProbeInfo,
    Program,
    best_compiler,
    read_answer,
)
from flowos.probes._cores import (
    NO_COMPILER,
    build_for,
    core_sets,
    doubled,
    list_of,
    options_of,
    remembered,
)
from flowos.probes._gpu import HOST, START_SECONDS, energy_charts
from flowos.probes._intensity import Intensity
from flowos.probes._nominal import TYPE_BITS

BODIES = {"quick": 8192, "normal": 32768, "full": 256_000}
GPU_BODIES = 256_000
SECONDS = {"quick": 0.5, "normal": 2.0, "full": 20.0}
FLAGS = ("-O3", "-ffast-math", "-pthread")
TYPES = ("f32", "f64")
SLOWEST = {"f32": 2e9, "f64": 5e8}
"""Pairs per second of one core, to estimate the time: a slow one."""


class Nbody(Probe):
    """Metrics flops (flop/s), 20 for each pair of bodies, flops_per_joule and power (W), per device
    and type.

    Axis `device` is "cpu", with all its cores, the GPU's number, as CUDA counts, or "2 GPUs", over
    which the bodies are split.
    """

    info = ProbeInfo(
        name="nbody",
        title="N-body",
        charts=(
            Chart(
                title="All-pairs gravity",
                kind="bars",
                x="device",
                metrics=("flops",),
                series=("type",),
                x_label="device",
                y_label="flop/s",
                ceilings=False,
                about="20 operations are counted for a pair; a reciprocal square root is among"
                " them, so this is no share of a peak. Of several GPUs each has a part of the"
                " bodies and is given the others' positions, which is timed too.",
            ),
            *energy_charts("N-body", "flops", "flop/J", "type"),
        ),
        headlines=(
            Headline("N-body, f32", "flops", (("type", "f32"),)),
            Headline("N-body, f64", "flops", (("type", "f64"),)),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """On processors only if the probe is asked for by name."""
        asked = self.name in request.probes
        compiler, python = best_compiler(facts), facts.tool("torch")
        host = _on_host(facts, compiler, request.effort) if compiler and asked else ()
        gpus = _on_gpus(facts, python, request.effort) if python else ()
        if host or gpus or not asked:
            return (*host, *gpus)
        return NO_COMPILER

    def seconds(self, case: Case) -> float:
        if case.level("device") != HOST:
            return START_SECONDS + 2 * float(case.detail("seconds"))
        cores = case.detail("cpus").count(",") + 1
        once = int(case.detail("bodies")) ** 2 / SLOWEST[case.level("type")] / cores
        return 0.1 + max(3 * once, float(case.detail("seconds")))

    def program(self, case: Case) -> Program:
        limit = 60 + 10 * self.seconds(case)
        if case.level("device") != HOST:
            options = options_of(case, "device", "bodies", "types", "seconds")
            python = case.detail("python")
            return Program(
                argv=(python, *options), script="nbody_gpu.py", on_gpu=True, limit_seconds=limit
            )
        return Program(
            argv=options_of(case, "cpus", "bodies", "type", "seconds"),
            build=build_for(case, "nbody.c", (*FLAGS, case.detail("native")), ("-lm",)),
            cores=case.detail("cpus").count(",") + 1,
            limit_seconds=limit,
        )

    def intensity(self, measured: Measurement) -> Intensity | None:
        """Of each body four numbers are read and three written."""
        if measured.unit != "flop/s":
            return None
        kind, bodies = measured.case.level("type"), int(measured.case.detail("bodies"))
        return Intensity(f"N-body {kind}", 20 * bodies / (7 * TYPE_BITS[kind] / 8), kind)

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return read_answer(outcome, "nbody_gpu")


def _on_host(facts: Facts, compiler: Compiler, effort: Effort) -> tuple[Case, ...]:
    cpus = core_sets(facts)[-1]
    native = "-mcpu=native" if facts.architecture == "aarch64" else "-march=native"
    return tuple(
        Case(
            "nbody",
            levels=(("device", HOST), ("type", kind)),
            details=(
                ("cpus", list_of(cpus)),
                ("type", kind),
                ("bodies", str(BODIES[effort])),
                ("seconds", str(SECONDS[effort])),
                ("native", native),
                *remembered(compiler),
            ),
        )
        for kind in TYPES
    )


def _on_gpus(facts: Facts, python: Tool, effort: Effort) -> tuple[Case, ...]:
    each = [(str(device.number), (device.number,)) for device in facts.cuda]
    powers = (count for count in doubled(len(facts.cuda))[1:] if count.bit_count() == 1)
    several = [(f"{count} GPUs", tuple(range(count))) for count in powers]
    return tuple(
        Case(
            "nbody",
            levels=(("device", name),),
            details=(
                ("device", ",".join(f"cuda:{number}" for number in numbers)),
                ("bodies", str(GPU_BODIES)),
                ("types", ",".join(TYPES)),
                ("seconds", str(SECONDS[effort])),
                ("python", str(python.path)),
            ),
        )
        for name, numbers in (*each, *several)
    )
