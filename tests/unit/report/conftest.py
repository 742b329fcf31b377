"""Two reports: a small one with a bit of everything, and a recorded-like run with all probes."""

from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Case, MachineState, MeasurementRequest, Run, Sample, Unmeasured, Verdict
from flowos.report import ChartStep, HeadlineNumber, Report, Section, read_json

from .reports import BARS, CURVE, FACTS, bounded, measured, untrusted

RUN = Run(
    id="2026-11-20-abc",
    started="2026-11-20T10:00:00Z",
    ended="2026-11-20T10:03:00Z",
    host="node1",
    version="0.1.0",
    request=MeasurementRequest(),
    facts=FACTS,
    unmeasured=(
        (Case("mpi"), Unmeasured(reason="no MPI was found", remedy="apt install mpich")),
        (Case("gemm", (("isa", "avx"),)), Unmeasured(reason="killed by SIGILL")),
        (Case("gemm", (("isa", "avx2"),)), Unmeasured(reason="killed by SIGILL")),
    ),
)

VERDICT = Verdict(
    probe="stream",
    axis="stores",
    base="nt",
    other="plain",
    rest=(("threads", "2"),),
    metric="triad",
    ratio=0.747,
    low=0.741,
    high=0.752,
    margin=0.03,
    rounds=8,
    answer="slower",
)
OPEN_ENDED = replace(
    VERDICT,
    axis="threads",
    base="2",
    other="1",
    low=0.0,
    high=float("inf"),
    answer="inconclusive",
    why="both ran in 3 of the 4 whole rounds needed",
)


@pytest.fixture
def small() -> Report:
    curve = [
        bounded(
            bounded(measured(v, threads=t, stores=s), 62e9, "memory"), 76.8e9, "channels", "nominal"
        )
        for s, t, v in (
            ("nt", "1", 56e9),
            ("nt", "2", 61.2e9),
            ("plain", "1", 39e9),
            ("plain", "2", 45.7e9),
        )
    ]
    iops = [
        measured(v, probe="fio", metric="iops", unit="1/s", workload="random read", iodepth=d)
        for d, v in (("1", 17.7e3), ("16", 70.5e3))
    ]
    iops[1] = untrusted(iops[1], "a write cache answers", "others kept 1 cpu busy")
    rows = (*curve, *iops)
    sample = Sample(
        run=RUN.id,
        case=rows[0].case,
        round=1,
        metric="triad",
        unit="byte/s",
        values=(56e9, 55e9),
        state=MachineState(steal_share=0.0),
    )
    return Report(
        run=RUN,
        measurements=rows,
        samples=(sample,),
        verdicts=(VERDICT, OPEN_ENDED, replace(OPEN_ENDED, ratio=float("nan"), rest=(), why="")),
        sections=(
            Section(probe="stream", title="Memory bandwidth", charts=(CURVE,)),
            Section(probe="fio", title="Storage", charts=(BARS,)),
            Section(probe="mpi", title="Messages", charts=(replace(CURVE, metrics=("latency",)),)),
        ),
        headlines=(
            HeadlineNumber(label="STREAM triad", measured=rows[1]),
            HeadlineNumber(label="Random read, depth 16", measured=iops[1]),
        ),
        findings=("nt stores are worth 34 %",),
        steps=(ChartStep(probe="stream", axis="threads", at=2, label="all cores"),),
    )


@pytest.fixture(scope="session")
def recorded() -> Report:
    """All probes, in the shape of a real run."""
    return read_json((Path(__file__).parents[2] / "data/run.json").read_text())
