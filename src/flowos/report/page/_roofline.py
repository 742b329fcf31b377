"""Draws a roofline: curves of kernels in a frame that holds all roofs."""

from flowos.model import Roofline
from flowos.report._panels import Panel
from flowos.report._roofline import WIDER, limits_of, memory_text
from flowos.report.page._curve import curve, fits_before, frame_of, values
from flowos.report.page._marks import people, text
from flowos.report.page._markup import Markup

_ASIDE = 8.0


def roofline_curve(roofline: Roofline, panel: Panel, name: str) -> Markup:
    """The roofs of arithmetic are named at their ends, that of memory next to its slope."""
    left, right = limits_of(roofline)
    kernels = [kernel.flops for kernel in roofline.kernels]
    low = min([*kernels, left * roofline.memory.rate]) / WIDER
    high = max([*kernels, roofline.arithmetic[0].rate]) * WIDER
    frame = frame_of(panel, (left, right), (low, high))
    rate = roofline.memory.rate
    words = people(memory_text(roofline))
    at = max(min(roofline.ridge(roof) for roof in roofline.arithmetic) / WIDER**2, left)
    x, y = frame.x.at(at), frame.y.at(at * rate)
    if fits_before(x - _ASIDE, words):  # above the slope, where nothing can be
        memory = text(words, x - _ASIDE, y, "end", "halo", values((None, at * rate)))
    else:
        memory = text(words, x + _ASIDE, y + 2 * _ASIDE, "start", "halo", values((at, at * rate)))
    return curve(panel, name, frame, memory)
