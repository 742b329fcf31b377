"""Which users hold nodes of a partition, which wait for some, and what each has used of it."""

import re
from collections.abc import Iterable

from flowos._dataclasses import replace
from flowos.drivers._allocators import read_amount
from flowos.drivers._slurm_values import phase_of, read_tres
from flowos.model import Argv, PoolUser

USED_DAYS = 7
_JOBS = "%u|%T|%D|%C"
_USED = "User,ElapsedRaw,AllocTRES"


def users_words(partition: str) -> Argv:
    """Of all jobs that run or wait."""
    return ("squeue", "--noheader", f"--partition={partition}", f"--format={_JOBS}")


def used_words(partition: str) -> Argv:
    """Of the jobs of the last days."""
    return (
        "sacct",
        *("--noheader", "--parsable2", "--allusers", "--allocations", "--truncate"),
        "--endtime=now",
        *(f"--partition={partition}", f"--starttime=now-{USED_DAYS}days", f"--format={_USED}"),
    )


def read_users(text: str) -> tuple[PoolUser, ...]:
    """Of `users_words`."""
    rows = (line.split("|") for line in text.splitlines())
    return _by_user(_held(*row) for row in rows if len(row) == 4)


def read_used(text: str) -> tuple[PoolUser, ...]:
    """Of `used_words`."""
    rows = (line.split("|") for line in text.splitlines())
    return _by_user(_used(*row) for row in rows if len(row) == 3 and row[0])


def with_used(now: tuple[PoolUser, ...], used: tuple[PoolUser, ...]) -> tuple[PoolUser, ...]:
    """Users that hold or wait, and those that used nodes: most node-seconds first."""
    nothing = (replace(user, node_seconds=0.0, core_seconds=0.0, gpu_seconds=0.0) for user in now)
    found = _by_user((*nothing, *used))
    return tuple(sorted(found, key=lambda user: (-(user.node_seconds or 0.0), user.name)))


def _held(name: str, state: str, nodes: str, cores: str) -> PoolUser:
    phase = phase_of(state)
    if phase == "waiting":
        return PoolUser(name=name, waiting=1)
    if phase == "over":
        return PoolUser(name=name)
    counts = [int(read_amount(text) or 0) for text in (nodes, cores)]
    return PoolUser(name=name, jobs=1, nodes=counts[0], cores=counts[1])


def _used(name: str, elapsed: str, given: str) -> PoolUser:
    seconds, tres = read_amount(elapsed) or 0.0, read_tres(given)
    gpus = tres.get("gres/gpu", sum(n for what, n in tres.items() if _TYPED_GPU.match(what)))
    return PoolUser(
        name=name,
        node_seconds=seconds * tres.get("node", 0.0),
        core_seconds=seconds * tres.get("cpu", 0.0),
        gpu_seconds=seconds * gpus,
    )


_TYPED_GPU = re.compile("gres/gpu:")


def _by_user(parts: Iterable[PoolUser]) -> tuple[PoolUser, ...]:
    found: dict[str, PoolUser] = {}
    for part in parts:
        found[part.name] = found[part.name].plus(part) if part.name in found else part
    return tuple(found.values())
