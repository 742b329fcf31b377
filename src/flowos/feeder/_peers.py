"""Nodes of one run that give each other what they have cached."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flowos.feeder._ranks import Ranks
from flowos.model import FeedError, brief_repr

if TYPE_CHECKING:
    from flowos._native import PeerSettings

_SECRET = "FLOWOS_PEERS_SECRET"


def checked(peers: object) -> bool:
    """Whether there are any. Raises FeedError for anything else."""
    if peers is None or isinstance(peers, Peers):
        return peers is not None
    raise FeedError(f"Feed: peers={brief_repr(peers)}; expected fo.Peers(nodes=['host:port', ...])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Together the nodes then hold as much of the data as their caches take: each keeps what it
    reads first in epoch 0, which every node can compute, so that no directory is needed.

    nodes: HOST:PORT of each; a node listens at its own, and nowhere else. What is sent between
    them can be read on its way.
    secret: of the run, 16 characters at least; None: what the variable FLOWOS_PEERS_SECRET says.
    node_of_rank: the node of each rank, counted from 0; empty: rank by rank, equally many on each.

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
        if not self.nodes:
            raise FeedError("Feed: peers have no nodes: give nodes=['host:port', ...], one of each")
        of_rank = self.node_of_rank
        if of_rank and len(of_rank) != ranks.world_size:
            raise FeedError(
                f"Feed: peers: node_of_rank has {len(of_rank)} entries for {ranks.world_size} ranks"
            )
        usual = ranks.rank * len(self.nodes) // ranks.world_size
        return PeerSettings(
            list(self.nodes),
            of_rank[ranks.rank] if of_rank else usual,
            secret,
            list(of_rank),
            self.timeout_seconds,
            self.rest_seconds,
        )
