"""`flowos measure --env A --env B`: the same cases in every environment, in turns, until told.

Rounds of all comparisons take turns, so that each sees the whole time; one that is told ends, and
so does an environment inside it whose verdicts are reached.
Success: each comparison has its verdicts, or says that the time was out.
Failure: an environment that cannot be made ready ends all before anything is measured; a case that
fails later becomes an `Unmeasured` with the reason, and the others go on.
Ctrl-C: what was sampled is kept, and the run so far is the answer; KeyboardInterrupt, if nothing
was.
"""

import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from flowos import engine
from flowos.model import (
    Cancelled,
    Case,
    Environment,
    Facts,
    Run,
    Tried,
    Unmeasured,
    Verdict,
    Wanted,
)
from flowos.operations._binary_cache import BinaryCache
from flowos.operations._bundle import Bundle
from flowos.operations._comparisons import Comparison, ComparisonCase, answers_of, groups_of
from flowos.operations._measurement_plan import chosen
from flowos.operations._prepared_environments import PreparedEnvironment, places
from flowos.operations._sampling import STOPPED, Emit, Keep, Progress, Sampler
from flowos.operations._scratch import scratch_in
from flowos.operations._trials import with_trials
from flowos.operations.environment import environment
from flowos.plan import (
    NoiseThresholds,
    geomean_verdict,
    judged,
    limits_for,
    narrowed,
    next_round,
    turns,
)
from flowos.probes import ENV, Probe, allowed_everywhere, best_compiler, built_by

BUDGET_SECONDS = {"quick": 600.0, "normal": 1800.0, "full": 7200.0}
"""What measuring may take; facts, builds and the report come on top."""

_OUT_OF_TIME = Unmeasured(
    reason="the time was out before its turn", remedy="give more time: --minutes"
)


def beside(run: Run, *, keep: Keep, emit: Emit, seconds: float | None = None) -> Run:
    """Measure what `run.wanted` asks for in each of its environments; see `measure`.

    EnvironmentRefused: one of them cannot be had.
    """
    budget = BUDGET_SECONDS[run.wanted.effort] if seconds is None else seconds
    with _ready(run.wanted, run.facts, emit) as ready:
        run = replace(run, environments=tuple(p.entered for p in ready.places))
        sampler = Sampler(run=run, keep=keep, emit=emit, scratch=ready.scratch)
        session = _Session(sampler=sampler, base=ready.places[0].label)
        session.unmeasured.update(ready.unmeasured)
        ended_early = ""
        try:
            if sampler.build:
                ready.shelf.build([sampler.build])
            sampler.begin(budget)
            session.measure(ready.groups)
        except (KeyboardInterrupt, Cancelled):
            ended_early = sampler.end_early()
    unmeasured = tuple(session.unmeasured.items())
    return replace(run, unmeasured=unmeasured, ended=engine.utc(), ended_early=ended_early)


def described_beside(wanted: Wanted, node: Facts) -> list[dict[str, object]]:
    """Each case with the whole command line by which it is run, as plain JSON values."""
    with _ready(wanted, node, lambda _: None) as ready:
        planned: list[dict[str, object]] = [
            {"case": entry.case.label, "commands": [_composed(entry)]}
            for group in ready.groups
            for entry in group.entries.values()
        ]
    for case, why in ready.unmeasured:
        planned.append({"case": case.label, "unmeasured": why.reason, "remedy": why.remedy})
    return planned


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """Environments that stand, and what is to be run in them."""

    places: tuple[PreparedEnvironment, ...]
    groups: tuple[Comparison, ...]
    unmeasured: tuple[tuple[Case, Unmeasured], ...]
    shelf: BinaryCache
    scratch: str


def check_beside(wanted: Wanted) -> None:
    """UsageError for an unknown probe, EnvironmentRefused for an environment that nobody has."""
    chosen(wanted.probes, len(wanted.environments))
    _asked(wanted)


def _asked(wanted: Wanted) -> list[Environment]:
    return [environment(word) for word in wanted.environments]


@contextmanager
def _ready(wanted: Wanted, node: Facts, emit: Emit) -> Iterator[_Ready]:
    probes = chosen(wanted.probes, len(wanted.environments))
    asked = _asked(wanted)
    with (
        scratch_in(wanted.scratch) as scratch,
        tempfile.TemporaryDirectory(prefix="beside-", dir=engine.session_folder()) as name,
    ):
        folder = Path(name)
        shelf = BinaryCache(folder)
        emit(Progress(doing="making the environments ready"))
        tries = _tries(node, shelf)
        with places(wanted, asked, node, tries, folder, Path(scratch)) as made:
            emit(Progress(doing="putting the programs into them"))
            made = with_trials(probes, made, node, shelf)
            everywhere = _with_tried(node, allowed_everywhere(p.entered for p in made))
            groups, unmeasured = groups_of(made, everywhere, wanted, shelf)
            yield _Ready(
                places=made, groups=groups, unmeasured=unmeasured, shelf=shelf, scratch=scratch
            )


def _tries(node: Facts, shelf: BinaryCache) -> Bundle | None:
    """The program that tells what the kernel lets us do; None without a compiler."""
    compiler = best_compiler(node)
    if compiler is None:
        return None
    return shelf.bundled(shelf.built(built_by("tries.c", compiler, ("-O2",))))


def _with_tried(node: Facts, tried: Sequence[Tried]) -> Facts:
    """The node's facts, allowed no more than all environments are."""
    merged = {t.name: t for t in (*node.tried, *tried)}
    return replace(node, tried=tuple(merged.values()))


def _composed(entry: ComparisonCase) -> str:
    """launcher . runtime . flowos-init . argv, as it would be started."""
    program = entry.program
    prepared = entry.place.prepared(entry.words, program)
    try:
        words, _ = engine.composed(prepared)
    finally:
        prepared.discard()
    return " ".join((*(f"{n}={shlex.quote(v)}" for n, v in program.variables), shlex.join(words)))


@dataclass(slots=True, kw_only=True)
class _Session:
    """A run under way: what could not be measured, and which verdicts were shown."""

    sampler: Sampler
    base: str
    unmeasured: dict[Case, Unmeasured] = field(default_factory=dict)
    told: set[tuple[str, str]] = field(default_factory=set)
    """Probe and environment of what is told on the whole."""

    def measure(self, groups: Sequence[Comparison]) -> None:
        """Rounds in turns until all are through, each probe given as much time as the others.

        By time, as a round of storage takes as long as twenty of arithmetic, which needs as many.
        What is told on the whole waits until the rest is; then single cases get what time is left.
        """
        for group in groups:
            seed = f"{self.sampler.run.id} {group.design.cases[0].label}"
            group.design = replace(group.design, seed=seed)
        through: list[Comparison] = []
        while going := [g for g in groups if g not in through]:
            untold = [g for g in going if self._untold(g)]
            group = min(untold or going, key=lambda g: (self._spent(groups, g.probe), g.rounds))
            cases = self._on_the_whole(group) if untold else self._next(group)
            if cases:
                self._round(group, cases)
                self._judge([g for g in groups if g.probe == group.probe])
            else:
                through.append(group)
                self._close(group)

    def _spent(self, groups: Sequence[Comparison], probe: Probe) -> float:
        return sum(g.spent_seconds for g in groups if g.probe == probe)

    def _untold(self, group: Comparison) -> tuple[Case, ...]:
        """Its cases in environments in which its probe is not told on the whole, and can be."""
        _, *others = group.design.cases
        return tuple(
            case
            for case in others
            if case not in self.unmeasured
            and (group.probe.name, case.level(ENV)) not in self.told
            and group.rounds < group.design.looks[-1]
        )

    def _on_the_whole(self, group: Comparison) -> tuple[Case, ...]:
        """The next round of what is untold; () where the time is out."""
        base = group.design.cases[0]
        order = turns((base, *self._untold(group)), group.rounds, group.design.seed)
        seconds = sum(group.design.seconds.get(case, 0.0) for case in order)
        fits = seconds <= self.sampler.left_seconds
        return order if fits and base not in self.unmeasured else ()

    def _judge(self, groups: Sequence[Comparison]) -> None:
        """Look at a probe on the whole, when the last of its comparisons has come to a look."""
        design = groups[0].design
        rounds = {g.rounds for g in groups if self._untold(g)} or {g.rounds for g in groups}
        if len(rounds) > 1 or not rounds <= set(design.looks):
            return
        verdicts = geomean_verdict(
            [sample for group in groups for sample in group.deciding],
            axis=ENV,
            base=self.base,
            margin=design.margin,
            looks=len(design.looks),
            limits=self._limits(groups[0]),
        )
        probe = groups[0].probe.name
        new = [v for v in verdicts if (probe, v.other) not in self.told]
        self.told |= {(probe, v.other) for v in new if v.answer != "inconclusive"}
        self._tell(new)

    def _next(self, group: Comparison) -> tuple[Case, ...]:
        """The next round of a comparison for its own sake; () when it is told."""
        deciding = group.deciding
        limits = self._limits(group)
        if verdicts := judged(group.design, deciding, limits):
            group.design = narrowed(group.design, verdicts)
            self._tell(verdicts)
        left = tuple(c for c in group.design.cases if c not in self.unmeasured)
        if len(left) < 2 or left[0].level(ENV) != self.base:
            return ()
        return next_round(
            replace(group.design, cases=left), deciding, self.sampler.left_seconds, limits
        )

    def _round(self, group: Comparison, cases: Sequence[Case]) -> None:
        group.rounds += 1
        at_once = [list(dict.fromkeys(cases))] if group.in_turns else [[case] for case in cases]
        for those in at_once:
            those = [case for case in those if case not in self.unmeasured]
            if those and self.sampler.left_seconds > 0:
                self._together(group, those, len(cases) // len(at_once))

    def _together(self, group: Comparison, cases: Sequence[Case], shares: int) -> None:
        """Sample these cases at once; `shares`: into how many the time that it takes is divided."""
        began = engine.now()
        entries = [self._limited(group.entries[case], len(cases)) for case in cases]
        found = self.sampler.sample_together(
            cases,
            group.rounds,
            partial(answers_of, entries, f"{group.design.seed} {group.rounds}"),
            others=all(entry.place.all_ours for entry in entries),
            on_storage=any(entry.program.on_storage for entry in entries),
        )
        took = engine.now() - began
        group.spent_seconds += took
        for case, samples in zip(cases, found, strict=True):
            if isinstance(samples, Unmeasured):
                if samples != STOPPED or not any(s.case == case for s in group.seen):
                    self.unmeasured[case] = samples
            else:
                group.seen += samples
        seconds = dict.fromkeys(cases, took / shares)
        group.design = replace(group.design, seconds={**group.design.seconds, **seconds})

    def _limited(self, entry: ComparisonCase, among: int) -> ComparisonCase:
        return replace(entry, program=self.sampler.limited(entry.program, among))

    def _close(self, group: Comparison) -> None:
        """Say of each case that was never measured why not."""
        base = next(iter(group.entries))
        why = _OUT_OF_TIME
        if base in self.unmeasured:
            why = Unmeasured(reason=f"{base.label}, the base, could not be measured")
        seen = {s.case.level(ENV) for s in group.seen}
        for case in group.entries:
            if case.level(ENV) not in seen:
                self.unmeasured.setdefault(case, why)

    def _tell(self, verdicts: Sequence[Verdict]) -> None:
        for v in verdicts:
            if v.answer != "inconclusive":
                where = " ".join((v.metric, *(f"{axis}={level}" for axis, level in v.rest)))
                line = f"{v.probe} {where}: {v.other} {v.answer} ({v.ratio:.3f})"
                self.sampler.emit(Progress(doing=line, lasting=True))

    def _limits(self, group: Comparison) -> NoiseThresholds:
        return limits_for(self.sampler.run.facts.architecture, (s.state for s in group.seen))
