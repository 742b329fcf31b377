"""Rooflines in text, Markdown and on the page."""

import re
from dataclasses import replace

import pytest

from flowos.model import Roof, Roofline, RooflineKernel
from flowos.report import Report, html, json, markdown, read_json, text

from .reports import measured, untrusted
from .test_plots import image_after

MEMORY = measured(100e9, metric="memory", probe="working_set")
TRIAD = RooflineKernel(
    label="STREAM triad", type="f64", intensity=1 / 12, measured=measured(90e9, threads="2")
)


def flops(value: float, **levels: str) -> Roof:
    m = measured(value, metric="flops", unit="flop/s", probe="flops", **levels)
    return Roof(label=levels["type"], measured=m)


def product(value: float, n: int, label: str = "GEMM f64") -> RooflineKernel:
    m = measured(value, metric="flops", unit="flop/s", probe="gemm", n=str(n))
    return RooflineKernel(label=label, type="f64", intensity=n / 12, measured=m)


def roofline(*kernels: RooflineKernel, device: str = "") -> Roofline:
    return Roofline(
        device=device,
        memory=Roof(label="memory", measured=MEMORY),
        arithmetic=(flops(2e12, type="f32"), flops(1e12, type="f64")),
        kernels=kernels,
    )


def test_a_kernel_is_bound_by_memory_or_by_the_arithmetic_of_its_type() -> None:
    line = roofline(TRIAD)
    assert line.attainable(TRIAD) == pytest.approx(102e9 / 12)
    assert line.attainable(product(1e9, 12_000)) == pytest.approx(1.02e12)
    other = replace(product(1e9, 12_000), type="bf16")
    assert line.attainable(other) == pytest.approx(2.04e12), "of no roof of its own: the highest"
    assert line.ridge(line.arithmetic[1]) == pytest.approx(10.0)
    assert TRIAD.flops == pytest.approx(7.5e9)


def test_each_kernel_is_named_where_it_is_fastest(small: Report) -> None:
    report = replace(small, rooflines=(roofline(TRIAD, product(5e11, 1200), product(2e11, 120)),))
    shown = text(report)
    assert "Roofline of the processors" in shown
    assert "STREAM triad  0.0833 flop/byte  7.50 Gflop/s  88% of its roof, by memory" in shown
    assert "100 flop/byte   500 Gflop/s  49% of its roof, by arithmetic of f64" in shown
    assert "200 Gflop/s" not in shown
    assert "| GEMM f64 | 100 flop/byte | 500 Gflop/s | 49% | arithmetic of f64 |" in markdown(
        report
    )
    assert read_json(json(report)).rooflines == report.rooflines


def test_a_roof_that_is_not_trusted_says_so(small: Report) -> None:
    line = roofline(TRIAD)
    marked = replace(line.memory, measured=untrusted(MEMORY, "steal"))
    report = replace(small, rooflines=(replace(line, memory=marked),))
    assert "memory 102 GB/s (not trusted); f32" in " ".join(text(report).split())
    page = html(report).replace("\N{NO-BREAK SPACE}", " ")
    assert page.count("memory 102 GB/s (not trusted)<") == 1, "at its slope"


def test_the_page_draws_roofs_and_kernels_and_says_whose_model_it_is(small: Report) -> None:
    page = html(replace(small, rooflines=(roofline(TRIAD, product(5e11, 1200), device="1"),)))
    part = page[page.index('id="roofline"') : page.index("Not to be trusted")]
    assert "Roofline of GPU 1" in part
    assert "Williams, Waterman, Patterson" in part
    assert part.count('class="ceiling measured"') == 2
    assert "f64 1020\N{NO-BREAK SPACE}Gflop/s" in part
    assert "memory 102\N{NO-BREAK SPACE}GB/s" in part
    assert part.count('class="dot"') >= 2
    cells = re.findall(r'<td class="n">(?:<b>)?([^<]+)', part.replace("\xa0", " "))
    assert cells == [
        *("7.50 Gflop/s", "7.42 to 7.58 Gflop/s", "7.65 Gflop/s"),
        *("12", "88% of 8.50 Gflop/s", "unknown"),
        *("500 Gflop/s", "495 to 505 Gflop/s", "510 Gflop/s"),
        *("12", "49% of 1020 Gflop/s", "unknown"),
    ]
    assert 'id="roofline"' not in html(small)


def test_roofs_bend_where_arithmetic_begins_to_bound_and_have_their_names_there(
    small: Report,
) -> None:
    """Memory feeds 102 GB/s: 2040 Gflop/s from 20 flop/byte on, and 1020 from 10 on."""
    page = html(replace(small, rooflines=(roofline(TRIAD, product(5e11, 1200)),)))
    drawn = image_after(page[page.index('id="roofline"') :], "</figcaption>")
    left, right, *_ = drawn.all("svg")[0].attributes["data-x"].split()
    ends = [float(left), float(right)]
    assert ends == pytest.approx([1 / 24, 200]), "half, and twice as far"
    assert drawn.all("svg")[0].attributes["data-y"].endswith(" 1"), "logarithmic"
    names = ("f32 2040 Gflop/s", "f64 1020 Gflop/s")
    for roof, name, ridge in zip(drawn.all("path", "ceiling"), names, ("20", "10"), strict=True):
        *_, corner, end = roof.attributes["data-at"].split()
        assert corner.startswith(f"{ridge},")
        assert end == f"200,{corner.partition(',')[2]}"
        slope = [tuple(map(float, p.split(","))) for p in roof.attributes["data-at"].split()[:-1]]
        assert [y / x for x, y in slope] == pytest.approx([102e9] * len(slope), rel=1e-4)
        assert slope == sorted(slope)
        x, y = roof.numbers[-4:-2]
        assert x - 20 < drawn.texts[name].at("x")[0] < x
        assert y < drawn.texts[name].at("y")[0] < y + 10


@pytest.mark.parametrize(
    ("kernel", "room"), [(replace(TRIAD, intensity=1e-3), True), (product(5e11, 12_000), False)]
)
def test_roofs_are_named_left_of_them_where_there_is_room(
    small: Report, kernel: RooflineKernel, room: bool
) -> None:
    page = html(replace(small, rooflines=(roofline(kernel),)))
    label = page[: page.index(">memory 102")]
    assert ('text-anchor="end"' in label[label.rindex("<text") :]) == room
    assert (">f64 ceiling" not in page) == room


def test_more_kernels_than_colours_are_grey(small: Report) -> None:
    many = [product(5e11 + i, 1200, f"kernel {i}") for i in range(10)]
    page = html(replace(small, rooflines=(roofline(*many),)))
    assert "2 more in grey" in page
