"""Which part of the data is this process's: given, of torch.distributed, or of what started it."""

from collections.abc import Iterator, Mapping

from flowos._dataclasses import dataclass
from flowos.model import FeedError, brief_repr

_LAUNCHERS = (
    ("torchrun", "RANK", ("WORLD_SIZE",)),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",)),
    ("PMI", "PMI_RANK", ("PMI_SIZE",)),
    ("Slurm", "SLURM_PROCID", ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
)
"""Variables of each launcher; the innermost first, as srun or mpirun may start torchrun."""

_STEP = "SLURM_STEP_ID"
"""Without it srun has not started this: it is a batch script, which has a SLURM_PROCID too."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process is number `rank` (from 0) of `world_size`."""

    rank: int
    world_size: int


def ranks_of(
    rank: int | None,
    world_size: int | None,
    distributed: Ranks | None,
    variables: Mapping[str, str],
) -> Ranks:
    """What is given wins, then torch.distributed, then the variables of what started us.

    distributed: as of torch.distributed, where that is initialised. Raises FeedError if half of it
    is given, or the variables contradict each other.
    """
    if rank is not None or world_size is not None:
        return _given(rank, world_size)
    if distributed is not None:
        return distributed
    by_launchers = tuple(_by_launchers(variables))
    if not by_launchers:
        return Ranks(0, 1)
    (by, found), *others = by_launchers
    for other, also in others:
        if not _agree(found, also):
            raise FeedError(
                f"Feed: this is rank {found.rank} of {found.world_size} by {by}, but rank "
                f"{also.rank} of {also.world_size} by {other}: give rank= and world_size="
            )
    return found


def _given(rank: int | None, world_size: int | None) -> Ranks:
    if rank is None or world_size is None:
        one, other = ("world_size", "rank") if rank is None else ("rank", "world_size")
        raise FeedError(f"Feed: {one} is given without {other}; give both or none")
    if type(world_size) is not int or world_size < 1:
        raise FeedError(
            f"Feed: world_size={brief_repr(world_size)}; expected a whole number above 0"
        )
    if type(rank) is not int or not 0 <= rank < world_size:
        raise FeedError(
            f"Feed: rank={brief_repr(rank)}; expected 0 to {world_size - 1}, below world_size"
        )
    return Ranks(rank, world_size)


def _by_launchers(variables: Mapping[str, str]) -> Iterator[tuple[str, Ranks]]:
    for by, rank_name, size_names in _LAUNCHERS:
        if by == "Slurm" and _STEP not in variables:
            continue
        size_name = next((name for name in size_names if name in variables), "")
        if rank_name not in variables and not size_name:
            continue
        if rank_name not in variables or not size_name:
            there, missing = (rank_name, size_names[0]) if not size_name else (size_name, rank_name)
            raise FeedError(
                f"Feed: the variable {there} is set, but not {missing}: set both, or give rank= "
                "and world_size="
            )
        yield by, _read(variables, rank_name, size_name)


def _read(variables: Mapping[str, str], rank_name: str, size_name: str) -> Ranks:
    said = f"{rank_name}={variables[rank_name]} and {size_name}={variables[size_name]}"
    try:
        found = Ranks(int(variables[rank_name]), int(variables[size_name]))
    except ValueError:
        raise FeedError(f"Feed: {said[:200]} are no whole numbers") from None
    if not 0 <= found.rank < found.world_size:
        raise FeedError(f"Feed: {said[:200]}: a rank is one of 0 to size - 1")
    return found


def _agree(inner: Ranks, outer: Ranks) -> bool:
    """Each process of the outer may have started several of the inner, as srun does torchrun."""
    if inner.world_size == outer.world_size:
        return inner.rank == outer.rank
    rest = inner.world_size % outer.world_size
    return rest == 0
