"""What every renderer takes: one run with all that was concluded from it, as frozen data."""

from dataclasses import dataclass

from flowos.model import Advice, Chart, Measurement, Run, Sample, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A probe's part of the book: its name, its title for people, its charts."""

    probe: str
    title: str
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineNumber:
    """One of the few numbers by which the machine is known. `named`: axes that the label tells."""

    label: str
    measured: Measurement
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartStep:
    """Something found on an axis of a probe's charts, such as the end of a cache."""

    probe: str
    axis: str
    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run, ready to be shown. Without `headlines` the best of each chart takes their place.

    advice: what to do, what is worth most first; None where nothing was looked for that could be.
    findings: sentences for people, such as the best setting and what each setting is worth.
    """

    run: Run
    measurements: tuple[Measurement, ...] = ()
    samples: tuple[Sample, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    sections: tuple[Section, ...] = ()
    headlines: tuple[HeadlineNumber, ...] = ()
    advice: tuple[Advice, ...] | None = None
    findings: tuple[str, ...] = ()
    steps: tuple[ChartStep, ...] = ()

    @property
    def doubtful(self) -> tuple[Measurement, ...]:
        """The measurements that must not be believed."""
        return tuple(m for m in self.measurements if not m.trust.good)
