"""What the tests of the report build their reports from."""

from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from flowos.model import (
    Blas,
    Cache,
    Case,
    Chart,
    Compiler,
    Facts,
    LogicalCpu,
    Measurement,
    Memory,
    Missing,
    NumaNode,
    Share,
    Trust,
)
from flowos.report import Report

FACTS = Facts(
    host="node1",
    system="Debian GNU/Linux 12",
    kernel="6.1.0",
    architecture="x86_64",
    cpu_model="Example CPU 9000",
    cpus=tuple(LogicalCpu(number=i, core=i // 2, socket=0, node=0) for i in range(4)),
    allowed=(0, 1, 2, 3),
    quota_cpus=1.5,
    memory_bytes=24 << 30,
    caches=tuple(
        Cache(level=1, kind="data", size_bytes=48 << 10, line_bytes=64, cpus=(2 * i, 2 * i + 1))
        for i in range(2)
    ),
    nodes=(NumaNode(number=0, cpus=(0, 1, 2, 3), memory_bytes=24 << 30),),
    instruction_sets=("avx2", "avx512f"),
    memory=Memory(bytes_per_second=76.8e9),
    hypervisor="kvm",
    compilers=(
        Compiler(
            name="gcc-12",
            family="gcc",
            language="c",
            version="12.2.0",
            path=PurePath("/usr/bin/gcc"),
        ),
    ),
    blas=(Blas(name="blis 0.9.0", family="blis", version="0.9.0", path=PurePath("/usr/lib/b.so")),),
    missing=(Missing(what="nominal clock", loses="a share of it", remedy="--nominal clock=4e9"),),
)


def measured(
    value: float,
    *,
    metric: str = "triad",
    unit: str = "byte/s",
    probe: str = "stream",
    **levels: str,
) -> Measurement:
    return Measurement(
        case=Case(probe, tuple(levels.items())),
        metric=metric,
        unit=unit,
        count=12,
        median=value,
        low=value * 0.99,
        high=value * 1.01,
        best=value * 1.02,
    )


Kind = Literal["measured", "nominal"]


def bounded(m: Measurement, ceiling: float, of: str, kind: Kind = "measured") -> Measurement:
    found = Share(kind=kind, of=of, ceiling=ceiling, value=m.median / ceiling)
    return replace(m, shares=(*m.shares, found))


def untrusted(m: Measurement, *marks: str) -> Measurement:
    return replace(m, trust=Trust(marks=marks))


CURVE = Chart(
    title="Triad over threads",
    kind="curve",
    x="threads",
    metrics=("triad",),
    series=("stores",),
    x_label="threads",
    about="Bytes as stated.",
)
BARS = Chart(title="Rates", kind="bars", x="workload", metrics=("iops",), series=("iodepth",))

HOSTILE = '<script>alert("1")</script>|\n=1+1\x1b[31m\0`*_\ud800'


def hostile(report: Report) -> Report:
    """Every text from outside replaced by the worst that it could be."""
    first = report.measurements[0]
    odd = replace(
        first,
        case=Case("stream", (("threads", HOSTILE), ("stores", HOSTILE), (HOSTILE, HOSTILE))),
        trust=Trust(marks=(HOSTILE,)),
        median=float("nan"),
        low=float("-inf"),
        high=float("inf"),
    )
    run = replace(
        report.run, host=HOSTILE, id=HOSTILE, facts=replace(report.run.facts, host=HOSTILE)
    )
    return replace(
        report,
        run=run,
        measurements=(odd, *report.measurements[1:]),
        findings=(HOSTILE,),
        headlines=(),
    )
