"""`flowos measure`: environments are made ready, programs compiled, then rounds of cases run.

With one environment the cases of a probe are interleaved, and probes follow each other: a first
round of each, then those that conclusions need, then others; first what was asked for, then what
only bounds its numbers. With
several each case is compared between them, and rounds of all comparisons alternate, so that each
spans the whole time; one that is decided ends, and so does an environment inside it.
Success: every case was measured in at least one whole round, or has a reason why not; each
comparison has its verdicts, or says that the time was over.
While it measures, it has the node for itself, as a task that is to be alone has.
Failure: an environment that cannot be made ready ends the run before anything is measured; a case
that fails becomes an `Unmeasured` with the reason, and the others continue.
A node that is lost: the run ends, with the samples from before.
Ctrl-C: samples are kept, and the run so far is returned; raises KeyboardInterrupt without samples.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath

from flowos import engine
from flowos._dataclasses import dataclass, field, replace
from flowos.engine import LaunchGroup, Node
from flowos.model import (
    BARE,
    Cancelled,
    Case,
    Deployment,
    Design,
    Environment,
    OnProgress,
    Progress,
    Run,
    Sample,
    Unmeasured,
    Verdict,
)
from flowos.operations._scratch import OWN_STORAGE
from flowos.operations.measure._alone import Patience, await_tasks, node_alone
from flowos.operations.measure._own_command import own_command
from flowos.operations.measure._plan import ComparisonCase, answers_of
from flowos.operations.measure._prepare import ready_run
from flowos.operations.measure._rounds import Block, blocks_of, without
from flowos.operations.measure._sampler import TIME_WAS_OUT, Sampler
from flowos.operations.measure._time import (
    MIN_SHARE,
    STOPPED,
    TOOK_TOO_LONG,
    as_often_as_time_allows,
    at_pace,
    budget_seconds,
    enough_minutes,
    kept_for_ceilings,
    longest_sample,
    not_reached,
    once_each,
    once_seconds,
    round_seconds,
    seconds_for,
)
from flowos.operations.measure._warm_up import warmed_up
from flowos.plan import (
    NoiseThresholds,
    geomean_verdict,
    judged,
    limits_for,
    narrowed,
    next_round,
    one_round,
)
from flowos.probes import Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedOn:
    """The first node of a deployment; the others are its neighbours.

    gone: says what became of a node once one of them is lost, or all are given back; else "".
    launches: end then. own_storage: a folder on each node's own, which may have to be made.
    """

    node: Node
    deployment: Deployment
    gone: Callable[[], str] = str
    launches: LaunchGroup = field(default_factory=LaunchGroup)
    own_storage: PurePath = OWN_STORAGE


def measure(
    run: Run,
    *,
    environments: Sequence[tuple[str, Environment]] = (("bare", BARE),),
    on: DeployedOn | None = None,
    keep: Callable[[Sample], None],
    on_progress: OnProgress,
    seconds: float | None = None,
) -> Run:
    """Measure what `run.request` asks for in these environments; hand each sample to `keep`.

    on: what is measured; this machine by default. seconds: the budget, which is used up by
    more rounds; by default that of the effort. Returns the run, with what could not be measured.
    Raises EnvironmentRefused if an environment cannot be made ready, MeasureError if a command of
    the user fails before it is measured, SliceRefused if tasks of this program run there for longer
    than the budget. On Ctrl-C the samples so far are kept; before the first one KeyboardInterrupt
    is raised.
    """
    node = engine.here() if on is None else on.node
    sampler = Sampler(run=run, node=node, keep=keep, on_progress=on_progress)
    launches = LaunchGroup()
    if on is not None:
        sampler.gone, launches = on.gone, on.launches
    session = Session(sampler=sampler, uses_up=seconds is not None)
    several = max(len(environments), len(run.request.commands))
    budget = budget_seconds(run.request.effort, several) if seconds is None else seconds
    ended_early, patience = "", Patience(budget)
    try:
        await_tasks(node, patience, on_progress)
        own_storage = on.own_storage if on else OWN_STORAGE
        with ready_run(
            run.request, run.facts, node, environments, on_progress, own_storage
        ) as ready:
            if len(environments) > 1:
                run = replace(run, environments=tuple(p.entered for p in ready.places))
            session.unmeasured.update(ready.plan.unmeasured)
            sampler.scratch, sampler.spin = ready.scratch, ready.spin
            with node_alone(node, patience, on_progress), launches.joined():
                sampler.begin(budget)
                comparisons = tuple(warmed_up(ready.plan, sampler, session.unmeasured))
                session.measure(list(blocks_of(comparisons, run.id)))
        ended_early = TIME_WAS_OUT if session.cut else ""
    except (KeyboardInterrupt, Cancelled):
        ended_early = sampler.end_early()
    unmeasured = tuple(session.unmeasured.items())
    return replace(run, unmeasured=unmeasured, ended=engine.utc(), ended_early=ended_early)


@dataclass(slots=True, kw_only=True)
class Session:
    """A run under way: what could not be measured, and which verdicts were shown.

    uses_up: are rounds added until the time is over? cut: was a probe's round not finished because
    the time was over?
    """

    sampler: Sampler
    uses_up: bool = False
    unmeasured: dict[Case, Unmeasured] = field(default_factory=dict)
    decided: set[tuple[str, str]] = field(default_factory=set)
    """Probes and environments with an overall verdict."""
    cut: bool = False
    minutes: int = 1
    """Which would have been enough."""
    _took: float = 0.0
    _estimated: float = 0.0
    """Seconds of all samples so far."""
    _latest: Block | None = None

    def measure(self, blocks: Sequence[Block]) -> None:
        """Run rounds until all blocks are finished."""
        open_ = list(blocks)
        self.minutes = enough_minutes(block.design for block in blocks)
        while open_:
            block = self._turn(open_, blocks)
            cases = self._next_round(block)
            if cases:
                self._round(block, cases)
                self._judge([b for b in blocks if b.probe is block.probe])
            if not cases or self._had_enough(block):
                open_.remove(block)
                self._close(block)

    def _turn(self, open_: Sequence[Block], blocks: Sequence[Block]) -> Block:
        """Which block has the next round.

        One environment: a block without a round, the shortest first; then the first that lacks
        rounds, then the first unfinished one, until its share of the time is over. Several: among
        probes without an overall verdict the one that had least time so far; by time, as a round of
        storage takes as long as twenty of arithmetic, which needs as many. Probes with an overall
        verdict wait for the others; then single cases get the time that is left.
        """
        if open_[0].design.axis:
            undecided = [b for b in open_ if self._undecided(b)]
            return min(undecided or open_, key=lambda b: (_spent(blocks, b.probe), b.rounds))
        asked = [b for b in open_ if self._is_asked(b)]
        waiting = asked or open_
        new = [b for b in waiting if not b.rounds]
        lacking = [b for b in waiting if b.lacking]
        block = min(new, key=lambda b: once_seconds(b.design)) if new else (lacking or waiting)[0]
        if block.rounds <= 1 or block is not self._latest:
            others = [b for b in new or waiting if b is not block]
            ceilings = [b.design for b in open_ if b not in waiting]
            self._share_out(block, others, ceilings)
        self._latest = block
        return block

    def _is_asked(self, block: Block) -> bool:
        """Not only to bound the numbers of a suite's step."""
        step = self.sampler.run.request.suite
        return step is None or step.probe == block.probe.name

    def _share_out(self, block: Block, others: Sequence[Block], ceilings: Sequence[Design]) -> None:
        """Set when its first round has to end, or all others, with these still to come."""
        left = self.sampler.left_seconds
        kept = kept_for_ceilings(list(map(self._at_pace, ceilings)), left)
        paced = self._at_pace(block.design)
        first = paced if once_seconds(paced) <= left - kept else block.design
        later = [b.design for b in others]
        needed = [_needed(b, among=block) for b in (block, *others)]
        share = seconds_for([first, *map(self._at_pace, later)], needed, left - kept)
        block.until = engine.now() + share
        block.reserve = once_each(later) + kept
        if self.uses_up and block.rounds:
            block.design = as_often_as_time_allows(block.design)

    def _had_enough(self, block: Block) -> bool:
        """Does its first round tell enough, however much time is left?"""
        if block.design.axis or block.rounds != 1:
            return False
        design = as_often_as_time_allows(block.design) if self.uses_up else block.design
        return not self._another_round(block, design, math.inf)

    def _undecided(self, block: Block) -> tuple[Case, ...]:
        """Its cases in environments without an overall verdict of its probe, which may get one."""
        _, *others = block.design.cases
        return tuple(
            case
            for case in others
            if case not in self.unmeasured
            and (block.probe.name, case.level(block.design.axis)) not in self.decided
            and block.rounds < block.design.looks[-1]
        )

    def _next_round(self, block: Block) -> tuple[Case, ...]:
        """The cases of the next round, in their order; () once the block is finished."""
        if not block.design.axis:
            return self._another_round(block, block.design, block.until - engine.now())
        if self._undecided(block):
            return self._on_the_whole(block)
        return self._for_its_own_sake(block)

    def _another_round(self, block: Block, design: Design, left: float) -> tuple[Case, ...]:
        """Of cases that are compared with nothing; the first, if it fits by the estimates only."""
        seen = block.deciding if block.probe.info.versus else block.seen
        design, limits = without(design, self.unmeasured), self._limits(block)
        cases = next_round(self._at_pace(design), seen, left, limits)
        return cases if cases or block.rounds else next_round(design, seen, left, limits)

    def _at_pace(self, design: Design) -> Design:
        return at_pace(design, self._took, self._estimated)

    def _on_the_whole(self, block: Block) -> tuple[Case, ...]:
        """The next round of undecided cases; () if the time is over."""
        base = block.design.cases[0]
        if base in self.unmeasured:
            return ()
        cases = (base, *self._undecided(block))
        return one_round(block.design, cases, block.rounds, self.sampler.left_seconds)

    def _for_its_own_sake(self, block: Block) -> tuple[Case, ...]:
        """The next round of a comparison; () once it is decided."""
        deciding, limits = block.deciding, self._limits(block)
        if verdicts := judged(block.design, deciding, limits):
            block.design = narrowed(block.design, verdicts)
            self._show(verdicts)
        left = without(block.design, self.unmeasured)
        if len(left.cases) < 2 or left.cases[0].level(left.axis) != left.base:
            return ()
        return next_round(left, deciding, self.sampler.left_seconds, limits)

    def _judge(self, blocks: Sequence[Block]) -> None:
        """Compute a probe's overall verdict once all its comparisons have reached the same look."""
        design, name = blocks[0].design, blocks[0].probe.name
        if not design.axis:
            return
        rounds = {b.rounds for b in blocks if self._undecided(b)} or {b.rounds for b in blocks}
        if len(rounds) > 1 or not rounds <= set(design.looks):
            return
        verdicts = geomean_verdict(
            [sample for block in blocks for sample in block.deciding],
            axis=design.axis,
            base=design.base,
            margin=design.margin,
            looks=len(design.looks),
            limits=self._limits(blocks[0]),
        )
        new = [v for v in verdicts if (name, v.other) not in self.decided]
        self.decided |= {(name, v.other) for v in new if v.answer != "inconclusive"}
        if design.axis != blocks[0].probe.info.versus:  # else its only comparison says the same
            self._show(new)

    def _round(self, block: Block, cases: Sequence[Case]) -> None:
        block.rounds += 1
        at_once = [list(dict.fromkeys(cases))] if block.interleaved else [[case] for case in cases]
        for those in at_once:
            those = [case for case in those if case not in self.unmeasured]
            if self._is_over(block):
                self._cut(block)
                return
            if those:
                self._sample(block, those, len(cases) // len(at_once))

    def _is_over(self, block: Block) -> bool:
        """Is its time out?

        A round that takes longer than estimated, as on a busy machine, is cut if it would use most
        of the time that later probes need.
        """
        left = self.sampler.left_seconds
        return left <= 0 or (engine.now() >= block.until and left < MIN_SHARE * block.reserve)

    def _cut(self, block: Block) -> None:
        block.until = engine.now()
        self.cut |= not block.design.axis

    def _sample(self, block: Block, cases: Sequence[Case], shares: int) -> None:
        """Sample these cases at once. shares: number of parts that its time is divided into."""
        began = engine.now()
        longest = self._longest(block, cases)
        entries = [self._limited(block.entries[case], len(cases), longest) for case in cases]
        found = self.sampler.sample(
            cases,
            block.rounds,
            partial(answers_of, entries, f"{block.design.seed} {block.rounds}"),
            others=all(entry.place.all_ours for entry in entries),
            on_storage=any(entry.program.on_storage for entry in entries),
            on_gpu=all(entry.program.on_gpu for entry in entries),
        )
        took = engine.now() - began
        block.spent_seconds += took
        self._took += took
        self._estimated += sum(block.design.seconds[case] for case in cases)
        for case, samples in zip(cases, found, strict=True):
            if isinstance(samples, Unmeasured) and samples != STOPPED and took >= longest:
                samples = TOOK_TOO_LONG
            if not isinstance(samples, Unmeasured):
                block.seen += samples
            elif (
                samples not in (STOPPED, TOOK_TOO_LONG) or case not in block.tried
            ):  # its samples are kept
                self.unmeasured[case] = samples
            self.cut |= samples in (STOPPED, TOOK_TOO_LONG) and not block.design.axis
            block.tried.add(case)
        if block.design.axis:
            seconds = {**block.design.seconds, **dict.fromkeys(cases, took / shares)}
            block.design = replace(block.design, seconds=seconds)

    def _longest(self, block: Block, cases: Sequence[Case]) -> float:
        """Seconds after which they are stopped, so that others get their turn."""
        if block.design.axis or not block.reserve:
            return math.inf
        estimate = sum(block.design.seconds[case] for case in cases)
        return longest_sample(estimate, self.sampler.left_seconds, block.reserve)

    def _limited(self, entry: ComparisonCase, among: int, longest: float) -> ComparisonCase:
        program = self.sampler.limited(entry.program, among)
        return replace(
            entry, program=replace(program, limit_seconds=min(program.limit_seconds, longest))
        )

    def _close(self, block: Block) -> None:
        """Record a reason for each case that was never measured."""
        base = next(iter(block.entries))
        command = own_command(self.sampler.run, self.minutes)
        left = self.sampler.left_seconds if block.design.axis else 0.0
        why = not_reached(round_seconds(block.design), left, command)
        if block.design.axis and base in self.unmeasured:
            why = Unmeasured(reason=f"{base.label}, the base, could not be measured")
        for case in block.entries:
            if case not in block.tried:
                self.unmeasured.setdefault(case, why)

    def _show(self, verdicts: Sequence[Verdict]) -> None:
        for v in verdicts:
            if v.answer != "inconclusive":
                where = " ".join((v.metric, *(f"{axis}={level}" for axis, level in v.rest)))
                line = f"{v.probe} {where}: {v.other} {v.answer} ({v.ratio:.3f})"
                self.sampler.on_progress(Progress(doing=line, lasting=True))

    def _limits(self, block: Block) -> NoiseThresholds:
        return limits_for(self.sampler.run.facts.architecture, (s.state for s in block.seen))


def _needed(block: Block, *, among: Block) -> int:
    """Rounds that it is to have next to this one: a first, then those that it lacks, then one."""
    return block.lacking if among.rounds and among.lacking else 1


def _spent(blocks: Sequence[Block], probe: Probe) -> float:
    return sum(b.spent_seconds for b in blocks if b.probe is probe)
