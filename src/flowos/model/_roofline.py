"""The roofline model: what memory and arithmetic permit at an arithmetic intensity.

Williams, Waterman, Patterson: Roofline: an insightful visual performance model for multicore
architectures, CACM 52(4), 2009.
"""

from flowos._dataclasses import dataclass
from flowos.model._samples import Measurement


@dataclass(frozen=True, kw_only=True)
class Roof:
    """A measured ceiling: byte/s of memory, or flop/s of numbers of a type. label: such as f64."""

    label: str
    measured: Measurement

    @property
    def rate(self) -> float:
        """The best that was seen."""
        return self.measured.best


@dataclass(frozen=True, kw_only=True)
class RooflineKernel:
    """A kernel under its roofs. measured: flop/s, or byte/s of what it must move.

    intensity: flop for each byte that it must move at least. type: of its numbers, whose roof
    bounds it.
    """

    label: str
    type: str
    intensity: float
    measured: Measurement

    @property
    def flops(self) -> float:
        """Operations per second."""
        bytes_are_counted = self.measured.unit == "byte/s"
        return self.measured.value * (self.intensity if bytes_are_counted else 1.0)


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """Of the processors, device "", or of a GPU by its number. arithmetic: the highest first."""

    device: str
    memory: Roof
    arithmetic: tuple[Roof, ...]
    kernels: tuple[RooflineKernel, ...]

    def roof_of(self, kernel: RooflineKernel) -> Roof:
        """The arithmetic roof of its type; the highest if its own was not measured."""
        own = (roof for roof in self.arithmetic if roof.label == kernel.type)
        return next(own, self.arithmetic[0])

    def attainable(self, kernel: RooflineKernel) -> float:
        """Flop/s that the roofs permit at its intensity."""
        return min(self.roof_of(kernel).rate, self.memory.rate * kernel.intensity)

    def ridge(self, roof: Roof) -> float:
        """The intensity from which on arithmetic bounds, and no longer memory."""
        return roof.rate / self.memory.rate
