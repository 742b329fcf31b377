"""From samples to a report: numbers, findings and charts."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from flowos._dataclasses import replace
from flowos.model import (
    Advice,
    Case,
    Deployment,
    Entered,
    Measurement,
    MeasurementRequest,
    Run,
    Sample,
    Trust,
    Verdict,
)
from flowos.operations.measure._case_order import as_planned
from flowos.operations.measure._next_steps import (
    how_to_judge,
    with_end,
    with_time_to_decide,
)
from flowos.plan import (
    NoiseThresholds,
    compare,
    limits_for,
    per_joule,
    summarize,
)
from flowos.probes import (
    CACHES_END_AT,
    HOST,
    SUSPICIOUS,
    Probe,
    TuningGain,
    blocked,
    deployment_words,
    headlines_of,
    in_words,
    merged_advice,
    probe_named,
    probes_for,
    rooflines,
    tuning_gain,
    undecided,
    verdicts_between,
)
from flowos.report import ChartStep, HeadlineNumber, Report, Section, number

_BINARY = {
    "same": "the same binaries ran everywhere, each with its loader and libraries next to it: what"
    " differs is the environment only (MPI programs took the MPI of the environment, and PyTorch is"
    " that of its Python)",
    "own": "each environment compiled its own programs and took its own libraries",
}

_OWN_COMMANDS = (
    "each environment ran its own program of that name, with the variables that"
    " `flowos exec` gives it there"
)


def report_of(run: Run, samples: Sequence[Sample]) -> Report:
    """The report of a run; the same samples give the same report."""
    limits = limits_for(run.facts.architecture, (s.state for s in samples))
    ordered = as_planned(run, samples)
    suspected = {(s.case, s.metric): why for s in samples if (why := s.case.detail(SUSPICIOUS))}
    measured = tuple(
        _as_ceiling(_with_suspicion(m, suspected.get((m.case, m.metric), "")))
        for m in _measurements(run, ordered, limits)
    )
    for probe in probes_for():
        measured = probe.checked(measured)
    concluded = _between_environments if run.environments else _of_one_environment
    found = concluded(run, ordered, measured, limits)
    findings = (*_deployed(run.deployment), *_commands(run.request), *found.findings)
    return replace(found, findings=findings, samples=tuple(samples))


def headlines_in(
    run: Run, samples: Sequence[Sample], metrics: Collection[tuple[str, str]]
) -> list[tuple[str, Measurement]]:
    """Label and number of its headlines of these (probe, metric), without shares of ceilings."""
    limits = limits_for(run.facts.architecture, (s.state for s in samples))
    ours = [s for s in as_planned(run, samples) if (s.case.probe, s.metric) in metrics]
    measured = [_as_ceiling(m) for m in summarize(ours, limits=limits)]
    return [(h.label, m) for h, m in headlines_of(measured, ours, limits)]


def findings_in(shown: Report, probe: str) -> tuple[str, ...]:
    """What its report finds in these measurements of one probe.

    shown: of a run with all its samples, and these of its measurements.
    """
    run = shown.run
    of = next(each for each in probes_for(2 if run.environments else 1) if each.name == probe)
    if run.environments:
        return of.differences(run.environments[0].label, shown.measurements)
    limits = limits_for(run.facts.architecture, (s.state for s in shown.samples))
    measured = {(m.case, m.metric) for m in shown.measurements}
    samples = [s for s in as_planned(run, shown.samples) if (s.case, s.metric) in measured]
    return _Found(of, shown.measurements, samples, limits).findings


def _deployed(deployment: Deployment | None) -> Iterator[str]:
    if deployment is not None:
        nodes = ", ".join(map(str, deployment.nodes))
        yield f"deployment {deployment.number} of {deployment.of}, pool {deployment.pool}: {nodes}"


def _commands(request: MeasurementRequest) -> Iterator[str]:
    """In full, as their names are cut."""
    for argv in request.commands:
        yield f"measured in {request.folder}: {shlex.join(argv)}"
    if request.ignore_failure:
        yield "runs that failed were counted, as --ignore-failure asked for"


def _between_environments(
    run: Run,
    samples: Sequence[Sample],
    measured: tuple[Measurement, ...],
    limits: NoiseThresholds,
) -> Report:
    verdicts = verdicts_between(run.environments, samples, limits, margin=run.request.margin)
    return Report(
        run=run,
        measurements=measured,
        verdicts=with_end(run, verdicts),
        sections=tuple(_env_sections({m.case.probe for m in measured})),
        findings=(
            *_differences(run.environments[0].label, measured),
            _OWN_COMMANDS if run.request.commands else _BINARY[run.request.binary],
            *blocked(run.environments),
            *(line for env in run.environments for line in _described(env)),
        ),
    )


def _of_one_environment(
    run: Run,
    samples: Sequence[Sample],
    measured: tuple[Measurement, ...],
    limits: NoiseThresholds,
) -> Report:
    found = [_Found(probe, measured, samples, limits) for probe in probes_for()]
    headlines = tuple(_headlines(measured, samples, limits))
    of_pool = deployment_words(run.deployment)
    left_out = (each for f in found for each in f.probe.left_out(f.measured, of_pool))
    energies = (h.measured for h in headlines if h.measured not in measured)
    effects = with_time_to_decide(run, [v for f in found for v in _effects(f, limits)])
    advised = [f for f in found if f.advice is not None]
    return Report(
        run=replace(run, unmeasured=tuple(dict.fromkeys((*run.unmeasured, *left_out)))),
        measurements=tuple(dict.fromkeys((*measured, *energies))),
        verdicts=(
            *effects,
            *with_end(run, [v for f in found for v in _versus(f, run.request.margin, limits)]),
        ),
        sections=tuple(f.section for f in found if f.measured),
        headlines=headlines,
        advice=_advice(f.advice for f in found),
        undecided=_undecided(run, advised, effects),
        findings=tuple(line for f in found for line in f.findings),
        steps=tuple(_steps(measured)),
        rooflines=rooflines(measured),
    )


def _headlines(
    measured: Sequence[Measurement], samples: Sequence[Sample], limits: NoiseThresholds
) -> Iterator[HeadlineNumber]:
    """The headlines, each with what a joule does in its case, where energy was counted.

    What a GPU does takes its own energy, which the counters of the processors do not have.
    """
    for h, m in headlines_of(measured, samples, limits):
        named = tuple(axis for axis, _ in h.levels)
        yield HeadlineNumber(label=h.label, measured=m, named=named)
        if m.case.level("device", HOST) != HOST:
            continue
        ours = [s for s in samples if (s.case, s.metric) == (m.case, m.metric)]
        for energy in summarize(tuple(per_joule(ours)), limits=limits):
            label = f"{h.label}, per joule"
            yield HeadlineNumber(label=label, measured=energy, named=named)


class _Found:
    """Findings from the numbers of one probe."""

    def __init__(
        self,
        probe: Probe,
        measured: Iterable[Measurement],
        samples: Iterable[Sample],
        limits: NoiseThresholds,
    ) -> None:
        self.probe = probe
        self.measured = [m for m in measured if m.case.probe == probe.name]
        ours = [s for s in samples if s.case.probe == probe.name]
        self.deciding = [s for s in ours if probe.decides(s)]
        best = tuning_gain(ours, probe.info.tunes, limits=limits)
        self.section = Section(probe=probe.name, title=probe.info.title, charts=probe.info.charts)
        self.advice = probe.advice(self.measured, best)
        self.verdicts = best.settings if best else ()
        best_setting = _best_setting(best, self.measured) if best else ()
        between = probe.findings_between(self.measured, ours, limits)
        self.findings = (*best_setting, *probe.findings(self.measured), *between)


def _effects(found: _Found, limits: NoiseThresholds) -> Iterator[Verdict]:
    """Of settings that were swept, and of levels that are set against the first one."""
    yield from found.verdicts
    info = found.probe.info
    yield from _against_first(found, info.compares, info.margin, limits)


def _versus(found: _Found, margin: float | None, limits: NoiseThresholds) -> tuple[Verdict, ...]:
    """Each level compared with the first, where the probe measures them until it is decided."""
    info = found.probe.info
    return _against_first(found, info.versus, info.margin if margin is None else margin, limits)


def _against_first(
    found: _Found, axis: str, margin: float, limits: NoiseThresholds
) -> tuple[Verdict, ...]:
    """() for no axis."""
    if not axis or not found.deciding:
        return ()
    base = found.deciding[0].case.level(axis)
    return compare(found.deciding, axis=axis, base=base, margin=margin, limits=limits)


def _advice(found: Iterable[tuple[Advice, ...] | None]) -> tuple[Advice, ...] | None:
    """All advice, best first; None if nothing was measured that could be advised on."""
    given = [advice for advice in found if advice is not None]
    return merged_advice(each for advice in given for each in advice) if given else None


def _undecided(run: Run, advised: Sequence[_Found], effects: Sequence[Verdict]) -> str:
    """Why no setting could be judged, and what mends it; "" if one was."""
    names = tuple(f.probe.name for f in advised)
    settings = [v for v in effects if v.probe in names]
    why = undecided([m for f in advised for m in f.measured], settings)
    return f"{why}; {how_to_judge(run, names, settings)}" if why else ""


def _best_setting(best: TuningGain, measured: Iterable[Measurement]) -> tuple[str, ...]:
    """The best setting in words, with the number that the report shows for this case."""
    found = next(m for m in measured if (m.case, m.metric) == (best.best, best.metric))
    return in_words(best, number(found.value, found.unit))


def _measurements(
    run: Run, samples: Sequence[Sample], limits: NoiseThresholds
) -> tuple[Measurement, ...]:
    def ceiling_of(case: Case) -> Case | None:
        probe = probe_named(case.probe)
        return probe.ceiling(case) if probe else None

    def nominal_of(case: Case, unit: str) -> tuple[str, float] | None:
        probe = probe_named(case.probe)
        return probe.info.nominal(case, unit, run.facts) if probe else None

    return summarize(samples, ceiling_of=ceiling_of, nominal_of=nominal_of, limits=limits)


def _as_ceiling(m: Measurement) -> Measurement:
    """A ceiling by its best value, here and in its own shares."""
    probe = probe_named(m.case.probe)
    if probe is None or m.metric not in probe.info.ceilings:
        return m
    shares = tuple(replace(share, value=m.best / share.ceiling) for share in m.shares)
    return replace(m, ceiling=True, shares=shares)


def _with_suspicion(m: Measurement, reason: str) -> Measurement:
    """The measurement marked as suspicious, if the probe noted it in any round."""
    return replace(m, trust=Trust(marks=(*m.trust.marks, reason))) if reason else m


def _steps(measured: Iterable[Measurement]) -> Iterator[ChartStep]:
    """Where the caches end, by the curve of most cores."""
    curves = [m for m in measured if m.case.detail(CACHES_END_AT)]
    for curve in sorted(curves, key=lambda m: int(m.case.level("cores")))[-1:]:
        ends = curve.case.detail(CACHES_END_AT).split(",")
        for level, end in enumerate(ends, start=1):
            yield ChartStep(
                probe=curve.case.probe, axis="bytes", at=float(end), label=f"cache {level} ends"
            )


def _env_sections(found: set[str]) -> Iterator[Section]:
    for probe in probes_for(environments=2):
        if probe.name in found:
            yield Section(probe=probe.name, title=probe.info.title, charts=probe.info.env_charts)


def _differences(base: str, measured: Sequence[Measurement]) -> Iterator[str]:
    for probe in probes_for(environments=2):
        yield from probe.differences(base, [m for m in measured if m.case.probe == probe.name])


def _described(env: Entered) -> Iterator[str]:
    if env.digest:
        image = f"{env.form} {env.image}, {env.digest[:23]}"
        yield f"{env.label}: {image}, entered by {env.runtime} {env.version}".rstrip()
    if env.kernel:
        how = f"booted by {env.accelerator} with Linux {env.kernel}"
        memory = f", {env.memory_bytes >> 20}M of memory" * bool(env.memory_bytes)
        yield f"{env.label}: {how}{memory}, parameters: {env.parameters}"
    yield from (f"{env.label}: {note}" for note in env.notes)
