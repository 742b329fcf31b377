"""`flowos cloud sizes`: machines of clouds with what they cost on one day."""

from flowos.drivers.clouds.sizes import vm_sizes
from flowos.model import VmSize


def fitting_sizes(
    *, region: str = "", vcpus: int = 0, gpus: int = 0, memory_bytes: int = 0
) -> tuple[VmSize, ...]:
    """Sizes of the catalogue that have at least this, the cheapest first."""
    found = [
        size
        for size in vm_sizes()
        if size.fits(vcpus=vcpus, gpus=gpus, memory_bytes=memory_bytes)
        and region in ("", size.region)
    ]
    return tuple(sorted(found, key=lambda size: size.price))
