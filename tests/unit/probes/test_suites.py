"""Suites as data: they name figures once, and what they name of probes that exist is there."""

import pytest

from flowos.model import FigurePart, PaperSuite
from flowos.probes._tables import PROBES
from flowos.probes.suites import SUITES

EXISTING = {probe.name: probe for probe in PROBES}
PARTS = [
    (suite.name, figure.number, part)
    for suite in SUITES.values()
    for figure in suite.figures
    for part in figure.parts
]


def test_each_is_known_by_its_own_name() -> None:
    assert list(SUITES) == ["aaic", "abci", "reads", "cyclecloud", "fic"]
    assert all(suite.name == name for name, suite in SUITES.items())


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_each_figure_is_run_or_says_why_not(suite: PaperSuite) -> None:
    numbers = [figure.number for figure in suite.figures]
    assert len(set(numbers)) == len(numbers)
    for figure in suite.figures:
        assert figure.title
        assert figure.caption
        assert bool(figure.parts) != bool(figure.lacking), figure.number
        assert not (figure.lacking and figure.instead), figure.number
        assert not figure.title.endswith(".")


def test_the_figures_are_those_of_the_papers() -> None:
    numbers = {name: [f.number for f in suite.figures] for name, suite in SUITES.items()}
    assert numbers["aaic"] == [str(n) for n in range(5, 12)]
    assert numbers["abci"] == [str(n) for n in range(4, 14)]
    tables = ["table 2", "table 3", "table 4", "table A.1", "table A.2", "table A.3"]
    assert sorted(numbers["reads"]) == sorted([*map(str, range(4, 13)), *tables])
    there = [*map(str, range(2, 11)), "12", "13", "table 2", "table A"]
    assert sorted(numbers["cyclecloud"]) == sorted(there)
    assert numbers["fic"] == ["4", "5", "table 2", "6", "7"]


@pytest.mark.parametrize(
    "part", [part for *_, part in PARTS], ids=[f"{name}-{n}" for name, n, _ in PARTS]
)
def test_what_is_named_of_a_probe_is_drawn_by_it(part: FigurePart) -> None:
    probe = EXISTING.get(part.probe)
    if probe is not None:
        charts = (*probe.info.charts, *probe.info.env_charts)
        drawn = {metric for chart in charts for metric in chart.metrics}
        assert drawn.issuperset(part.metrics)
