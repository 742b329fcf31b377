"""Baselines: which machines they are of, and within which limits a new number is as usual."""

import pytest

from flowos.model import BaselineNumber, Case, MachineKind


def test_limits_are_as_far_apart_as_a_ratio() -> None:
    number = BaselineNumber(
        probe="stream",
        levels=(("threads", "2"),),
        metric="triad",
        unit="byte/s",
        median=100.0,
        spread=0.01,
        runs=5,
        machines=1,
        tolerance=0.25,
    )
    assert number.limits == (80.0, 125.0)
    assert number.case == Case("stream", (("threads", "2"),))


@pytest.mark.parametrize(
    ("quota", "gpus", "words"),
    [
        (None, (), "EPYC, 8 cpus, x86_64"),
        (1.5, (), "EPYC, 8 cpus, x86_64, a quota of 1.5 cpus"),
        (2.0, ("H200", "H200"), "EPYC, 8 cpus, x86_64, a quota of 2 cpus, H200, H200"),
    ],
)
def test_a_kind_of_machine_is_said_in_words(
    quota: float | None, gpus: tuple[str, ...], words: str
) -> None:
    kind = MachineKind(processor="EPYC", cpus=8, architecture="x86_64", quota_cpus=quota, gpus=gpus)
    assert str(kind) == words
