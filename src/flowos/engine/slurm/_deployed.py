"""Which machines the nodes of a slice are, as Slurm knows it."""

from collections.abc import Sequence

from flowos.drivers.allocators.slurm_deployed import read_deployed
from flowos.drivers.allocators.slurm_nodes import addresses_words, read_topology, topology_words
from flowos.engine.slurm._commands import answered
from flowos.model import DeployedNode, SliceRefused


def slurm_deployed(nodes: Sequence[str]) -> tuple[DeployedNode, ...]:
    """In their order. Raises SliceRefused if Slurm does not answer."""
    shown = answered(addresses_words(nodes), str)
    try:
        switches = answered(topology_words(), read_topology)
    except SliceRefused:  # a cluster without them
        switches = {}
    known = {node.name: node for node in read_deployed(shown, switches)}
    return tuple(known.get(name, DeployedNode(name=name)) for name in nodes)
