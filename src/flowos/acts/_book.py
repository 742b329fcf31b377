"""Samples to a book: the numbers, what was found in them, and how they are drawn."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from flowos.model import Case, Measurement, Run, Sample, Trust
from flowos.plan import limits_for, summarize
from flowos.probes import (
    CACHES_END_AT,
    HEADLINES,
    PROBES,
    SUSPECT,
    best_of,
    caches_found,
    doubts,
    in_words,
    merged,
    nominal_of,
    slow_defaults,
    worth,
)
from flowos.report import Book, Headline, Section, Step


def book_of(run: Run, samples: Sequence[Sample]) -> Book:
    """All that is concluded from a run; the same samples give the same book."""
    measured = tuple(map(_with_suspicion, _measurements(run, samples)))
    best = worth((s for s in samples if s.case.probe == "stream"), "triad")
    return Book(
        run=run,
        measurements=measured,
        samples=tuple(samples),
        verdicts=best.settings if best else (),
        sections=tuple(_sections(measured)),
        headlines=tuple(
            Headline(label=h.label, measured=found)
            for h in HEADLINES
            if (found := best_of(h, measured))
        ),
        findings=(
            *slow_defaults(measured),
            *doubts(measured),
            *caches_found(measured),
            *(in_words(best) if best else ()),
            *merged(dict.fromkeys(s.case for s in samples if s.case.probe == "stream")),
        ),
        steps=tuple(_steps(measured)),
    )


def _measurements(run: Run, samples: Sequence[Sample]) -> tuple[Measurement, ...]:
    probes = {probe.name: probe for probe in PROBES}

    def ceiling_of(case: Case) -> Case | None:
        probe = probes.get(case.probe)
        return probe.ceiling(case) if probe else None

    return summarize(
        samples,
        ceiling_of=ceiling_of,
        nominal_of=nominal_of(run.facts, run.wanted),
        limits=limits_for(run.facts.architecture, (s.state for s in samples)),
    )


def _with_suspicion(m: Measurement) -> Measurement:
    """What the probe suspects of its own reading counts against the number."""
    reason = m.case.detail(SUSPECT)
    return replace(m, trust=Trust(marks=(*m.trust.marks, reason))) if reason else m


def _sections(measured: Iterable[Measurement]) -> Iterator[Section]:
    found = {m.case.probe for m in measured}
    for probe in PROBES:
        if probe.name in found:
            yield Section(probe=probe.name, title=probe.title, charts=probe.charts)


def _steps(measured: Iterable[Measurement]) -> Iterator[Step]:
    """Where the caches end, as the curve of most cores shows it."""
    curves = [m for m in measured if m.case.detail(CACHES_END_AT)]
    for curve in sorted(curves, key=lambda m: int(m.case.level("cores")))[-1:]:
        ends = curve.case.detail(CACHES_END_AT).split(",")
        for level, end in enumerate(ends, start=1):
            yield Step(
                probe=curve.case.probe, axis="bytes", at=float(end), label=f"cache {level} ends"
            )
