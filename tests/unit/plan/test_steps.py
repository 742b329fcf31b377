import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.plan import find_plateaus, find_steps, memory_plateau

CURVES = Path(__file__).parents[2] / "data" / "curves"
RECORDED = sorted(path.name for path in CURVES.glob("*.json"))
KIB, MIB = 1 << 10, 1 << 20


def recorded(name: str) -> tuple[list[int], list[float], list[int]]:
    """Sizes, rates, and the caches' true sizes."""
    curve = json.loads((CURVES / name).read_text())
    sizes, rates = zip(*curve["bytes_and_rate"], strict=True)
    return list(sizes), list(rates), curve["cache_bytes"]


def staircase(
    levels: tuple[float, ...] = (400.0, 200.0, 100.0, 40.0),
    ends: tuple[int, ...] = (48 * KIB, MIB, 32 * MIB),
    per_octave: int = 3,
) -> tuple[list[float], list[float]]:
    """A curve that falls at once at each end, from 16 KiB to 512 MiB."""
    sizes = [16 * KIB * 2 ** (i / per_octave) for i in range(15 * per_octave + 1)]
    return sizes, [levels[sum(size > end for end in ends)] for size in sizes]


def test_there_are_recorded_curves_of_three_processors() -> None:
    processors = {json.loads((CURVES / name).read_text())["cpu"][:8] for name in RECORDED}
    assert len(processors) >= 3


@pytest.mark.parametrize("name", RECORDED)
def test_each_cache_of_a_recorded_curve_is_found_within_half_an_octave_and_a_bit(
    name: str,
) -> None:
    sizes, rates, caches = recorded(name)
    steps = find_steps(sizes, rates)
    assert len(steps) == len(caches)
    for step, cache in zip(steps, caches, strict=True):
        assert cache / 1.85 < step.size_bytes < 1.35 * cache
        assert step.above > step.below


@pytest.mark.parametrize("name", RECORDED)
def test_memory_begins_beyond_the_last_cache_of_a_recorded_curve(name: str) -> None:
    sizes, rates, caches = recorded(name)
    memory = memory_plateau(sizes, rates)
    assert memory is not None
    assert caches[-1] * 0.9 < memory.first_bytes <= 4 * caches[-1]
    assert memory.rate == pytest.approx(rates[-1], rel=0.06)


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_recorded_curve_shows_does_not_depend_on_the_unit_of_the_rate(name: str) -> None:
    sizes, rates, _ = recorded(name)
    scaled = [rate / 1e12 for rate in rates]
    assert [s.size_bytes for s in find_steps(sizes, scaled)] == pytest.approx(
        [s.size_bytes for s in find_steps(sizes, rates)]
    )


def test_a_clean_staircase_gives_its_ends_and_levels() -> None:
    steps = find_steps(*staircase())
    assert [s.above for s in steps] == [400.0, 200.0, 100.0]
    assert [s.below for s in steps] == [200.0, 100.0, 40.0]
    for step, end in zip(steps, (48 * KIB, MIB, 32 * MIB), strict=True):
        assert end / 1.3 < step.size_bytes < 1.3 * end


@given(st.integers(0, 2**32 - 1))
def test_noise_and_single_dips_change_no_cache(seed: int) -> None:
    random = Random(seed)
    sizes, rates = staircase()
    noisy = [rate * random.uniform(0.95, 1.0) for rate in rates]
    for at in range(2, len(noisy) - 3, 6):
        noisy[at] *= random.uniform(0.4, 1.0)
    steps = find_steps(sizes, noisy)
    assert len(steps) == 3
    for step, end in zip(steps, (48 * KIB, MIB, 32 * MIB), strict=True):
        assert end / 1.6 < step.size_bytes < 1.6 * end


def test_a_single_spike_in_memory_is_no_cache() -> None:
    sizes, rates = staircase()
    rates[-4] *= 1.5
    assert len(find_steps(sizes, rates)) == 3
    memory = memory_plateau(sizes, rates)
    assert memory is not None
    assert memory.rate == 40.0


def test_short_loops_that_are_slow_are_no_step() -> None:
    sizes, rates = staircase()
    rates[0] *= 0.6
    assert len(find_plateaus(sizes, rates)) == 4


def test_a_flat_curve_has_one_plateau_no_step_and_shows_no_memory() -> None:
    sizes, _ = staircase()
    flat = [50.0] * len(sizes)
    assert len(find_plateaus(sizes, flat)) == 1
    assert find_steps(sizes, flat) == ()
    assert memory_plateau(sizes, flat) is None


def test_a_curve_that_still_falls_at_its_end_has_not_reached_memory() -> None:
    sizes, rates = staircase()
    steep = [rate * (0.8 ** max(0, i - len(rates) + 7)) for i, rate in enumerate(rates)]
    assert memory_plateau(sizes, steep) is None


def test_levels_that_are_hardly_apart_are_one() -> None:
    sizes, rates = staircase(levels=(400.0, 120.0, 105.0, 40.0))
    assert len(find_steps(sizes, rates)) == 2


@pytest.mark.parametrize(
    ("levels", "steps"),
    [
        ((400.0, 120.0, 100.0, 40.0), 3),
        ((400.0, 119.9, 100.0, 40.0), 2),
        ((470.0, 400.0, 100.0, 40.0), 2),
    ],
)
def test_levels_are_two_from_a_fifth_more_on(levels: tuple[float, ...], steps: int) -> None:
    assert len(find_steps(*staircase(levels))) == steps


@pytest.mark.parametrize(("last", "count"), [(19.0, 3), (18.9, 2)])
def test_a_plateau_between_two_falls_is_nearly_an_octave_wide(last: float, count: int) -> None:
    sizes = [1.0, 2.0, 4.0, 8.0, 10.0, last, 40.0, 80.0, 160.0]
    found = find_plateaus(sizes, [400.0] * 4 + [200.0] * 2 + [50.0] * 3)
    assert len(found) == count
    memory = memory_plateau(sizes, [400.0] * 4 + [200.0] * 2 + [50.0] * 3)
    assert memory is not None
    assert (memory.first_bytes, memory.rate) == (40.0, 50.0)


def test_the_rate_of_a_plateau_is_its_median() -> None:
    (found,) = find_plateaus([1.0, 2.0, 4.0, 8.0, 16.0], [105.0, 104.0, 103.0, 102.0, 101.0])
    assert found.rate == 103.0


def test_the_last_rate_of_a_curve_is_the_median_of_three() -> None:
    *_, last = find_plateaus([1.0, 2.0, 4.0, 8.0], [80.0, 40.0, 20.0, 10.0])
    assert (last.first_bytes, last.rate) == (4.0, 20.0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_curve_of_few_points_is_read_without_an_error(count: int) -> None:
    sizes, rates = [1e4, 1e6, 1e8][:count], [90.0, 40.0, 10.0][:count]
    assert find_plateaus(sizes, rates)[0].first_bytes == 1e4


@pytest.mark.parametrize(
    ("sizes", "rates", "complaint"),
    [
        ([], [], "0 sizes, 0 rates"),
        ([1.0, 2.0], [1.0], "2 sizes, 1 rates"),
        ([2.0, 1.0], [1.0, 1.0], "must rise"),
        ([1.0, 1.0], [1.0, 1.0], "must rise"),
        ([0.0, 1.0], [1.0, 1.0], "must rise"),
        ([1.0, 2.0], [1.0, 0.0], "above 0"),
    ],
)
def test_what_is_no_curve_is_refused(
    sizes: list[float], rates: list[float], complaint: str
) -> None:
    for read in (find_plateaus, find_steps, memory_plateau):
        with pytest.raises(ValueError, match=complaint):
            read(sizes, rates)
