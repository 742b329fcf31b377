"""Which machines nodes are: what Slurm knows of their instance, boot and switch."""

from collections.abc import Mapping

from flowos.drivers._slurm_values import read_pairs
from flowos.model import DeployedNode

_UNKNOWN = ("(null)", "None", "Unknown", "N/A")


def read_deployed(nodes: str, switches: Mapping[str, str]) -> tuple[DeployedNode, ...]:
    """Of `scontrol show node --oneliner`. switches: of nodes, where they are known."""
    return tuple(
        DeployedNode(
            name=found["NodeName"],
            instance=_known(found.get("InstanceId", "")),
            booted=_known(found.get("BootTime", "")),
            switch=switches.get(found["NodeName"], ""),
        )
        for found in map(read_pairs, nodes.splitlines())
        if "NodeName" in found
    )


def _known(value: str) -> str:
    return "" if value in _UNKNOWN else value
