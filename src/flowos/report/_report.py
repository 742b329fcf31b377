"""Input of all renderers: one run with all its conclusions, as frozen data."""

from flowos._dataclasses import dataclass
from flowos.model import Advice, Chart, Measurement, Roofline, Run, Sample, Verdict
from flowos.plan import NumberPlace


@dataclass(frozen=True, kw_only=True)
class Section:
    """Part of the report for one probe: its name, its title for people, its charts."""

    probe: str
    title: str
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HeadlineNumber:
    """One of the few numbers that characterize the machine. `named`: axes in the label."""

    label: str
    measured: Measurement
    named: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChartStep:
    """A feature found on an axis of a probe's charts, such as the end of a cache."""

    probe: str
    axis: str
    at: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """A run, ready to be rendered. Without `headlines` the best of each chart is used.

    advice: what to do, the largest gain first; None if no probe looked for advice. undecided: why
    there is none, and the command that mends it, if no setting could be judged.
    places: of headlines among those of other runs; where there are enough of them.
    findings: sentences for people, such as the best setting and the gain of each setting.
    """

    run: Run
    measurements: tuple[Measurement, ...] = ()
    samples: tuple[Sample, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    sections: tuple[Section, ...] = ()
    headlines: tuple[HeadlineNumber, ...] = ()
    advice: tuple[Advice, ...] | None = None
    undecided: str = ""
    findings: tuple[str, ...] = ()
    steps: tuple[ChartStep, ...] = ()
    rooflines: tuple[Roofline, ...] = ()
    places: tuple[NumberPlace, ...] = ()

    @property
    def untrusted(self) -> tuple[Measurement, ...]:
        """The measurements that cannot be trusted."""
        return tuple(m for m in self.measurements if not m.trust.good)
