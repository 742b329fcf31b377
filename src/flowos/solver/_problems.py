"""Matrices to try a solver with, and to measure machines with."""

from flowos.solver._csr import Csr, csr_of


def poisson(x: int, y: int, z: int) -> Csr:
    """-div grad on x * y * z cells by 7 points, 6 and -1, zero around; x moves fastest."""
    from flowos._native import poisson as generate

    return csr_of(generate(x, y, z))


def g3like(seed: int = 1) -> Csr:
    """A power grid of 1 585 478 nodes, in size and degree like the collection's G3_circuit.

    A stand-in, not to be called by the other's name. The same for the same seed, everywhere.
    """
    from flowos._native import g3like as generate

    return csr_of(generate(seed))
