"""The page of a suite in a real browser."""

from pathlib import Path

import pytest

from flowos.model import (
    FigurePart,
    Paper,
    PaperFigure,
    PaperSuite,
    PublishedMachine,
    PublishedNumber,
    Unmeasured,
)
from flowos.report import SuiteFigure, SuiteReport, suite_html

from .browser import Browser

WHY = Unmeasured(
    reason=f"mpirun ended with exit code 1: /scratch/{'very-long-name/' * 8}hostfile: no such file",
    remedy="apt install openmpi-bin",
)


@pytest.fixture(scope="module")
def suite(folder: Path) -> Path:
    """Of a figure without any number of ours."""
    figure = PaperFigure(
        number="2", title="Latency", caption="遅延", parts=(FigurePart(probe="mpi"),)
    )
    number = PublishedNumber(
        figure="2",
        what="between two nodes",
        value=1.8e-6,
        unit="second",
        printed="1.8 us",
        machine="HB120rs_v3",
        where="section 3.1",
        probe="mpi",
        metric="latency",
    )
    report = SuiteReport(
        of="s-1",
        suite=PaperSuite(name="s", title="A paper", figures=(figure,)),
        paper=Paper(
            suite="s",
            citation="A. Author: A paper, 2023",
            missing="",
            machines=(PublishedMachine(name="HB120rs_v3", hardware="2 x EPYC", where="table 1"),),
            numbers=(number,),
        ),
        figures=(SuiteFigure(figure=figure, waiting=(("mpi", WHY),)),),
    )
    file = folder / "suite.html"
    file.write_text(suite_html(report))
    return file


@pytest.mark.parametrize("width", [1400, 400])
def test_why_there_is_no_number_is_read_without_scrolling_back_and_forth(
    width: int, browser: Browser, suite: Path
) -> None:
    browser.complaints.clear()
    browser.show(width, "light")
    browser.open(suite.as_uri())
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "overflows"
    browser.show_picture(f"suite-{width}.png")
    told, fits, lines = browser.evaluate(
        """(() => {
          const cell = [...document.querySelectorAll('.comparison td')].find(
            td => td.textContent.startsWith('not measured: '));
          const words = document.createRange();
          words.selectNodeContents(cell);
          const [inner, box] = [words, cell.closest('.scroll')].map(
            e => e.getBoundingClientRect().width);
          return [cell.textContent, inner <= cell.clientWidth && cell.clientWidth <= box,
            words.getClientRects().length]
        })()"""
    )
    assert told == f"not measured: {WHY.reason}"
    assert fits
    assert lines > 1
