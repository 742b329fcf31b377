"""The pages of a report and of a slice's log in a real browser."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Case, DeployedNode, Deployment, LoggedTask, Measurement, SliceLog
from flowos.operations.side_by_side import imported
from flowos.plan import Numbers, spreads
from flowos.report import (
    ReportedRun,
    SideBySide,
    deployments_html,
    html,
    read_json,
    side_by_side_html,
    timeline_html,
)

from .browser import Browser

RUN = Path(__file__).parents[2] / "data/run.json"
CLASHES = """[...document.querySelectorAll('figure .plot')].flatMap(plot => {
  const frame = plot.getBoundingClientRect();
  const texts = [...plot.querySelectorAll('text')].map(
    t => [t.textContent, t.getBoundingClientRect()]);
  const inside = r => r.left > frame.left - 4 && r.right < frame.right + 4;
  const out = texts.filter(([, r]) => !inside(r)).map(([t]) => 'outside: ' + t);
  texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
    const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (w > 1 && h > 4) out.push(a + ' | ' + b);
  }));
  return out.map(o => plot.querySelector('title').textContent + ': ' + o);
})"""
"""Words in plots that lie on each other, or outside."""
SIZES = [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")]


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    file = folder / "report.html"
    file.write_text(html(read_json(RUN.read_text())))
    return file


def log_of(count: int) -> SliceLog:
    """Tasks of 1 to 10 ms on 32 workers of 2 nodes; some failed, were repeated, or were found."""
    tasks = []
    for i in range(count):
        start, place = 1.8e9 + (i // 32) * 0.012 + (i % 7) * 1e-4, i % 32
        tasks.append(
            LoggedTask(
                task=f"step{i * 7 % 11}",
                worker=f"node{place // 16}:{place % 16}",
                start=start,
                end=start + (i * i % 10 + 1) * 1e-3 + (20 if i == count - 1 else 0),
                bytes_in=i,
                bytes_out=8 * i,
                error="task raised ValueError: no" if i % 997 == 0 else "",
                attempt=1 + (i % 1999 == 0),
                cached=i % 501 == 0,
            )
        )
    return SliceLog(path=Path("tasks.log"), tasks=tuple(tasks), unfinished=True)


@pytest.fixture(scope="module")
def timeline(folder: Path) -> Path:
    file = folder / "timeline.html"
    file.write_text(timeline_html(log_of(100_000)))
    return file


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_timeline_of_100_000_tasks_opens_and_fits_its_window(
    width: int, scheme: str, browser: Browser, timeline: Path
) -> None:
    browser.complaints.clear()
    browser.show(width, scheme)
    browser.open(timeline.as_uri())
    assert browser.complaints == []
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "overflows"
    browser.show_picture(f"timeline-{width}-{scheme}.png")
    inside = browser.evaluate(
        """(() => {
          const frame = document.querySelector('.lanes svg').getBoundingClientRect();
          const bars = [...document.querySelectorAll('.lanes .series rect')].map(
            bar => bar.getBoundingClientRect());
          return bars.length > 1000 && bars.every(b => b.left > frame.left - 2
            && b.right < frame.right + 2 && b.top > frame.top - 2 && b.bottom < frame.bottom + 2
            && b.height > 0.5)
        })()"""
    )
    assert inside, "a bar is outside"


def test_names_of_workers_stand_at_their_rows(browser: Browser, timeline: Path) -> None:
    for width in (1400, 400):
        browser.show(width, "light")
        browser.open(timeline.as_uri())
        far = browser.evaluate(
            """(() => {
              const rows = [...document.querySelectorAll('.lanes .track')];
              const names = [...document.querySelectorAll('.lanes li')];
              return rows.length == 32 && rows.length == names.length && names.map((name, i) =>
                Math.abs(name.getBoundingClientRect().top - rows[i].getBoundingClientRect().top))
            })()"""
        )
        assert max(far) < 2


def test_a_timeline_reads_with_the_keyboard_and_a_screen_reader(
    browser: Browser, timeline: Path
) -> None:
    browser.show(1400, "light")
    browser.open(timeline.as_uri())
    assert browser.evaluate(
        """(() => {
          const plot = document.querySelector('svg[role=img]');
          const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
          return new Set(ids).size == ids.length
            && plot.getAttribute('aria-labelledby').split(' ')
              .every(id => document.getElementById(id).textContent.length > 5)
            && [...document.querySelectorAll('table')].every(t => t.caption
              && t.closest('.scroll[tabindex="0"]')
              && [...t.tBodies[0].rows].every(r => r.cells.length == t.rows[0].cells.length))
        })()"""
    )
    levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])")
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_pointing_at_a_name_leaves_its_bars_alone(browser: Browser, timeline: Path) -> None:
    browser.show(1400, "light")
    browser.open(timeline.as_uri())
    at = browser.evaluate(
        "(r => [r.left + 5, r.top + 5])(document.querySelector('.legend .k1')"
        ".getBoundingClientRect())"
    )
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])
    seen = browser.evaluate(
        "[...document.querySelectorAll('.lanes .series')].map(g => [g.classList[1],"
        " getComputedStyle(g).opacity])"
    )
    assert {name: float(opacity) < 0.5 for name, opacity in seen} == {
        f"s{i}": i != 1 for i in range(8)
    }


@pytest.fixture(scope="module")
def deployments(folder: Path) -> Path:
    """Of five deployments, whose latency differs and whose bandwidth does not."""
    report = read_json(RUN.read_text())
    nodes = [DeployedNode(name=f"c{n}", instance=f"i-0a{n}", switch="s1") for n in range(10)]
    runs = [
        replace(
            report.run,
            id=f"{report.run.id}-{n}",
            deployment=Deployment(
                of="d", number=n, pool="hpc", nodes=(nodes[2 * n - 2], nodes[2 * n - 1])
            ),
        )
        for n in range(1, 6)
    ]
    numbers = [
        Numbers(run=run.id, measurements=tuple(_between_nodes(place)))
        for place, run in enumerate(runs)
    ]
    found = spreads(numbers, margin=0.05, shown=bool)
    file = folder / "deployments.html"
    file.write_text(deployments_html(runs, found, pages=["deployment-1/report.html"]))
    return file


def _between_nodes(place: int) -> Iterator[Measurement]:
    for power in range(3, 21, 3):
        slower = 1 + 0.1 * place
        numbers = (("latency", "second", 2e-6 * slower), ("bandwidth", "byte/s", 1e6 * 2.0**power))
        for metric, unit, median in numbers:
            levels = (("mpi", "Open MPI 4.1.4"), ("bytes", str(2**power)))
            yield Measurement(
                case=Case("mpi", levels),
                metric=metric,
                unit=unit,
                count=8,
                median=median,
                low=median * 0.98,
                high=median * 1.03,
                best=median,
            )


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_deployments_compared_fit_their_window_and_can_be_read(
    width: int, scheme: str, browser: Browser, deployments: Path
) -> None:
    browser.complaints.clear()
    browser.show(width, scheme)
    browser.open(deployments.as_uri())
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "overflows"
    assert browser.evaluate(CLASHES) == []
    browser.show_picture(f"deployments-{width}-{scheme}.png")
    inside = browser.evaluate(
        """[...document.querySelectorAll('.plot')].map(plot => {
          const frame = plot.getBoundingClientRect();
          return [...plot.querySelectorAll('rect')].map(bar => bar.getBoundingClientRect()).every(
            b => b.width > 0.5 && b.left > frame.left - 1 && b.right < frame.right + 1)
        })"""
    )
    assert inside == [True, True], "one of latency, one of bandwidth"
    assert browser.evaluate("document.querySelectorAll('.plot rect').length") == 24


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_loads_without_a_complaint_and_fits_its_window(
    width: int, scheme: str, browser: Browser, page: Path, folder: Path
) -> None:
    browser.complaints.clear()
    browser.show(width, scheme)
    browser.open(page.as_uri())
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "overflows"
    assert browser.evaluate("innerWidth") == width
    browser.picture(folder / f"{width}-{scheme}.png")
    assert (folder / f"{width}-{scheme}.png").stat().st_size > 50_000


def test_also_with_all_tables_open_nothing_but_the_tables_scrolls(
    browser: Browser, page: Path
) -> None:
    browser.show(400, "light")
    browser.open(page.as_uri())
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.show_picture("400-open.png")


def test_what_settings_are_worth_is_seen_whole_on_a_wide_page(browser: Browser, page: Path) -> None:
    browser.show(1400, "light")
    browser.open(page.as_uri())
    sizes = browser.evaluate(
        "[...document.querySelectorAll('.scroll:has(.comparison)')].map(box =>"
        " [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight])"
    )
    assert sizes
    assert all(wider <= 0 and higher <= 0 for wider, higher in sizes)


def test_light_and_dark_differ(browser: Browser, page: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.open(page.as_uri())
    seen = []
    for scheme in ("light", "dark"):
        browser.show(1400, scheme)
        seen.append(browser.evaluate(paper))
    assert seen == ["rgb(251, 250, 246)", "rgb(19, 21, 24)"]


@pytest.fixture(scope="module")
def side_by_side(folder: Path) -> Path:
    """Of a run and of another one like it, of a machine with a long name."""
    report = imported(RUN)
    other = replace(report.run, id="2026-11-21-ffffff", host="node-with-a-rather-long-name.cluster")
    runs = [
        ReportedRun(label=f"{n}: {run.host}, 2026-11-2{n} 10:00", machine=run.host, report=each)
        for n, (run, each) in enumerate(((report.run, report), (other, replace(report, run=other))))
    ]
    file = folder / "side-by-side.html"
    file.write_text(side_by_side_html(SideBySide(runs=tuple(runs))))
    return file


@pytest.mark.parametrize(("width", "scheme"), SIZES[1:3])
def test_runs_side_by_side_fit_their_window(
    width: int, scheme: str, browser: Browser, side_by_side: Path
) -> None:
    browser.complaints.clear()
    browser.show(width, scheme)
    browser.open(side_by_side.as_uri())
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "overflows"
    assert browser.evaluate(CLASHES) == []
    browser.show_picture(f"side-by-side-{width}-{scheme}.png")
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(set(ids)) == len(ids)


def test_every_plot_has_a_name_a_description_and_a_table(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    told = browser.evaluate(
        """[...document.querySelectorAll('figure')].map(f => {
          const plot = f.querySelector('svg[role=img]');
          const named = plot.getAttribute('aria-labelledby').split(' ')
            .every(id => document.getElementById(id).textContent.length > 5);
          const table = f.querySelector('.scroll[tabindex="0"] table');
          return named && table.caption.textContent.length > 5
            && table.querySelectorAll('thead th[scope=col]').length > 5
            && table.querySelectorAll('tbody tr').length > 0
            && [...table.tBodies[0].rows].every(r => r.querySelector('th[scope=row]')
              && r.cells.length == table.rows[0].cells.length)
        })"""
    )
    assert len(told) >= 12
    assert all(told)


def test_the_keyboard_reaches_and_opens_every_table(browser: Browser, page: Path) -> None:
    browser.show(1400, "light")
    browser.open(page.as_uri())
    total = browser.evaluate("document.querySelectorAll('.scroll').length")
    browser.evaluate("document.querySelectorAll('figure details').forEach(d => d.open = true)")
    reached = set()
    for _ in range(40 + 3 * total):
        browser.press("Tab")
        where = browser.evaluate(
            "document.activeElement.className == 'scroll'"
            " ? document.activeElement.getAttribute('aria-labelledby') : ''"
        )
        reached.add(where)
    assert len(reached - {""}) == total


def test_ids_are_unique_and_headings_skip_no_level(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    levels = browser.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_no_words_in_a_plot_lie_on_each_other_or_outside(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    for width in (1400, 400):
        browser.show(width, "light")
        clashes = browser.evaluate(CLASHES)
        assert clashes == [], width
