"""Nodes of one run that give each other what they have cached."""

import os
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass, field
from flowos.feeder._ranks import Ranks
from flowos.model import FeedError, brief_repr

if TYPE_CHECKING:
    from flowos._native import PeerSettings

_SECRET = "FLOWOS_PEERS_SECRET"
_MAX_SECONDS = 86_400
_MAX_NODES = 1 << 32


def checked(peers: object) -> bool:
    """Whether there are any. Raises FeedError for anything else."""
    if peers is None or isinstance(peers, Peers):
        return peers is not None
    raise FeedError(f"Feed: peers={brief_repr(peers)}; expected fo.Peers(nodes=['host:port', ...])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Together the nodes then hold as much of the data as their caches take: each keeps what it
    reads first in epoch 0, which every node can compute, so that no directory is needed.

    nodes: HOST:PORT of each; a node listens at its own, and nowhere else. Samples are sent in the
    clear: use them only on a network where all may read your data.
    secret: of the run, 16 characters at least; None: what the variable FLOWOS_PEERS_SECRET says.
    node_of_rank: the node of each rank, counted from 0; empty: rank by rank, equally many on each.
    timeout_seconds: a peer that does not answer for so long, or takes longer for a MiB, is left
    alone for rest_seconds; its samples come from the source meanwhile.

    >>> fo.Peers(nodes=["node1:7000", "node2:7000"], secret="of this run alone").nodes
    ['node1:7000', 'node2:7000']
    """

    nodes: Sequence[str]
    secret: str | None = field(default=None, repr=False)
    node_of_rank: Sequence[int] = ()
    timeout_seconds: float = 2.0
    rest_seconds: float = 10.0

    def settings(self, ranks: Ranks) -> "PeerSettings":
        """For the native feeder of this rank. Raises FeedError if a setting is missing or wrong."""
        from flowos._native import PeerSettings

        secret = os.environ.get(_SECRET) if self.secret is None else self.secret
        if not secret:
            raise FeedError(f"Feed: peers have no secret: set secret= or the variable {_SECRET}")
        if not isinstance(secret, str):
            raise FeedError(f"Feed: peers: secret is a {type(secret).__name__}; expected a str")
        nodes = _nodes(self.nodes)
        of_rank = _node_of_rank(self.node_of_rank, ranks)
        usual = ranks.rank * len(nodes) // ranks.world_size
        return PeerSettings(
            nodes,
            of_rank[ranks.rank] if of_rank else usual,
            secret,
            of_rank,
            _seconds("timeout_seconds", self.timeout_seconds, 0.001),
            _seconds("rest_seconds", self.rest_seconds, 0.0),
        )


def _nodes(given: object) -> list[str]:
    some = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    each = tuple(given) if some else (given,)  # type: ignore[arg-type]
    nodes = [node for node in each if isinstance(node, str)]
    if not some or len(nodes) < len(each):
        raise FeedError(
            f"Feed: peers: nodes={brief_repr(given)}; expected ['host:port', ...], one of each node"
        )
    if not nodes:
        raise FeedError("Feed: peers have no nodes: give nodes=['host:port', ...], one of each")
    for node in nodes:
        if nodes.count(node) > 1:
            raise FeedError(f"Feed: peers: {node} is in nodes= twice; each node has its own")
    return nodes


def _node_of_rank(given: object, ranks: Ranks) -> list[int]:
    try:
        found = list(map(index, given)) if isinstance(given, Iterable) else None
    except TypeError:
        found = None
    if found is None or not all(0 <= node < _MAX_NODES for node in found):
        raise FeedError(
            f"Feed: peers: node_of_rank={brief_repr(given)}; expected the number of its node, from "
            "0, for each rank"
        )
    if found and len(found) != ranks.world_size:
        raise FeedError(
            f"Feed: peers: node_of_rank has {len(found)} entries for {ranks.world_size} ranks"
        )
    return found


def _seconds(name: str, given: object, min_seconds: float) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not min_seconds <= given <= _MAX_SECONDS:  # type: ignore[operator]
        raise FeedError(
            f"Feed: peers: {name}={brief_repr(given)}; expected {min_seconds:g} to {_MAX_SECONDS:,}"
        )
    return float(given)  # type: ignore[arg-type]
