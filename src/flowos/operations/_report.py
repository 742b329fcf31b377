"""Samples to a book: the numbers, what was found in them, and how they are drawn."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from flowos.model import Advice, Case, Measurement, Run, Sample, Trust
from flowos.operations._case_order import as_planned
from flowos.operations._environment_report import book_beside
from flowos.operations._next_steps import with_time_to_tell
from flowos.plan import NoiseThresholds, limits_for, summarize
from flowos.probes import (
    CACHES_END_AT,
    CEILINGS,
    HEADLINES,
    PROBES,
    SUSPECT,
    Worth,
    advice,
    best_of,
    cache_answers,
    caches_found,
    doubts,
    equal_answers,
    in_words,
    left_out,
    merged,
    merged_advice,
    nominal_of,
    slow_defaults,
    worth,
)
from flowos.report import ChartStep, HeadlineNumber, Report, Section, number


def book_of(run: Run, samples: Sequence[Sample]) -> Report:
    """All that is concluded from a run; the same samples give the same book."""
    limits = limits_for(run.facts.architecture, (s.state for s in samples))
    ordered = as_planned(run, samples)
    suspected = {(s.case, s.metric): why for s in samples if (why := s.case.detail(SUSPECT))}
    measured = cache_answers(
        tuple(
            _as_ceiling(_with_suspicion(m, suspected.get((m.case, m.metric), "")))
            for m in _measurements(run, ordered, limits)
        )
    )
    if run.environments:
        return replace(book_beside(run, ordered, measured, limits), samples=tuple(samples))
    streamed = [s for s in ordered if s.case.probe == "stream"]
    best = worth(streamed, "triad", limits=limits)
    return Report(
        run=replace(run, unmeasured=(*run.unmeasured, *left_out(measured))),
        measurements=measured,
        samples=tuple(samples),
        verdicts=with_time_to_tell(run, best.settings) if best else (),
        sections=tuple(_sections(measured)),
        headlines=tuple(
            HeadlineNumber(label=h.label, measured=found, named=tuple(axis for axis, _ in h.levels))
            for h in HEADLINES
            if (found := best_of(h, measured, ordered, limits))
        ),
        advice=_advice(measured, best),
        findings=(
            *doubts(measured),
            *caches_found(measured),
            *(_best_setting(best, measured) if best else ()),
            *equal_answers(measured),
            *merged(dict.fromkeys(s.case for s in streamed)),
        ),
        steps=tuple(_steps(measured)),
    )


def _advice(measured: Sequence[Measurement], best: Worth | None) -> tuple[Advice, ...] | None:
    """None where neither kernels of libraries nor settings of STREAM were measured."""
    if best is None and not any(m.case.probe == "gemm" for m in measured):
        return None
    return merged_advice((*slow_defaults(measured), *(advice(best) if best else ())))


def _best_setting(best: Worth, measured: Iterable[Measurement]) -> tuple[str, ...]:
    """In words, with the number that the report shows for this case."""
    found = next(m for m in measured if (m.case, m.metric) == (best.best, best.metric))
    return in_words(best, number(found.value, found.unit))


def _measurements(
    run: Run, samples: Sequence[Sample], limits: NoiseThresholds
) -> tuple[Measurement, ...]:
    probes = {probe.name: probe for probe in PROBES}

    def ceiling_of(case: Case) -> Case | None:
        probe = probes.get(case.probe)
        return probe.ceiling(case) if probe else None

    return summarize(
        samples,
        ceiling_of=ceiling_of,
        nominal_of=nominal_of(run.facts, run.wanted),
        limits=limits,
    )


def _as_ceiling(m: Measurement) -> Measurement:
    """Where it bounds other numbers its best counts, here and in its own shares."""
    if (m.case.probe, m.metric) not in CEILINGS:
        return m
    shares = tuple(replace(share, value=m.best / share.ceiling) for share in m.shares)
    return replace(m, ceiling=True, shares=shares)


def _with_suspicion(m: Measurement, reason: str) -> Measurement:
    """What the probe suspects of its own reading, in any round, counts against the number."""
    return replace(m, trust=Trust(marks=(*m.trust.marks, reason))) if reason else m


def _sections(measured: Iterable[Measurement]) -> Iterator[Section]:
    found = {m.case.probe for m in measured}
    for probe in PROBES:
        if probe.name in found:
            yield Section(probe=probe.name, title=probe.title, charts=probe.charts)


def _steps(measured: Iterable[Measurement]) -> Iterator[ChartStep]:
    """Where the caches end, as the curve of most cores shows it."""
    curves = [m for m in measured if m.case.detail(CACHES_END_AT)]
    for curve in sorted(curves, key=lambda m: int(m.case.level("cores")))[-1:]:
        ends = curve.case.detail(CACHES_END_AT).split(",")
        for level, end in enumerate(ends, start=1):
            yield ChartStep(
                probe=curve.case.probe, axis="bytes", at=float(end), label=f"cache {level} ends"
            )
