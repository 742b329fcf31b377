"""The users of a partition: what they hold now, and have used where the cluster has accounts."""

from flowos.drivers.allocators.slurm import partition_of, partitions_words, read_partitions
from flowos.drivers.allocators.slurm_users import (
    read_used,
    read_users,
    used_words,
    users_words,
    with_used,
)
from flowos.engine.slurm._commands import answered
from flowos.model import Pool, PoolUser, SliceRefused


def slurm_users(pool: Pool) -> tuple[tuple[PoolUser, ...], str]:
    """The users, and why it is not known what they used, or "".

    Raises SliceRefused if Slurm does not answer, or has no such partition.
    """
    partition = partition_of(pool, answered(partitions_words(), read_partitions))
    if isinstance(partition, str):
        raise SliceRefused(partition)
    now = answered(users_words(partition.name), read_users)
    try:
        used = answered(used_words(partition.name), read_used)
    except SliceRefused as error:
        return now, str(error)
    return with_used(now, used), ""
