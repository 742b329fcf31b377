"""`flowos compare RUN --axis` on stored runs: as the run itself says it, or why it cannot."""

from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import (
    Case,
    Entered,
    Facts,
    MeasurementRequest,
    Run,
    Sample,
    Unmeasured,
    UsageError,
)
from flowos.operations.compare import compare_levels
from flowos.operations.history import report
from flowos.store import open_store

RUN = Run(
    id="2026-11-27-abc",
    started="2026-11-27T10:00:00Z",
    ended="2026-11-27T10:01:00Z",
    host="a",
    version="1",
    request=MeasurementRequest(environments=("bare", "mine")),
    facts=Facts(
        host="a", system="s", kernel="k", architecture="x86_64", cpu_model="c", cpus=(), allowed=()
    ),
    environments=(Entered(label="bare"), Entered(label="mine")),
)
FACTORS = (1.02, 1.4, 1.15, 1.15)
"""Between two environments: shown by one look at four rounds, and not by one look of four."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def kept(url: str, run: Run, *samples: tuple[Case, int, float]) -> None:
    with open_store(url) as store:
        store.begin(run)
        for case, round_, value in samples:
            sample = Sample(
                run=run.id,
                case=case,
                round=round_,
                metric="startup",
                unit="second",
                values=(value,),
            )
            store.keep(sample)


def test_environments_are_compared_with_the_error_of_all_looks_as_in_the_run(url: str) -> None:
    case = Case("startup", (("env", "bare"),))
    samples = [
        (case.at(env=env), round_, value)
        for round_, factor in enumerate(FACTORS, 1)
        for env, value in (("bare", factor), ("mine", 1.0), ("mine", 1.0), ("bare", factor))
    ]
    kept(url, RUN, *samples)
    own = next(v for v in report("last", url).verdicts if v.probe == "startup")
    (found,) = compare_levels("last", url, axis="env")
    assert found.answer == own.answer == "inconclusive"
    assert (found.ratio, found.low, found.high) == (own.ratio, own.low, own.high)
    assert found.low < 1 < found.ratio


def test_storage_has_the_margin_of_its_run_unless_another_is_given(url: str) -> None:
    case = Case("fio", (("env", "bare"),))
    kept(url, RUN, *((case.at(env=env), 1, 1.0) for env in ("bare", "mine", "mine", "bare")))
    for margin, used in ((None, 0.06), (0.1, 0.1)):
        (found,) = compare_levels("last", url, axis="env", margin=margin)
        assert found.margin == used


def test_a_setting_that_was_measured_alone_says_that_the_time_was_out(url: str) -> None:
    case = Case("stream", (("stores", "nt"),))
    late = Unmeasured(
        reason="the time was out before its turn",
        remedy="give more time, as in `flowos measure --only stream --minutes 4`",
    )
    missed = ((case.at(stores="plain"), late),)
    alone = replace(RUN, environments=(), request=MeasurementRequest(), unmeasured=missed)
    kept(url, alone, (case, 1, 1.0))
    with pytest.raises(UsageError) as refused:
        compare_levels("last", url, axis="stores")
    assert str(refused.value) == (
        f"run {RUN.id}: only stores=nt was measured (the time was out), so there is nothing to"
        " compare; give more time, as in `flowos measure --only stream --minutes 4`"
    )
    with pytest.raises(UsageError, match="has no axis 'places'; it has none"):
        compare_levels("last", url, axis="places")
