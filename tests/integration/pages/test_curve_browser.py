"""Curves of a page in a real browser: axes that are turned, and a part that is enlarged."""

from pathlib import Path

import pytest

from flowos.report import html, read_json

from .browser import Browser

RUN = Path(__file__).parents[2] / "data/run.json"
SCALE = "[...document.querySelectorAll('#p2 .scale text')].map(t => t.textContent)"


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    file = folder / "curves.html"
    file.write_text(html(read_json(RUN.read_text())))
    return file


def _press(browser: Browser, text: str) -> None:
    browser.evaluate(
        "[...document.querySelectorAll('#p2 .tools button')]"
        f".find(b => b.textContent === '{text}').click()"
    )


def _mouse(browser: Browser, kind: str, at: tuple[float, float]) -> None:
    browser.ask(
        "Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1
    )


def _heights(browser: Browser) -> list[float]:
    found: list[float] = browser.evaluate(
        "[...document.querySelectorAll('#p2 .dot:not([style*=none])')]"
        ".map(d => +d.getAttribute('transform').match(/[ ,]([-\\d.]+)\\)/)[1])"
    )
    return found


def test_an_axis_of_a_curve_is_logarithmic_or_linear_as_one_likes(
    browser: Browser, page: Path
) -> None:
    browser.complaints.clear()
    browser.show(1400, "light")
    browser.open(page.as_uri())
    before, ticks = _heights(browser), browser.evaluate(SCALE)
    _press(browser, "log y")
    linear = _heights(browser)
    assert "0" in browser.evaluate(SCALE)
    assert len(linear) == len(before)
    assert max(abs(a - b) for a, b in zip(before, linear, strict=True)) > 20
    _press(browser, "log y")
    _press(browser, "whole")
    assert browser.evaluate(SCALE) == ticks
    after = _heights(browser)
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 0.2
    assert browser.complaints == []


def test_a_part_of_a_curve_is_enlarged_by_drawing_over_it(browser: Browser, page: Path) -> None:
    browser.show(1400, "light")
    browser.open(page.as_uri())
    before, ticks = _heights(browser), browser.evaluate(SCALE)
    x, y, width, height = browser.evaluate(
        "(plot => { plot.scrollIntoView({behavior: 'instant'});"
        " const r = plot.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })"
        "(document.querySelector('#p2 svg.curve'))"
    )
    corners = [(x + width * 0.3, y + height * 0.2), (x + width * 0.7, y + height * 0.7)]
    _mouse(browser, "mousePressed", corners[0])
    _mouse(browser, "mouseMoved", corners[1])
    _mouse(browser, "mouseReleased", corners[1])
    near = browser.evaluate(SCALE)
    assert near
    assert near != ticks
    assert 0 < len(_heights(browser)) < len(before)
    _press(browser, "whole")
    assert browser.evaluate(SCALE) == ticks
    assert len(_heights(browser)) == len(before)


def test_a_printed_page_has_no_buttons(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    shown = "getComputedStyle(document.querySelector('.tools')).display"
    assert browser.evaluate(shown) != "none"
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(shown) == "none"
    browser.ask("Emulation.setEmulatedMedia", media="")
