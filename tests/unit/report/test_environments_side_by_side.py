"""Where environments were compared, the verdicts come first, and no single number is a headline."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import Entered
from flowos.report import Report, html, markdown, text

TITLE = "Environments side by side"


def with_environments(report: Report) -> Report:
    both = (Entered(label="bare"), Entered(label="i.sqfs@ch-run", digest="sha256:12"))
    verdicts = tuple(
        replace(v, axis="env", base="bare", other=both[1].label) for v in report.verdicts
    )
    return replace(
        report, run=replace(report.run, environments=both), verdicts=verdicts, headlines=()
    )


@pytest.mark.parametrize("render", [text, markdown, html])
def test_the_verdicts_on_environments_come_first(
    render: Callable[[Report], str], small: Report
) -> None:
    said = render(with_environments(small))
    before, _, after = said.partition(TITLE)
    assert "no MPI was found" not in before
    assert "no MPI was found" in after
    assert "i.sqfs@ch-run" in after
    assert TITLE not in render(small)


@pytest.mark.parametrize("render", [text, markdown, html])
def test_no_number_of_one_environment_is_a_headline(
    render: Callable[[Report], str], small: Report
) -> None:
    assert "Headlines" not in render(with_environments(small))
    assert "middle half lies" not in render(with_environments(small))


def test_a_run_in_which_nothing_could_be_compared_is_shown_too(small: Report) -> None:
    shown = with_environments(small)
    empty = replace(shown, verdicts=(), findings=(), measurements=(), sections=())
    for render in (text, markdown, html):
        assert TITLE not in render(empty)
