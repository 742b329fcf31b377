"""The catalogue of sizes of machines, `sizes.csv` next to this file."""

import csv
import re
from importlib.resources import files

from flowos.model import VmSize

_SOURCE = re.compile(r"# (\d+): (.+)")
_BYTES_OF_GBIT = 1e9 / 8


def vm_sizes() -> tuple[VmSize, ...]:
    """All of them, in the order of the file."""
    return read_sizes(files("flowos").joinpath("drivers", "clouds", "sizes.csv").read_text())


def read_sizes(text: str) -> tuple[VmSize, ...]:
    """Of a file like it: `# NUMBER: SOURCE` lines, then rows that name their source by number."""
    lines = text.splitlines()
    sources = {found[1]: found[2] for line in lines if (found := _SOURCE.fullmatch(line))}
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple(_size(row, sources) for row in rows)


def _size(row: dict[str, str], sources: dict[str, str]) -> VmSize:
    network, spot = row["network_gbit"], row["spot"]
    return VmSize(
        name=row["size"],
        cloud=row["cloud"],
        vcpus=int(row["vcpus"]),
        memory_bytes=int(row["memory_gib"]) << 30,
        gpus=int(row["gpus"]),
        gpu=row["gpu"],
        network_bytes=float(network) * _BYTES_OF_GBIT if network else None,
        region=row["region"],
        price=float(row["price"]),
        spot=float(spot) if spot else None,
        currency=row["currency"],
        source=sources[row["source"]],
    )
