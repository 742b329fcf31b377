"""How the solver's strong scaling is drawn, compared whole with tests/golden/report/solve.txt.

After an intended change: FLOWOS_UPDATE_GOLDEN=1 pytest tests/unit/report/test_solve_charts.py, then
read the difference before it is committed. A missing golden file is a failure.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from flowos.model import Case, Run, Sample
from flowos.plan import summarize
from flowos.probes.solve import Solve, layouts
from flowos.report import Report, Section, html
from flowos.report._panels import Panel, panels_of

GOLDEN = Path(__file__).parents[2] / "golden/report/solve.txt"
PROBE = Solve()
PROBLEMS = (("poisson", "128x128x128", 1.0), ("g3like", "1585478", 1.8))
SETTINGS = (("default", 1.0), ("paper", 2.5))


def samples() -> Iterator[Sample]:
    """A node of 4 cores, on which 4 threads do no more than 3: memory ends it."""
    for problem, size, times in PROBLEMS:
        for setting, slower in SETTINGS:
            for cores in (1, 2, 4):
                for layout, _ranks, _threads in layouts(cores):
                    levels = {"problem": problem, "size": size, "setting": setting}
                    levels |= {"mpi": "openmpi", "layout": layout, "cores": str(cores)}
                    at_once = min(cores, 3)
                    seconds = 0.004 * times * slower / at_once
                    for metric, unit, value in (
                        ("total", "second", 110 * seconds),
                        ("iteration", "second", seconds),
                        ("bandwidth", "byte/s", 12e9 * at_once),
                        ("triad", "byte/s", 16e9 * at_once),
                    ):
                        yield Sample(
                            run="r",
                            case=Case("solve", tuple(levels.items())),
                            round=1,
                            metric=metric,
                            unit=unit,
                            values=(value,),
                        )


def report(run: Run) -> Report:
    return Report(
        run=run,
        measurements=summarize(samples(), ceiling_of=PROBE.ceiling),
        sections=(Section(probe=PROBE.name, title=PROBE.info.title, charts=PROBE.info.charts),),
    )


def described(panel: Panel) -> Iterator[str]:
    yield f"{panel.chart.title}: {panel.title}"
    for line in (*panel.lines, *panel.context):
        points = ", ".join(f"{x}: {panel.scale.number(m.value)}" for x, m in line.points)
        yield f"  {line.label}: {points}"
    for ceiling in panel.ceilings:
        points = ", ".join(f"{x}: {panel.scale.number(value)}" for x, value in ceiling.points)
        yield f"  ceiling {ceiling.label}: {points}"


def test_strong_scaling_is_drawn_as_it_was(small: Report) -> None:
    made = report(small.run)
    (section,) = made.sections
    panels = (panel for chart in section.charts for panel in panels_of(made, section, chart))
    drawn = "".join(f"{line}\n" for panel in panels for line in described(panel))
    if os.environ.get("FLOWOS_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(drawn)
    assert GOLDEN.exists(), f"{GOLDEN} is missing: see this test's first lines"
    assert drawn == GOLDEN.read_text()


def test_the_page_shows_every_chart_of_the_solver(small: Report) -> None:
    page = html(report(small.run))
    drawn = [chart.x for chart in PROBE.info.charts if chart.title in page]
    assert drawn == ["cores"] * 3, "nothing was measured over nodes"
