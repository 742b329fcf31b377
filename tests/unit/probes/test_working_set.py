import json
from collections.abc import Callable

import pytest

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes import SUSPICIOUS
from flowos.probes.working_set import (
    BEYOND_CACHES,
    FARTHEST_BYTES,
    WorkingSet,
    caches_found,
)

PROBE = WorkingSet()
MakeNode = Callable[..., Facts]
CasesOf = Callable[..., tuple[Case, ...]]
MIB = 1 << 20
STREAM_BYTES = 3 * 128 * MIB


@pytest.fixture
def cases_of(node: MakeNode) -> CasesOf:
    def of(effort: Effort = "normal", **facts: int) -> tuple[Case, ...]:
        cases = PROBE.cases(node(**facts), MeasurementRequest(effort=effort))
        assert not isinstance(cases, Unmeasured)
        return cases

    return of


def answered(stdout: str) -> Outcome:
    return Outcome(end=Exited(0), stdout=stdout.encode())


def curve(
    metric: str, cache: float, memory: float, end: int = 512 * MIB
) -> list[dict[str, object]]:
    """Fast up to 1 MiB, `cache` up to 32 MiB, then `memory`."""
    sizes = [16384 * 2**i for i in range(16) if 16384 * 2**i <= end]
    rates = [400e9 if s <= MIB else cache if s <= 32 * MIB else memory for s in sizes]
    return [
        {"metric": metric, "unit": "byte/s", "levels": {"bytes": str(s)}, "values": [r / 2, r]}
        for s, r in zip(sizes, rates, strict=True)
    ]


@pytest.fixture
def read(cases_of: CasesOf) -> Callable[..., tuple[Reading, ...]]:
    def of(*curves: list[dict[str, object]]) -> tuple[Reading, ...]:
        text = json.dumps({"readings": [reading for one in curves for reading in one]})
        readings = PROBE.read(cases_of()[0], answered(text))
        assert not isinstance(readings, Unmeasured)
        return readings

    return of


def test_one_core_and_all_are_swept_and_with_full_effort_a_socket_too(cases_of: CasesOf) -> None:
    cores = [case.level("cores") for case in cases_of(sockets=2, cores=20)]
    assert cores == ["1", "40"]
    full = [case.level("cores") for case in cases_of("full", sockets=2, cores=20)]
    assert full == ["1", "20", "40"]


@pytest.mark.parametrize("effort", ["quick", "normal", "full"])
@pytest.mark.parametrize("l3_bytes", [8 * MIB, 32 * MIB, 300 * MIB])
def test_the_curve_goes_a_step_beyond_what_stream_works_on(
    cases_of: CasesOf, effort: Effort, l3_bytes: int
) -> None:
    case = cases_of(effort, l3_bytes=l3_bytes)[0]
    stream = 3 * max(64 * MIB, 4 * l3_bytes)
    assert int(case.detail("stream")) == stream
    last_but_one = int(case.detail("most")) / 2 ** (1 / int(case.detail("per_octave")))
    assert last_but_one >= BEYOND_CACHES * l3_bytes, "a size that no cache serves"
    assert int(case.detail("most")) > stream * 2 ** (1 / int(case.detail("per_octave")))
    assert int(case.detail("limit")) >= int(case.detail("most"))


@pytest.mark.parametrize(("effort", "most"), [("normal", 256 * MIB), ("full", 2048 * MIB)])
def test_beside_small_caches_it_goes_as_far_as_its_effort(
    cases_of: CasesOf, effort: Effort, most: int
) -> None:
    assert int(cases_of(effort, l3_bytes=8 * MIB)[0].detail("most")) == most


def test_a_curve_that_still_falls_goes_farther_but_not_for_minutes(cases_of: CasesOf) -> None:
    (small, _), (large, _) = cases_of(), cases_of(l3_bytes=1 << 30)
    assert int(small.detail("limit")) == 4 * int(small.detail("most"))
    assert int(large.detail("limit")) == int(large.detail("most")) > FARTHEST_BYTES


def test_the_curve_takes_at_most_half_of_the_memory(cases_of: CasesOf) -> None:
    (case, _) = cases_of(l3_bytes=300 * MIB, memory_bytes=1 << 30)
    assert (int(case.detail("most")), int(case.detail("limit"))) == (512 * MIB, 512 * MIB)


def test_each_core_begins_in_its_first_cache(cases_of: CasesOf) -> None:
    case = cases_of(cores=64)[-1]
    assert int(case.detail("least")) == 64 * 16384


def test_many_cores_in_little_memory_still_get_a_curve(cases_of: CasesOf) -> None:
    for case in cases_of(cores=64, memory_bytes=MIB >> 4):
        assert int(case.detail("most")) == 8 * int(case.detail("least"))
        assert int(case.detail("limit")) == 8 * int(case.detail("least"))


def test_the_command_line_says_all_that_was_decided(cases_of: CasesOf) -> None:
    program = PROBE.program(cases_of()[1])
    assert program.argv[:2] == ("--cpus", "0,1")
    words = dict(zip(program.argv[::2], program.argv[1::2], strict=True))
    sizes = {"--least", "--most", "--limit"}
    assert set(words) == {"--cpus", *sizes, "--per-octave", "--repetitions"}
    assert program.cores == 2
    assert program.build is not None
    assert program.build.libraries == ("-lm",)


@pytest.mark.parametrize(("effort", "most"), [("quick", 2.0), ("normal", 5.0), ("full", 60.0)])
def test_a_case_fits_the_time_of_its_effort(cases_of: CasesOf, effort: str, most: float) -> None:
    assert 0.1 < PROBE.seconds(cases_of(effort)[0]) < most


def test_memory_is_the_best_kernel_beyond_the_last_cache(
    read: Callable[..., tuple[Reading, ...]],
) -> None:
    readings = read(
        curve("read", 130e9, 40e9), curve("triad", 140e9, 41e9), curve("triad_nt", 120e9, 55e9)
    )
    memory = readings[-1]
    assert (memory.metric, max(memory.values)) == ("memory", 55e9)
    notes = dict(memory.notes)
    assert notes["kernel"] == "triad_nt"
    assert float(notes["from_bytes"]) == STREAM_BYTES
    ends = [float(end) for end in notes["caches_end_at"].split(",")]
    assert MIB <= ends[0] <= 2 * MIB
    assert 32 * MIB <= ends[1] <= 64 * MIB


def test_a_curve_without_a_last_plateau_uses_the_caches_that_the_system_reports(
    read: Callable[..., tuple[Reading, ...]],
) -> None:
    flat = curve("triad", 400e9, 400e9)
    memory = read(flat)[-1]
    assert memory.metric == "memory"
    assert float(dict(memory.notes)["from_bytes"]) == STREAM_BYTES


def falling(*rates: float) -> list[dict[str, object]]:
    """A triad curve whose last sizes are 128 MiB, 256 MiB, ... with these rates."""
    there = curve("triad", 400e9, 150e9, end=64 * MIB)
    more: list[dict[str, object]] = [
        {
            "metric": "triad",
            "unit": "byte/s",
            "levels": {"bytes": str(128 * MIB * 2**i)},
            "values": [r],
        }
        for i, r in enumerate(rates)
    ]
    return there + more


def test_memory_is_taken_where_stream_works_and_not_where_caches_still_help(
    read: Callable[..., tuple[Reading, ...]],
) -> None:
    memory = read(falling(144e9, 111e9, 60e9, 59e9))[-1]
    assert memory.values == (60e9, 59e9)
    assert SUSPICIOUS not in dict(memory.notes)


@pytest.mark.parametrize(("last", "said"), [(54.0e9, False), (53.9e9, True)])
def test_a_curve_that_is_not_flat_at_its_end_says_so(
    read: Callable[..., tuple[Reading, ...]], last: float, *, said: bool
) -> None:
    memory = read(falling(144e9, 111e9, 60e9, last))[-1]
    why = dict(memory.notes).get(SUSPICIOUS, "")
    assert bool(why) is said
    if said:
        assert why == (
            "the curve still falls where it ends: 10% from 512.0 MiB to 1024.0 MiB, so that caches"
            " may serve a part of it"
        )


def test_where_memory_is_too_small_for_stream_the_largest_size_counts(
    read: Callable[..., tuple[Reading, ...]],
) -> None:
    memory = read(curve("triad", 400e9, 60e9, end=256 * MIB))[-1]
    assert (memory.metric, memory.values) == ("memory", (60e9,))


def test_a_curve_that_ends_within_the_caches_says_nothing_of_memory(
    read: Callable[..., tuple[Reading, ...]],
) -> None:
    readings = read(curve("triad", 400e9, 400e9, end=16 * MIB))
    assert {r.metric for r in readings} == {"triad"}


def test_a_program_that_failed_gives_its_reason(cases_of: CasesOf) -> None:
    outcome = Outcome(end=Exited(1), stderr=b"triad gave 3 in all, not 4")
    answer = PROBE.read(cases_of()[0], outcome)
    assert isinstance(answer, Unmeasured)
    assert "triad gave 3" in answer.reason


def test_without_a_compiler_nothing_is_measured(node: MakeNode) -> None:
    assert isinstance(PROBE.cases(node(compilers=()), MeasurementRequest()), Unmeasured)


def test_nothing_bounds_memory(cases_of: CasesOf) -> None:
    assert PROBE.ceiling(cases_of()[0]) is None


def memory_of(cores: str, **details: str) -> Measurement:
    case = Case("working_set", levels=(("cores", cores),), details=tuple(details.items()))
    return Measurement(
        case=case,
        metric="memory",
        unit="byte/s",
        count=1,
        median=5e10,
        low=5e10,
        high=5e10,
        best=5e10,
    )


def test_the_caches_that_the_curve_shows_are_told_in_words() -> None:
    memory = memory_of("1", caches_end_at="49152,1048576,33554432", from_bytes="88080384")
    (finding,) = caches_found((memory, memory_of("2")))
    assert finding == (
        "with 1 core in use the working-set curve falls at 48 KiB, 1.0 MiB, 32.0 MiB;"
        " memory begins at 84.0 MiB"
    )


@pytest.mark.parametrize(("size", "said"), [(1023 << 10, "1023 KiB"), (1 << 20, "1.0 MiB")])
def test_sizes_are_said_in_mib_from_one_on(size: int, said: str) -> None:
    (finding,) = caches_found((memory_of("1", caches_end_at="4096", from_bytes=str(size)),))
    assert finding.endswith(f"falls at 4 KiB; memory begins at {said}")
