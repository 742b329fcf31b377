"""The pool that is a partition of the Slurm cluster of this login node."""

import math
from functools import partial
from pathlib import Path

from flowos._dataclasses import replace
from flowos.drivers.allocators.slurm import (
    SlurmPartition,
    nodes_words,
    partition_of,
    partitions_words,
    read_nodes,
    read_partitions,
    refusal,
    too_few,
    trial_words,
)
from flowos.drivers.allocators.slurm_constraints import (
    available_words,
    gres_words,
    names_type,
    read_available,
    read_types,
    refusal_of_constraint,
    refusal_of_gres,
    refusal_of_types,
)
from flowos.drivers.allocators.slurm_kernels import (
    features_words,
    read_features,
    refusal_of_kernel,
    refusal_of_running,
)
from flowos.drivers.allocators.slurm_nodes import (
    SLURMD_PORT,
    SlurmConfig,
    addresses_words,
    config_words,
    has_devices,
    job_nodes_words,
    limited,
    read_addresses,
    read_config,
    read_job_devices,
    read_job_memory,
    read_topology,
    refusal_of_topology,
    topology_words,
)
from flowos.engine._later import Later
from flowos.engine._provider import CancelToken, Held, HoldEvent, OnHoldEvent, ignore
from flowos.engine.cluster._cluster_node import JobNodes
from flowos.engine.cluster._cluster_provider import ClusterProvider, of_jobs, waits
from flowos.engine.cluster._held_job import HeldJob
from flowos.engine.cluster._shared_folder import base_of
from flowos.engine.slurm._allocation import allocate
from flowos.engine.slurm._boot_watch import BootWatch
from flowos.engine.slurm._commands import answered, refuse_without_munge
from flowos.engine.slurm._enclosing_job import EnclosingJob, enclosing_job, join
from flowos.engine.slurm._leased import LeasedAllocation, allocate_leased, attached
from flowos.engine.slurm._slurm_node import SlurmNode
from flowos.model import Ask, Lost, NodeInfo, SliceRefused


class SlurmProvider(ClusterProvider):
    """Within a job (`EnclosingJob`) nodes are of that job, which goes on when they are freed."""

    _asked_config: Later[SlurmConfig] | None = None

    def leave(self, held: Held) -> None:
        now = self._leases.find(held.id)
        for node in () if isinstance(now, Lost) else of_jobs(now.nodes):
            if isinstance(node.allocation, LeasedAllocation):
                node.allocation.leave()
        self.free(held)

    def nodes(self) -> tuple[NodeInfo, ...]:
        found = super().nodes()
        if enclosing_job(self.pool) is None:
            try:
                answered(trial_words(self.pool), str)
            except SliceRefused as error:
                raise self._refused(str(error)) from None
        return found

    def attach(self, id: str, on_event: OnHoldEvent = ignore) -> Held | Lost:
        known = self._leases.find(id)
        if not isinstance(known, Lost):
            return known
        allocation = attached(id)
        if isinstance(allocation, str):
            return Lost(f"{known.reason}; {allocation}")
        state = allocation.state
        try:
            nodes = self._nodes_of(allocation, base_of(self.pool))
            left = replace(state.ask, seconds=state.left_seconds)
            return self._begin(nodes, state.ask, left, on_event)
        except BaseException:
            allocation.leave()
            raise

    def _nodes_of(self, allocation: HeldJob, base: Path) -> tuple[SlurmNode, ...]:
        config = self._config().result()
        names = [kept.name for kept in allocation.nodes]
        said = Later(partial(answered, addresses_words(names), str))
        asks = config.memory or (config.devices and has_devices(said.result()))
        given = answered(job_nodes_words(allocation.job), str) if asks else ""
        devices, memory = read_job_devices(given), read_job_memory(given)
        job = JobNodes(base, self.pool.scratch)
        return tuple(
            SlurmNode(
                replace(
                    limited(kept, memory.get(kept.name, 0)), devices=devices.get(kept.name, ())
                ),
                allocation,
                config,
                partial(_slurmd, said, kept.name),
                job,
            )
            for kept in allocation.nodes
        )

    def _begun(
        self,
        ask: Ask,
        on_event: OnHoldEvent,
        cancel: CancelToken,
        proof: Path,
        held: tuple[str, ...],  # noqa: ARG002 - its jobs have whole nodes
    ) -> HeldJob:
        job, wanted = enclosing_job(self.pool), (self._session, self.pool, ask, waits(on_event))
        config = self._config()

        def boots(reason: str) -> None:
            on_event(HoldEvent(what="booting", reason=reason))

        if job is None:
            with BootWatch(ask, boots):
                if ask.lease_seconds is not None:
                    return allocate_leased(*wanted[1:], proof)
                check = partial(self._suitable, ask)
                return allocate(*wanted, proof=proof, cancel=cancel, check=check)
        if ask.lease_seconds is not None:
            raise SliceRefused(f"lease_seconds: job {job.id} around this program has its own end")
        self._refuse_other_kernel(ask, job)
        return join(*wanted, job, config=config.result(), proof=proof, cancel=cancel)

    def _config(self) -> Later[SlurmConfig]:
        """Asked once, next to what else is waited for."""
        if self._asked_config is None or self._asked_config.failed:
            self._asked_config = Later(partial(answered, config_words(), read_config))
        return self._asked_config

    def _possible(self, ask: Ask) -> Ask:
        """Until the end of the job around us, if there is one."""
        job = enclosing_job(self.pool)
        if job is None:
            return super()._possible(ask)
        try:
            refuse_without_munge()
            left = job.now(ask).left_seconds
        except SliceRefused as error:
            raise self._refused(str(error)) from None
        ends = [s for s in (ask.seconds, left) if s is not None and s < math.inf]
        return replace(ask, seconds=min(ends) if ends else None)

    def _before(self, ask: Ask) -> Ask:
        """What can never be had Slurm refuses, or lets it wait: only then it is asked why."""
        is_checked = ask.lease_seconds is not None or ask.topology == "switch" or ask.kernel
        return self._possible(ask) if is_checked or enclosing_job(self.pool) else ask

    def _checked(self, ask: Ask) -> tuple[NodeInfo, ...]:
        try:
            return self._suitable(ask)
        except SliceRefused as error:
            raise self._refused(str(error)) from None

    def _suitable(self, ask: Ask) -> tuple[NodeInfo, ...]:
        """The nodes of the pool. Raises SliceRefused if what is asked for can never be had."""
        refuse_without_munge()
        partition = self._partition()
        nodes = answered(nodes_words(partition.name), read_nodes)
        complaint = refusal(self.pool, ask, partition)
        complaint = complaint or refusal_of_gres(self.pool, partition.name, nodes)
        complaint = complaint or too_few(self.pool, ask, nodes)
        complaint = complaint or self._unlike(ask, partition.name, nodes)
        complaint = complaint or self._misplaced(ask, nodes)
        complaint = complaint or self._not_bootable(ask, partition.name)
        if complaint:
            raise SliceRefused(complaint)
        return nodes

    def _unlike(self, ask: Ask, partition: str, nodes: tuple[NodeInfo, ...]) -> str:
        """Why too few of them have the features or the types of the pool, or ""."""
        complaint = ""
        if self.pool.constraint:
            names = [node.name for node in nodes]
            features = answered(available_words(), read_available)
            complaint = refusal_of_constraint(self.pool, ask, partition, names, features)
        if not complaint and names_type(self.pool):
            types = answered(gres_words(partition), read_types)
            complaint = refusal_of_types(self.pool, ask, partition, types)
        return complaint

    def _misplaced(self, ask: Ask, nodes: tuple[NodeInfo, ...]) -> str:
        """Why none of them can be so to each other, or ""."""
        if ask.topology != "switch":
            return ""
        switches = answered(topology_words(), read_topology)
        return refusal_of_topology(ask, [node.name for node in nodes], switches)

    def _not_bootable(self, ask: Ask, partition: str) -> str:
        """Why none of them can have the kernel that is asked for, or ""."""
        if not ask.kernel:
            return ""
        features = answered(features_words(partition), read_features)
        return refusal_of_kernel(self.pool, ask, features, self._config().result().boots)

    def _refuse_other_kernel(self, ask: Ask, job: EnclosingJob) -> None:
        """Raises SliceRefused if nodes of the job around us have booted another one."""
        if ask.kernel:
            its, known = job.now(ask).nodes, answered(features_words(), read_features)
            features = {name: known[name] for name in its if name in known}
            if complaint := refusal_of_running(ask, features, job.id):
                raise SliceRefused(complaint)

    def _partition(self) -> SlurmPartition:
        found = partition_of(self.pool, answered(partitions_words(), read_partitions))
        if isinstance(found, str):
            raise SliceRefused(found)
        return found


def _slurmd(said: Later[str], name: str) -> tuple[str, str, int]:
    """Address and port on that node, too: they are asked for while the slice is used already."""
    try:
        addresses = read_addresses(said.result())
    except SliceRefused:  # the controller fails
        addresses = {}
    return "slurmd", *addresses.get(name, (name, SLURMD_PORT))
