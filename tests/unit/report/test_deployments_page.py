"""Deployments of nodes compared, as a page."""

import re
from dataclasses import replace

import pytest

from flowos.model import Case, DeployedNode, Deployment, Pairs, Run, Trust
from flowos.plan import DeploymentSpread, Numbers, spreads
from flowos.report import Report, deployments_html

from .test_deployments_text import LATENCY
from .test_page import read
from .test_plots import image_after

MPI = ("mpi", "Open MPI 4.1.4")


def found(
    levels: Pairs, *medians: float, metric: str = "latency", marks: tuple[str, ...] = ()
) -> DeploymentSpread:
    rows: list[Numbers] = []
    for number, median in enumerate(medians, 1):
        each = replace(
            LATENCY,
            case=Case("mpi", (MPI, *levels)),
            metric=metric,
            unit="second" if metric == "latency" else "byte/s",
            trust=Trust(marks=marks),
            median=median,
            low=median * 0.99,
            high=median * 1.01,
            best=median,
        )
        rows.append(Numbers(run=f"r{number}", measurements=(each,)))
    (spread,) = spreads(rows, margin=0.05, shown=bool)
    return spread


def runs_of(run: Run, count: int = 3) -> list[Run]:
    return [
        replace(
            run,
            id=f"r{n}",
            deployment=Deployment(
                of="d", number=n, pool="hpc", nodes=(DeployedNode(name=f"c{n}", switch="<s1>"),)
            ),
        )
        for n in range(1, count + 1)
    ]


def test_the_page_says_of_each_number_what_the_place_did_to_it(small: Report) -> None:
    page = deployments_html(
        runs_of(small.run),
        (
            found((("bytes", "8"),), 2e-6, 3e-6, 2e-6),
            found((("bytes", "1048576"),), 1e9, 1e9, 1e9, metric="bandwidth"),
            found((("bytes", "64"),), 2e-6, 3e-6, 2e-6, marks=("odd",)),
        ),
        pages=("deployment-1/report.html", "", "deployment-3/report.html"),
        notes=("deployment 2 got the machines of deployment 1",),
    )
    assert "3 deployments of pool hpc, one after the other." in page
    assert "1 number of 3 changed with the place; 1 equal in all of them; 1 inconclusive." in page
    assert "The largest spread between deployments: 50%, of latency." in page
    assert ">bytes 8</text>" in page
    assert "Spread of latency between" in page
    assert "Spread of bandwidth between" in page
    assert '<th scope="row">latency, bytes 8<td class="warn">the place of the nodes' in page
    assert "1: 2.00\N{NO-BREAK SPACE}\N{MICRO SIGN}s, 2: 3.00" in page
    assert "<td>2 is slower" in page
    assert "not to be trusted" in page
    assert "The numbers. All with mpi Open MPI 4.1.4" in page
    assert "between deployments: 50%" in page
    assert "Bars. bytes 8: 50% between deployments, 2.0% inside one; bytes 64: " in page
    assert "<li>deployment 2 got the machines of deployment 1" in page
    assert read(page).loads == ["a deployment-1/report.html", "a deployment-3/report.html"]
    assert "script" not in read(page).tags
    rows = re.findall(r'<th scope="row">(\d)<td>(c\d)', page)
    assert rows == [("1", "c1"), ("2", "c2"), ("3", "c3")]
    assert "&lt;s1&gt;" in page


def test_a_number_alone_has_all_its_levels_and_a_long_name_is_cut_in_the_picture(
    small: Report,
) -> None:
    levels = (("algorithm", "recursive doubling with rings"), ("bytes", "8"))
    page = deployments_html(runs_of(small.run, 2), (found(levels, 2e-6, 2e-6),))
    label = "mpi Open MPI 4.1.4, algorithm recursive doubling with rings, bytes 8"
    assert f">latency, {label}<" in page
    assert f">{label[:45]}\N{HORIZONTAL ELLIPSIS}</text>" in page
    assert "All with" not in page
    assert "The largest spread between deployments: 0.0%" in page
    assert read(page).loads == []


def test_where_nothing_was_measured_it_says_so(small: Report) -> None:
    page = deployments_html([small.run], ())
    assert "No number was measured in all of them." in page
    assert "There is nothing to draw." in page
    assert "1 deployment, one after the other." in page
    assert f"<td>{small.run.host}" in page


def test_numbers_that_do_not_spread_at_all_are_drawn(small: Report) -> None:
    flat = replace(found((("bytes", "8"),), 2e-6, 2e-6), within=0.0)
    assert "0.0%" in deployments_html(runs_of(small.run, 2), (flat,))


def test_bars_are_as_wide_as_the_spread_that_they_stand_for(small: Report) -> None:
    first, then = (found((("bytes", b),), 2e-6, m) for b, m in (("8", 2.5e-6), ("64", 3e-6)))
    page = deployments_html(runs_of(small.run, 2), (first, replace(then, within=0.1)))
    drawn = image_after(page, '<div class="plots">')
    boxes = [bar.at("x", "y", "width", "height") for bar in drawn.all("rect", "bar")]
    full = boxes[2][2]
    widths = [width / full for _, _, width, _ in boxes]
    assert widths == pytest.approx([0.5, 0.04, 1.0, 0.2], abs=0.001)
    numbers = [number for number in drawn.all("text") if "text-anchor" in number.attributes]
    assert [number.text for number in numbers] == ["25%", "2.0%", "50%", "10%"]
    for number, (x, y, width, height) in zip(numbers, boxes, strict=True):
        assert y < number.at("y")[0] < y + height
        assert (x, number.at("x")) == (1, [560])
        assert x + width < 560 - 9.6 * len("25.0%")
    names = [drawn.texts[f"bytes {b}"].at("y")[0] for b in ("8", "64")]
    ends = [y + height for _, y, _, height in boxes]
    assert 0 < names[0] < boxes[0][1] < ends[0] < boxes[1][1] < ends[1]
    assert ends[1] < names[1] < boxes[2][1] < ends[2] < boxes[3][1] < ends[3]
    bases = [base.numbers for base in drawn.all("path", "base")]
    assert bases == [[0.5, boxes[i][1] - 2, 0.5, ends[i + 1] + 3] for i in (0, 2)], "around both"
    *_, height = map(float, drawn.all("svg")[0].attributes["viewbox"].split())
    assert ends[3] < height
    assert [group.kind for group in drawn.all("g")] == ["series s0", "series s1"] * 2


def test_a_number_without_a_level_of_its_own_has_the_name_of_its_metric(small: Report) -> None:
    both = (found((), 2e-6, 2e-6), found((), 1e9, 2e9, metric="bandwidth"))
    page = deployments_html(runs_of(small.run, 2), both)
    assert ">latency</text>" in page
    assert '<th scope="row">bandwidth<td' in page
