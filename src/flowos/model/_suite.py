"""Papers whose measurements are repeated: figures, numbers, and which probes show them."""

from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model._launch import Pairs


@dataclass(frozen=True, kw_only=True)
class FigurePart:
    """What a probe shows of a figure.

    metrics: those of its numbers; (): all. levels: only numbers with all of these; without: only
    those with none of these. cores: only numbers of so many cores.
    """

    probe: str
    metrics: tuple[str, ...] = ()
    levels: Pairs = ()
    without: Pairs = ()
    cores: Literal["any", "socket", "all"] = "any"


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """A figure or table of a paper, by its number there: "5", "table 3".

    caption: as in the paper. parts: what is run for it; () if nothing here can. instead: how that
    differs from the paper; between: how where it is measured between nodes. lacking: why nothing
    can be run. sockets: processors that the machine must have. compilers: families that the paper
    compiled with, each with what makes it be found.
    """

    number: str
    title: str
    caption: str
    parts: tuple[FigurePart, ...] = ()
    instead: str = ""
    between: str = ""
    lacking: str = ""
    sockets: int = 1
    compilers: Pairs = ()


@dataclass(frozen=True, kw_only=True)
class PaperSuite:
    """The figures of a paper, in its order. between: are environments compared in it?"""

    name: str
    title: str
    figures: tuple[PaperFigure, ...]
    between_environments: bool = False


@dataclass(frozen=True, kw_only=True)
class SuiteStep:
    """Part of a suite that a run measured. of: what it shares with the suite's other runs.

    measured: labels of cases that earlier runs measured, and this one does not.
    """

    of: str
    suite: str
    probe: str
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PublishedMachine:
    """A machine of a paper. where: it stands there."""

    name: str
    hardware: str
    where: str


@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """A number from the text or a table of a paper; SI base units.

    printed: as it stands there. where: section, paragraph or table. nominal: the paper's own
    ceiling of it, in the same unit.
    probe, metric, levels: the numbers of ours that it is set against; probe "" if none is alike.
    data: how much it is of, where ours are of another amount: then none is set against it.
    """

    figure: str
    what: str
    value: float
    unit: str
    printed: str
    machine: str
    where: str
    nominal: float | None = None
    probe: str = ""
    metric: str = ""
    levels: Pairs = ()
    data: str = ""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and its numbers. missing: what its text does not say, and its plots only show."""

    suite: str
    citation: str
    missing: str
    machines: tuple[PublishedMachine, ...]
    numbers: tuple[PublishedNumber, ...]
