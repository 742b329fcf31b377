"""Published numbers: of one form, in SI units, and the same as what is printed in the paper."""

import re

import pytest

from flowos.model import Paper, PublishedNumber
from flowos.probes.suites import SUITES
from flowos.report import published
from flowos.report._published import read_published
from flowos.report._suite import NumberRow
from flowos.report._suite_text import published_value

PAPERS = {name: published(name) for name in SUITES}
NUMBERS = [(name, number) for name, paper in PAPERS.items() for number in paper.numbers]
UNITS = {
    "TFlops": (1e12, "flop/s"),
    "GB/sec": (1e9, "byte/s"),
    "GB/s": (1e9, "byte/s"),
    "GiB/sec": (1 << 30, "byte/s"),
    "MiB/s": (1 << 20, "byte/s"),
    "sec": (1, "second"),
    "iterations": (1, "1"),
    "iteration/sec": (1, "1/s"),
    "\N{GREEK SMALL LETTER MU}s": (1e-6, "second"),
    "%": (0.01, "1"),
}


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS.keys())
def test_a_paper_names_its_machines_and_what_its_text_does_not_say(paper: Paper) -> None:
    assert PAPERS[paper.suite] is paper
    assert paper.citation
    assert paper.missing
    assert all(m.name and m.hardware and m.where for m in paper.machines)


@pytest.mark.parametrize(
    ("suite", "number"), NUMBERS, ids=[f"{name}-{n.figure}-{n.what}" for name, n in NUMBERS]
)
def test_a_number_is_what_is_printed_in_si_units(suite: str, number: PublishedNumber) -> None:
    printed = re.fullmatch(r"([\d,]*\.?\d+) ?(\D+)", number.printed)
    assert printed
    factor, unit = UNITS[printed[2]]
    assert number.unit == unit
    assert number.value == pytest.approx(float(printed[1].replace(",", "")) * factor, rel=1e-12)
    assert number.where
    assert number.figure in {figure.number for figure in SUITES[suite].figures}
    machines = [machine.name for machine in PAPERS[suite].machines]
    assert any(name.split()[0] in number.machine for name in machines) or "HBv3" in number.machine


@pytest.mark.parametrize(
    ("suite", "number"), NUMBERS, ids=[f"{name}-{n.figure}-{n.what}" for name, n in NUMBERS]
)
def test_a_number_is_set_against_what_its_figure_shows(suite: str, number: PublishedNumber) -> None:
    (figure,) = (f for f in SUITES[suite].figures if f.number == number.figure)
    parts = [part for part in figure.parts if part.probe == number.probe]
    assert bool(parts) == bool(number.probe)
    assert bool(number.metric) == bool(number.probe)
    for part in parts:
        assert number.metric in (part.metrics or (number.metric,))


def test_numbers_of_trainings_name_what_of_ours_they_are_of() -> None:
    """What takes seconds for all files is of another amount of data than ours."""
    figures = ("table 3", "table 4", "table A.1", "table A.2", "table A.3")
    ours = [n for n in PAPERS["reads"].numbers if n.figure in figures]
    assert {n.probe for n in ours} == {"training"}
    assert {n.data for n in ours if "epoch" in n.what or "files copied" in n.what} == {
        "1,261,197 files",
        "an epoch of 1,261,197 files",
        "10 epochs of 1,261,197 files",
    }
    assert not any(n.data for n in ours if n.metric == "load" and "iteration" in n.what)
    assert not any(n.data for n in ours if n.unit in ("byte/s", "1/s"))
    over = {n.machine: dict(n.levels).get("nodes", "") for n in ours if n.figure != "table 4"}
    assert over == {
        "Cygnus, 1 node": "1",
        **{f"Cygnus, {nodes} nodes": str(nodes) for nodes in (2, 4, 8, 16)},
    }


@pytest.mark.parametrize("table", ["table A.1", "table A.2", "table A.3"])
def test_each_row_of_a_training_in_detail_is_there_and_agrees_with_itself(table: str) -> None:
    """Iterations are as many as the images are in batches of 32, for four ranks of a node."""
    found = {
        (int(dict(n.levels)["nodes"]), n.metric.removeprefix("node_")): n.value
        for n in PAPERS["reads"].numbers
        if n.figure == table
    }
    columns = ("training", "iterations", "iterations_per_second", "reads")
    assert set(found) == {(nodes, each) for nodes in (1, 2, 4, 8, 16) for each in columns}
    for nodes in (1, 2, 4, 8, 16):
        iterations = found[nodes, "iterations"]
        assert iterations == pytest.approx(10 * 1_261_197 / (32 * 4 * nodes), abs=2)
        rate = iterations / found[nodes, "training"]
        assert found[nodes, "iterations_per_second"] == pytest.approx(rate, abs=0.006)


def test_a_count_is_shown_as_one_and_a_share_in_percent() -> None:
    metrics = ("iterations", "other_share")
    first = [next(n for n in PAPERS["reads"].numbers if n.metric == each) for each in metrics]
    assert [published_value(NumberRow(number, None)) for number in first] == ["98532", "71%"]


def test_collectives_of_one_node_are_set_against_none_over_more() -> None:
    numbers = [n for n in PAPERS["abci"].numbers if n.figure == "10"]
    found = {("32 nodes" in n.machine, dict(n.levels)["nodes"]) for n in numbers}
    assert found == {(False, "1"), (True, "32")}


def test_shares_of_nominal_values_are_those_that_the_paper_prints() -> None:
    """92.3, 90.4, 95.2 and 84.8 % on a GPU, 78.6 and 82.1 % on a socket; 93.3, 70.2 and 44.9 %."""
    shares = [
        round(100 * n.value / n.nominal, 1) for n in PAPERS["abci"].numbers if n.nominal is not None
    ]
    assert shares == [92.3, 90.4, 95.2, 84.8, 78.6, 82.1, 93.3, 70.2, 44.9]


def test_what_is_not_of_this_form_is_refused_with_its_place() -> None:
    text = 'suite = "s"\ncitation = "c"\nmissing = ""\nmachines = []\n[[numbers]]\nfigure = 4\n'
    with pytest.raises(ValueError, match="PublishedNumber lacks its field 'machine'"):
        read_published(text)
    plain = read_published(text.partition("[[")[0])
    assert plain.numbers == ()


def test_a_rate_of_several_nodes_together_is_set_against_none_of_fewer() -> None:
    for _, number in NUMBERS:
        several = re.search(r"(\d+) nodes", number.machine)
        if several and number.probe in ("collectives", "parallel_io"):
            assert dict(number.levels)["nodes"] == several[1], number
