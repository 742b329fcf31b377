"""Nodes that Slurm powers up and down: what it knows of them, and what is said of them to it.

The process that asks is one that Slurm itself has started, as SlurmUser, or root's.
"""

from collections.abc import Mapping
from contextlib import suppress

from flowos.drivers.allocators.slurm_power import (
    PowerState,
    address_words,
    comment_for,
    comment_words,
    config_words,
    down_words,
    drain_words,
    jobs_on_words,
    power_down_words,
    power_words,
    read_cluster,
    read_job_ids,
    read_power,
    reason_for,
    reason_words,
)
from flowos.engine.slurm._commands import answer, answered
from flowos.model import Argv, SliceRefused


class PowerSaving:
    """The cluster of this machine. Each method raises SliceRefused if Slurm does not answer."""

    def cluster(self) -> str:
        """Its name."""
        return answered(config_words(), read_cluster)

    def states(self) -> Mapping[str, PowerState]:
        """All nodes by name, but for those that are powered down, and hidden by Slurm."""
        return answered(power_words(), read_power)

    def refuse(self, node: str, why: str, again_at: str) -> None:
        """Say where users look that a node gets no machine, and take it out until then.

        Its jobs are spoken to first: a drained node has none.
        """
        with suppress(SliceRefused):  # a job may be over meanwhile; the node has to be taken out
            for job in answered(jobs_on_words(node), read_job_ids):
                answer(comment_words(job, comment_for(node, why)))
        self._do(drain_words(node, reason_for(why, again_at)))

    def say(self, node: str, reason: str) -> None:
        """The reason of a node that is out already."""
        self._do(reason_words(node, reason))

    def give_back(self, node: str) -> None:
        """To the nodes that are powered down, and may be powered up."""
        self._do(power_down_words(node))

    def lose(self, node: str, why: str) -> None:
        """The same of one whose machine is gone."""
        self._do(down_words(node, f"FlowOS: {why}"))
        self.give_back(node)

    def set_address(self, node: str, address: str) -> None:
        self._do(address_words(node, address))

    def _do(self, words: Argv) -> None:
        answered(words, lambda _: None)
