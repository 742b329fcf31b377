"""Rooflines: the roofs that were measured, and the kernels whose intensity their probe states."""

from collections.abc import Iterable, Iterator, Sequence

from flowos.model import Measurement, Roof, Roofline, RooflineKernel
from flowos.probes import _tables
from flowos.probes._gpu import HOST

MEMORY = "memory"


def rooflines(measured: Sequence[Measurement]) -> tuple[Roofline, ...]:
    """One for the processors, and one for each GPU, where both kinds of roof were measured.

    Roofs and kernels are those of the best setting that was measured, on however many cores.
    """
    devices = dict.fromkeys(_device(m) for m in measured)
    return tuple(filter(None, (_of_device(d, measured) for d in devices)))


def _device(m: Measurement) -> str:
    device = m.case.level("device")
    return "" if device == HOST else device


def _of_device(device: str, measured: Sequence[Measurement]) -> Roofline | None:
    ours = [m for m in measured if _device(m) == device and m.best > 0]
    roofs = list(_roofs(ours))
    memory = [roof for roof in roofs if roof.label == MEMORY]
    arithmetic = _best(roof for roof in roofs if roof.label != MEMORY)
    kernels = tuple(_kernels(ours))
    if not (memory and arithmetic and kernels):
        return None
    return Roofline(device=device, memory=_best(memory)[0], arithmetic=arithmetic, kernels=kernels)


def _roofs(measured: Iterable[Measurement]) -> Iterator[Roof]:
    for m in measured:
        probe = _tables.probe_named(m.case.probe)
        if probe and m.metric in probe.info.roofs:
            label = MEMORY if m.unit == "byte/s" else m.case.level("type")
            yield Roof(label=label, measured=m)


def _best(roofs: Iterable[Roof]) -> tuple[Roof, ...]:
    """The highest of each label, the highest of all first."""
    found: dict[str, Roof] = {}
    for roof in roofs:
        if roof.label not in found or roof.rate > found[roof.label].rate:
            found[roof.label] = roof
    return tuple(sorted(found.values(), key=lambda roof: -roof.rate))


def _kernels(measured: Iterable[Measurement]) -> Iterator[RooflineKernel]:
    """The fastest setting at each intensity of a kernel, intensities rising."""
    found: dict[tuple[str, float], RooflineKernel] = {}
    for m in measured:
        probe = _tables.probe_named(m.case.probe)
        at = probe.intensity(m) if probe else None
        if at is None or m.median <= 0:
            continue
        kernel = RooflineKernel(
            label=at.label, type=at.type, intensity=at.flop_per_byte, measured=m
        )
        key = (kernel.label, kernel.intensity)
        if key not in found or kernel.flops > found[key].flops:
            found[key] = kernel
    yield from sorted(found.values(), key=lambda kernel: kernel.intensity)
