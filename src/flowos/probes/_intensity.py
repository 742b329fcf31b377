"""Arithmetic intensity of kernels: operations for each byte that they must move."""

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intensity:
    """Where a number is in a roofline. label: of its kernel. flop_per_byte: of each byte that the
    kernel must move, if it moves none twice. type: of its numbers."""

    label: str
    flop_per_byte: float
    type: str


TRIAD = Intensity("STREAM triad", 2 / 24, "f64")
"""a = b + q c: two operations, 24 bytes; what a store reads first is not counted, as in STREAM."""


def of_product(label: str, kind: str, n: int, bytes_per_element: int) -> Intensity:
    """A product of matrices of n x n. bytes_per_element: of both factors and the product."""
    return Intensity(label, 2 * n / bytes_per_element, kind)
