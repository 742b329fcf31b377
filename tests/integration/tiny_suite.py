"""flowos with a suite of two tiny probes, the second of which waits for the file `go`.

Run as `python tiny_suite.py measure --suite tiny ...`. The facts of the machine, which take
seconds, are collected once, or are those in the file FLOWOS_TEST_LOOK.
"""

import os
import pickle
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

from flowos.cli import main
from flowos.model import (
    Case,
    Chart,
    Facts,
    FigurePart,
    Measurement,
    MeasurementRequest,
    Paper,
    PaperFigure,
    PaperSuite,
    PublishedNumber,
    Unmeasured,
)
from flowos.operations._facts import facts
from flowos.probes import Probe, ProbeInfo, Program
from flowos.probes._tables import PROBES
from flowos.probes.suites import SUITES

SAYS = """printf '{"readings": [{"metric": "speed", "unit": "1/s", "values": [2, 4]}]}'"""
SLIPPING, SLIPS = "9", "echo the gear slips >&2; exit 3"
"""A gear that there is where the storage has a file `slips`."""
CHART = Chart(title="Speed", kind="bars", x="gear", metrics=("speed",))


class First(Probe):
    """Says how fast it is."""

    info: ClassVar = ProbeInfo(name="first", title="First", charts=(CHART,))
    waits = ""

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:  # noqa: ARG002
        gears = ("1", SLIPPING)[: 1 + Path(request.scratch, "slips").exists()]
        details = (("cwd", str(request.scratch)),)
        return tuple(Case(self.name, (("gear", gear),), details) for gear in gears)

    def seconds(self, case: Case) -> float:  # noqa: ARG002
        return 0.01

    def program(self, case: Case) -> Program:
        says = SLIPS if case.level("gear") == SLIPPING else self.waits + SAYS
        return Program(argv=("/bin/sh", "-c", says, case.detail("cwd")))

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        return (f"{len(measured)} gear was tried",)


class Second(First):
    """Says so once it may, and that it has begun."""

    info: ClassVar = ProbeInfo(name="second", title="Second", charts=(CHART,))
    waits = 'touch "$0/begun"; while [ ! -e "$0/go" ]; do sleep 0.02; done; '


TINY = PaperSuite(
    name="tiny",
    title="A tiny suite",
    figures=(
        PaperFigure(number="1", title="One", caption="一", parts=(FigurePart(probe="first"),)),
        PaperFigure(number="2", title="Two", caption="二", parts=(FigurePart(probe="second"),)),
        PaperFigure(number="3", title="Three", caption="三", lacking="it needs a GPU"),
    ),
)
PAPER = Paper(
    suite="tiny",
    citation="A paper",
    missing="Nothing.",
    machines=(),
    numbers=(
        PublishedNumber(
            figure="1",
            what="speed",
            value=6.0,
            unit="1/s",
            printed="6",
            machine="m",
            where="w",
            probe="first",
            metric="speed",
        ),
    ),
)


@cache
def _collected() -> Facts:
    look = os.environ.get("FLOWOS_TEST_LOOK")
    found: Facts = pickle.loads(Path(look).read_bytes()) if look else facts()
    return found


def tiny(words: list[str]) -> int:
    with (
        patch.dict(SUITES, {"tiny": TINY}),
        patch("flowos.probes._tables.PROBES", (*PROBES, First(), Second())),
        patch("flowos.operations.suite.published", lambda _: PAPER),
        patch("flowos.operations.measure._run.facts", lambda _: _collected()),
        patch("flowos.operations.measure._run.facts_on", lambda *_: _collected()),
    ):
        return main(words)


if __name__ == "__main__":
    sys.exit(tiny(sys.argv[1:]))
