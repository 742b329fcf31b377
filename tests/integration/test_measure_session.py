"""Rounds of one session, with given answers: in one environment and between several."""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.model import (
    BARE,
    Case,
    Design,
    Entered,
    Exited,
    Facts,
    MeasureError,
    MeasurementRequest,
    Outcome,
    Progress,
    Reading,
    Run,
    Sample,
    SuiteStep,
    Unmeasured,
)
from flowos.operations.measure._environments import PreparedEnvironment
from flowos.operations.measure._plan import Comparison, ComparisonCase, fit_together
from flowos.operations.measure._rounds import Block, blocks_of
from flowos.operations.measure._sampler import Sampler
from flowos.operations.measure._session import Session
from flowos.plan import NOISE_THRESHOLDS, NoiseThresholds
from flowos.probes import ComparedCase, Program, in_environment
from flowos.probes._tables import PROBES

NOWHERE = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)
"""Without a compiler, so that the machine is not spun between two samples."""

PROBE = {probe.name: probe for probe in PROBES}
Rates = Iterator[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given(ComparisonCase):
    """An entry whose answers are given; ends in MeasureError when there is none left."""

    rates: Rates

    def read(self) -> tuple[tuple[Reading, ...], Outcome]:
        return self.read_of(Outcome(end=Exited(0)))

    def read_of(self, outcome: Outcome) -> tuple[tuple[Reading, ...], Outcome]:
        rate = next(self.rates, None)
        if rate is None:
            raise MeasureError("it broke")
        (metric,) = self.compared.probe.info.deciding
        values = (rate,) * (4 if self.program.takes_turns else 1)
        return (Reading(metric=metric, unit="1/s", values=values),), outcome


def entry(probe: str, shown: Case, label: str, rates: Rates, *, takes_turns: bool) -> Given:
    place = PreparedEnvironment(
        node=here(),
        entered=Entered(label=label or "bare"),
        env=BARE,
        folder=Path("/"),
        scratch=Path("/"),
        binary="same",
        facts=NOWHERE,
        cwd=Path("/"),
    )
    return Given(
        place=place,
        compared=ComparedCase(probe=PROBE[probe], case=shown, shown=shown),
        case=in_environment(shown, label) if label else shown,
        program=Program(argv=(), takes_turns=takes_turns),
        words=("true",),
        rates=rates,
    )


def group(name: str, probe: str = "startup", *, interleaved: bool = False, **rates: Rates) -> Block:
    """A comparison; keywords are the environments, the base first. In turns, `true` is started."""
    shown = Case(probe, (("name", name),))
    entries = tuple(entry(probe, shown, *each, takes_turns=interleaved) for each in rates.items())
    comparison = Comparison(entries=entries, seconds=0.0, interleaved=interleaved)
    (block,) = blocks_of([comparison], "r")
    return block


def survey(probe: str, seconds: float = 0.1, **rates: Rates) -> Block:
    """The cases of a probe in one environment; keywords are their names."""
    comparisons = [
        Comparison(
            entries=(entry(probe, Case(probe, (("name", name),)), "", given, takes_turns=False),),
            seconds=seconds,
        )
        for name, given in rates.items()
    ]
    (block,) = blocks_of(comparisons, "r")
    return block


def always(rate: float) -> Rates:
    return itertools.repeat(rate)


def flickering(much: float = 1.25) -> Rates:
    """Every second round more, every other as much less: undecidable."""
    return itertools.cycle((much, much, 1 / much, 1 / much))


@dataclass
class Measured:
    session: Session
    samples: list[Sample] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def turns(self, name: str) -> list[tuple[int, str]]:
        """(round, environment) of each sample of a comparison, in order."""
        ours = [s for s in self.samples if s.case.level("name") == name]
        return [(s.round, s.case.level("env")) for s in ours]


class Undisturbed(Session):
    """Whatever this machine does meanwhile, nothing of it is marked."""

    def _limits(self, block: Block) -> NoiseThresholds:  # noqa: ARG002
        return replace(NOISE_THRESHOLDS, steal_share=math.inf, others_cpus=math.inf)


@pytest.fixture
def measured() -> Callable[..., Measured]:
    def measure(*groups: Block, seconds: float = 900.0, step: str = "") -> Measured:
        suite = SuiteStep(of="o", suite="s", probe=step) if step else None
        request = MeasurementRequest(suite=suite)
        run = Run(id="r", started="", host="h", version="0", request=request, facts=NOWHERE)
        samples: list[Sample] = []
        said: list[str] = []

        def on_progress(progress: Progress) -> None:
            if progress.lasting:
                said.append(progress.doing)

        sampler = Sampler(run=run, node=here(), keep=samples.append, on_progress=on_progress)
        sampler.begin(seconds)
        session = Undisturbed(sampler=sampler)
        session.measure(groups)
        return Measured(session, samples, said)

    return measure


def test_a_probe_that_is_told_on_the_whole_leaves_the_time_to_the_others(
    measured: Callable[..., Measured],
) -> None:
    done = measured(
        group("a", bare=always(1), one=always(1)),
        group("b", "stream", bare=always(1), one=flickering()),
    )
    assert [s.case.level("name") for s in done.samples[:8]] == ["a"] * 4 + ["b"] * 4
    assert max(number for number, _ in done.turns("a")) == 16
    assert max(number for number, _ in done.turns("b")) >= 32
    assert done.said == [
        "geomean startup: one equal (1.000)",
        "startup startup name=a: one equal (1.000)",
    ]


def test_what_a_single_case_still_lacks_is_measured_after_the_whole_is_told(
    measured: Callable[..., Measured],
) -> None:
    calm = [group(name, bare=always(1), one=always(1)) for name in "abcdefg"]
    done = measured(*calm, group("h", bare=always(1), one=flickering(1.05)))
    assert done.said[0] == "geomean startup: one equal (1.000)"
    first = [s.case.level("name") for s in done.samples[: 16 * 4 * 8]]
    assert sorted(first) == sorted("abcdefgh" * 64)
    assert {max(n for n, _ in done.turns(name)) for name in "abcdefg"} == {16}
    assert max(n for n, _ in done.turns("h")) > 16


def test_an_environment_that_is_told_is_measured_no_more_and_the_others_are(
    measured: Callable[..., Measured],
) -> None:
    done = measured(group("a", bare=always(1), slow=always(0.5), noisy=flickering()))
    rounds = {env: {n for n, e in done.turns("a") if e == env} for env in ("bare", "slow", "noisy")}
    assert rounds["slow"] == {1, 2, 3, 4}
    assert rounds["noisy"] == rounds["bare"] > rounds["slow"]


def test_an_environment_that_breaks_is_said_and_the_others_go_on(
    measured: Callable[..., Measured],
) -> None:
    done = measured(group("a", bare=always(1), breaks=iter([1.0, 1.0, 1.0]), one=always(1)))
    (case,) = done.session.unmeasured
    assert case.level("env") == "breaks"
    assert done.session.unmeasured[case] == Unmeasured(reason="it broke")
    assert "geomean startup: one equal (1.000)" in done.said


def test_without_its_base_a_comparison_ends_and_the_next_goes_on(
    measured: Callable[..., Measured],
) -> None:
    done = measured(
        group("a", bare=iter(()), one=iter(())), group("b", bare=always(1), one=always(1))
    )
    reasons = {c.level("env"): why.reason for c, why in done.session.unmeasured.items()}
    assert reasons == {"bare": "it broke", "one": "it broke"}
    assert "geomean startup: one equal (1.000)" in done.said


def test_what_the_time_does_not_reach_is_named(measured: Callable[..., Measured]) -> None:
    late = group("a", bare=always(1), one=always(1))
    late.design = Design(
        cases=late.design.cases,
        axis="env",
        base="bare",
        seconds=dict.fromkeys(late.design.cases, 10.0),
    )
    done = measured(late, seconds=5.0)
    assert done.samples == []
    assert {"--minutes" in why.remedy for why in done.session.unmeasured.values()} == {True}
    assert len(done.session.unmeasured) == 2


def test_in_turns_a_round_is_one_sample_of_each_all_started_at_once(
    measured: Callable[..., Measured],
) -> None:
    done = measured(group("a", interleaved=True, bare=always(1), one=always(1), two=always(0.9)))
    numbers = [number for number, _ in done.turns("a")]
    assert numbers[:12] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert max(numbers) == 32
    assert {s.interleaved for s in done.samples} == {True}
    assert {s.values for s in done.samples} == {(1.0,) * 4, (0.9,) * 4}
    assert "geomean startup: one equal (1.000)" in done.said
    assert "geomean startup: two slower (0.900)" in done.said


def test_in_turns_one_that_breaks_leaves_the_others_to_go_on(
    measured: Callable[..., Measured],
) -> None:
    done = measured(group("a", interleaved=True, bare=always(1), one=always(1), two=iter((1.0,))))
    reasons = {c.level("env"): why.reason for c, why in done.session.unmeasured.items()}
    assert reasons == {"two": "it broke"}
    assert "geomean startup: one equal (1.000)" in done.said


@pytest.mark.parametrize(
    ("memory", "takes_turns", "fit"),
    [(4e9, (True, True), True), (3.9e9, (True, True), False), (4e9, (True, False), False)],
)
def test_programs_run_side_by_side_if_all_take_turns_and_half_of_the_memory_holds_them(
    memory: float, takes_turns: tuple[bool, ...], fit: bool
) -> None:
    programs = [Program(argv=(), takes_turns=t, memory_bytes=10**9) for t in takes_turns]
    assert fit_together(programs, replace(NOWHERE, memory_bytes=int(memory))) is fit


def test_in_one_environment_each_probe_has_a_first_round_there_and_back_before_any_has_a_second(
    measured: Callable[..., Measured],
) -> None:
    done = measured(
        survey("stream", a=always(1), b=always(2)), survey("gemm", c=always(1)), seconds=60.0
    )
    names = [s.case.level("name") for s in done.samples]
    assert names[0] == "c"  # the shortest first
    assert names[1:5] in (list("abba"), list("baab"))
    assert sorted(names[5:]) == sorted("ab" * 6)
    assert {s.case.level("env", "none") for s in done.samples} == {"none"}
    assert done.said == []


def test_rounds_without_which_nothing_is_concluded_come_before_repeats_of_what_is_uncertain(
    measured: Callable[..., Measured],
) -> None:
    uncertain = survey("gemm", c=itertools.cycle((1.0, 1.5)), d=itertools.cycle((1.0, 1.5)))
    compared = survey("stream", a=always(1), b=always(2))
    done = measured(uncertain, compared, seconds=60.0)
    names = [s.case.level("name") for s in done.samples]
    assert sorted(names[:8]) == sorted("abcd" * 2)
    assert sorted(names[8:20]) == sorted("ab" * 6)
    assert set(names[20:]) == {"c", "d"}


def slowly(seconds: float) -> Rates:
    while True:
        time.sleep(seconds)
        yield 1.0


def test_where_all_takes_longer_than_estimated_each_case_is_measured_once_before_any_again(
    measured: Callable[..., Measured],
) -> None:
    """By the estimates there is time for whole rounds."""
    done = measured(
        survey("gemm", 0.01, slow=slowly(0.1)),
        survey("stream", 2.0, a=always(1), b=always(1)),
        survey("gemm", 5.0, other=always(1)),
        seconds=30.0,
    )
    first, *pair, other = [s.case.level("name") for s in done.samples[:4]]
    assert (first, sorted(pair), other) == ("slow", ["a", "b"], "other")


def test_what_only_bounds_the_numbers_of_a_step_is_measured_after_it(
    measured: Callable[..., Measured],
) -> None:
    blocks = survey("gemm", 1.0, ceiling=always(1)), survey("stream", 2.0, a=always(1), b=always(1))
    done = measured(*blocks, seconds=900.0, step="stream")
    names = [s.case.level("name") for s in done.samples]
    assert names.count("ceiling") >= 1
    assert names[: names.index("ceiling")].count("a") == 8


def test_a_ceiling_that_takes_too_long_leaves_the_step_as_it_is(
    measured: Callable[..., Measured],
) -> None:
    blocks = survey("gemm", 50.0, ceiling=always(1)), survey("stream", 10.0, a=always(1))
    done = measured(*blocks, seconds=24.0, step="stream")
    assert {s.case.level("name") for s in done.samples} == {"a"}
    assert {c.level("name"): why.reason for c, why in done.session.unmeasured.items()} == {
        "ceiling": "the time was out before its turn"
    }


def test_a_comparison_without_time_for_a_round_says_how_much_it_needs(
    measured: Callable[..., Measured],
) -> None:
    block = group("a", bare=always(1), one=always(1))
    block.design = replace(block.design, seconds=dict.fromkeys(block.design.cases, 28.0))
    done = measured(block, seconds=59.6)
    assert not done.samples
    (why,) = set(done.session.unmeasured.values())
    words = "its first round needs about 112 s, and 60 s were left"
    assert why.reason == f"it had too little time: {words}"
    assert why.remedy == "give more time, as in `flowos measure --minutes 9 --scratch /tmp`"


def test_a_program_that_takes_far_longer_than_estimated_is_stopped_where_others_need_the_time(
    measured: Callable[..., Measured],
) -> None:
    slow, other = survey("stream", 0.1, slow=always(1)), survey("gemm", 19.5, c=always(1))
    ((case, given),) = slow.entries.items()
    slow.entries = {
        case: ComparisonCase(
            place=given.place,
            compared=given.compared,
            case=case,
            program=given.program,
            words=("sleep", "100"),
        )
    }
    done = measured(slow, other, seconds=20.0)
    assert [why.reason for why in done.session.unmeasured.values()] == [
        "it took far longer than estimated, and was stopped, as others need the time"
    ]
    assert {s.case.level("name") for s in done.samples} == {"c"}
    assert done.session.cut


def test_in_one_environment_a_case_that_breaks_leaves_the_others_to_go_on(
    measured: Callable[..., Measured],
) -> None:
    done = measured(survey("gemm", a=iter(()), b=always(1)))
    assert {c.level("name"): why.reason for c, why in done.session.unmeasured.items()} == {
        "a": "it broke"
    }
    assert {s.case.level("name") for s in done.samples} == {"b"}


def test_in_one_environment_what_the_time_does_not_reach_is_named(
    measured: Callable[..., Measured],
) -> None:
    done = measured(survey("gemm", 10.0, a=always(1)), survey("stream", b=always(1)), seconds=5.0)
    assert {c.level("name") for c in done.session.unmeasured} == {"a"}
    assert {s.case.level("name") for s in done.samples} == {"b"}


def test_a_survey_takes_all_cases_of_a_probe_in_its_rounds_and_a_comparison_one_case() -> None:
    both = [group(name, bare=always(1), one=always(1)) for name in "ab"]
    assert {len(block.entries) for block in (*both, survey("gemm", a=always(1), b=always(1)))} == {
        2
    }
    assert both[0].design.axis == "env"
    assert survey("stream", a=always(1)).design.min_rounds == PROBE["stream"].info.rounds
