"""What commands do otherwise for each kind of pool, beyond what its provider promises."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flowos import engine
from flowos._dataclasses import dataclass

if TYPE_CHECKING:  # a slice of a local pool loads none of it
    from typing import Literal

    from flowos.model import (
        Argv,
        DeployedNode,
        Pool,
        PoolKind,
        PoolUser,
        SliceAccounts,
        SliceRecord,
    )


@dataclass(frozen=True, kw_only=True)
class KindOfPool:
    """None of what it cannot do. Each is asked of the resource manager, and may raise SliceRefused.

    here: its nodes are this machine. boots_kernels: its nodes can be booted into a kernel.
    by_hand: a program on one node, as a person starts it. users: of its nodes, and why it is not
    known what they used. deployed: what nodes were booted into. waits: why a slice waits.
    accounts: what its jobs used. cancel: end the jobs of a slice. job_end: seconds that jobs were
    held, whose program is gone. frees_left: jobs that killed programs left are ended by others.
    """

    here: bool
    boots_kernels: bool
    by_hand: "Callable[[Pool, Argv], Argv]"
    users: "Callable[[Pool], tuple[tuple[PoolUser, ...], str]]"
    deployed: "Callable[[Sequence[str]], tuple[DeployedNode, ...]]"
    waits: "Callable[[SliceRecord], tuple[str, ...]] | None"
    accounts: "Callable[[SliceRecord], SliceAccounts | None] | None"
    cancel: "Callable[[SliceRecord], None] | None"
    job_end: "Callable[[SliceRecord], float | Literal['held', 'unknown']] | None"
    frees_left: bool


def kind_of_pool(kind: "PoolKind") -> KindOfPool:
    """Of a kind that is none of these, mypy says so."""
    match kind:
        case "local" | "fake":
            return _HERE
        case "slurm":
            return _SLURM
        case "sge":
            return _SGE


def _here_by_hand(pool: "Pool", command: "Argv") -> "Argv":  # noqa: ARG001
    return command


def _slurm_by_hand(pool: "Pool", command: "Argv") -> "Argv":
    from flowos.drivers.allocators.slurm import by_hand_words

    return by_hand_words(pool, command)


def _sge_by_hand(pool: "Pool", command: "Argv") -> "Argv":
    from flowos.drivers.allocators.sge import by_hand_words

    return by_hand_words(pool, command)


def _no_users(pool: "Pool") -> "tuple[tuple[PoolUser, ...], str]":  # noqa: ARG001
    return (), ""


def _names_alone(names: Sequence[str]) -> "tuple[DeployedNode, ...]":
    from flowos.model import DeployedNode

    return tuple(DeployedNode(name=name) for name in names)


def _slurm_accounts(record: "SliceRecord") -> "SliceAccounts | None":
    return engine.slurm_accounts(record.jobs, running=not record.is_over)


_HERE = KindOfPool(
    here=True,
    boots_kernels=False,
    by_hand=_here_by_hand,
    users=_no_users,
    deployed=_names_alone,
    waits=None,
    accounts=None,
    cancel=None,
    job_end=None,
    frees_left=False,
)
_SLURM = KindOfPool(
    here=False,
    boots_kernels=True,
    by_hand=_slurm_by_hand,
    users=lambda pool: engine.slurm_users(pool),
    deployed=lambda names: engine.slurm_deployed(names),
    waits=lambda record: engine.slurm_wait(record.id, record.ask),
    accounts=_slurm_accounts,
    cancel=lambda record: engine.cancel_slurm_jobs(record.id, len(record.jobs)),
    job_end=lambda record: engine.slurm_job_end(record.id, len(record.jobs)),
    frees_left=True,
)
_SGE = KindOfPool(
    here=False,
    boots_kernels=False,
    by_hand=_sge_by_hand,
    users=_no_users,
    deployed=_names_alone,
    waits=None,
    accounts=None,
    cancel=lambda record: engine.cancel_sge_jobs(record.id),
    job_end=None,
    frees_left=False,
)
