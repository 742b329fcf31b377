"""Draws a roofline: curves of kernels in a frame that holds all roofs."""

from flowos.model import Roofline
from flowos.report._panels import Panel
from flowos.report._roofline import WIDER, limits_of
from flowos.report._units import number
from flowos.report.page._curve import curve, frame_of, values
from flowos.report.page._marks import WIDTH, people, text
from flowos.report.page._markup import Markup

_ABOVE = 8.0


def roofline_curve(roofline: Roofline, panel: Panel, name: str) -> Markup:
    """The roofs of arithmetic are named at their ends, that of memory next to its slope."""
    left, right = limits_of(roofline)
    kernels = [kernel.flops for kernel in roofline.kernels]
    low = min([*kernels, left * roofline.memory.rate]) / WIDER
    high = max([*kernels, roofline.arithmetic[0].rate]) * WIDER
    frame = frame_of(panel, (left, right), (low, high))
    at = min(roofline.ridge(roof) for roof in roofline.arithmetic) / WIDER
    at = max(at, left)
    rate = at * roofline.memory.rate
    x, y = frame.x.at(at), frame.y.at(rate)
    place = (x, y - _ABOVE, "end") if x > WIDTH / 2 else (x + _ABOVE, y + 2 * _ABOVE, "start")
    words = f"memory {number(roofline.memory.rate, 'byte/s')}"
    return curve(panel, name, frame, text(people(words), *place, "halo", values((at, rate))))
