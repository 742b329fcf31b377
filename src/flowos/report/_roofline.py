"""Rooflines as panels and rows: kernels below what memory and arithmetic permit."""

from collections.abc import Iterable, Iterator

from flowos._dataclasses import dataclass, replace
from flowos.model import Case, Chart, Measurement, Roof, Roofline, RooflineKernel, Share
from flowos.report._panels import MAX_COLOURS, Ceiling, Line, Panel
from flowos.report._units import common_scale, digits, number, share

X = "flop/byte"
WIDER = 2.0
_SLOPE = 24
ABOUT = (
    "What is possible at an arithmetic intensity: as much as memory can feed, up to the peak of"
    " arithmetic (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009). Roofs are the best"
    " that was measured in this run. An intensity counts the bytes that a kernel must move if it"
    " moves none twice; one that moves more belongs farther left."
)


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """A kernel in words. share: of what its roofs permit. by: the roof that bounds it."""

    label: str
    intensity: str
    flops: str
    share: str
    by: str


def title_of(roofline: Roofline) -> str:
    return f"Roofline of GPU {roofline.device}" if roofline.device else "Roofline of the processors"


def roofs_text(roofline: Roofline) -> str:
    """Such as memory 61.2 GB/s; f64 133 Gflop/s, from 2.2 flop/byte on."""
    words = [memory_text(roofline)]
    words += [
        f"{roof.label} {number(roof.rate, 'flop/s')}, from {digits(roofline.ridge(roof))} {X} on"
        f"{_untrusted(roof)}"
        for roof in roofline.arithmetic
    ]
    return "; ".join(words)


def memory_text(roofline: Roofline) -> str:
    return f"memory {number(roofline.memory.rate, 'byte/s')}{_untrusted(roofline.memory)}"


def _untrusted(roof: Roof) -> str:
    return "" if roof.measured.trust.good else " (not trusted)"


def rows_of(roofline: Roofline) -> Iterator[RooflineRow]:
    """Of each kernel the intensity at which it is fastest."""
    best: dict[str, RooflineKernel] = {}
    for kernel in roofline.kernels:
        best[kernel.label] = max(best.get(kernel.label, kernel), kernel, key=lambda k: k.flops)
    for kernel in best.values():
        most = roofline.attainable(kernel)
        roof = roofline.roof_of(kernel)
        yield RooflineRow(
            label=kernel.label,
            intensity=f"{digits(kernel.intensity)} {X}",
            flops=number(kernel.flops, "flop/s"),
            share=share(kernel.flops / most),
            by="memory" if most < roof.rate else f"arithmetic of {roof.label}",
        )


def panel_of(roofline: Roofline) -> Panel:
    """Lines of kernels over their intensity, in flop/s, below polygons that are the roofs."""
    rows = tuple(_as_flops(roofline, kernel) for kernel in roofline.kernels)
    series: dict[str, list[Measurement]] = {}
    for kernel, m in zip(roofline.kernels, rows, strict=True):
        series.setdefault(kernel.label, []).append(m)
    lines = [
        Line(label=label, key=(("metric", label),), colour=i % MAX_COLOURS, points=_points(found))
        for i, (label, found) in enumerate(series.items())
    ]
    return Panel(
        chart=_chart(title_of(roofline)),
        facets=(),
        lines=tuple(lines[:MAX_COLOURS]),
        context=tuple(lines[MAX_COLOURS:]),
        ceilings=tuple(_ceiling(roofline, roof) for roof in roofline.arithmetic),
        steps=(),
        rows=rows,
        scale=common_scale([m.value for m in rows], "flop/s"),
    )


def limits_of(roofline: Roofline) -> tuple[float, float]:
    """From which intensity to which one is drawn: all kernels and ridges, and some more."""
    ridges = [roofline.ridge(roof) for roof in roofline.arithmetic]
    found = [*ridges, *(kernel.intensity for kernel in roofline.kernels)]
    return min(found) / WIDER, max(found) * WIDER


def _chart(title: str) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x=X,
        metrics=("flops",),
        x_label="arithmetic intensity, flop/byte",
        log_x=True,
        log_y=True,
        about=ABOUT,
    )


def _points(found: Iterable[Measurement]) -> tuple[tuple[str, Measurement], ...]:
    return tuple((m.case.level(X), m) for m in found)


def _as_flops(roofline: Roofline, kernel: RooflineKernel) -> Measurement:
    """Its number as flop/s at its intensity, with its share of the roof."""
    m, most = kernel.measured, roofline.attainable(kernel)
    factor = kernel.flops / m.value
    return replace(
        m,
        case=Case(kernel.label, (*m.case.levels, (X, f"{kernel.intensity:.4g}"))),
        metric="flops",
        unit="flop/s",
        median=m.median * factor,
        low=m.low * factor,
        high=m.high * factor,
        best=m.best * factor,
        shares=(Share(kind="measured", of="roof", ceiling=most, value=kernel.flops / most),),
        ceiling=False,
    )


def _ceiling(roofline: Roofline, roof: Roof) -> Ceiling:
    """Its slope has points between, as it is no straight line where one axis is linear."""
    left, right = limits_of(roofline)
    ridge = roofline.ridge(roof)
    slope = [left * (ridge / left) ** (i / _SLOPE) for i in range(_SLOPE)]
    corners = [(x, x * roofline.memory.rate) for x in slope]
    corners += [(ridge, roof.rate), (right, roof.rate)]
    points = tuple((f"{x:.6g}", value) for x, value in corners)
    return Ceiling(
        label=f"{roof.label}{_untrusted(roof)}",
        kind="measured",
        points=points,
        free_below=f"{ridge:.6g}",
    )
