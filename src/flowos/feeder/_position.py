"""Position of a feed in its data, for checkpoints."""

from collections.abc import Mapping

from flowos._dataclasses import dataclass
from flowos.model import FeedError, brief_repr

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """All ranks together have taken the first `taken` samples of this epoch's order."""

    epoch: int = 0
    taken: int = 0


def state_of(at: Position, seed: int, shuffle: bool, samples: int) -> dict[str, object]:
    """What is needed to go on exactly there, with any number of ranks: plain values."""
    return {
        "version": _VERSION,
        "epoch": at.epoch,
        "taken": at.taken,
        "seed": seed,
        "shuffle": shuffle,
        "samples": samples,
    }


def position_in(state: object, seed: int, shuffle: bool, samples: int) -> Position:
    """The saved position. Raises FeedError if it belongs to other data or another order."""
    if not isinstance(state, Mapping) or state.get("version") != _VERSION:
        raise FeedError(
            f"load_state_dict: {brief_repr(state)} is no state of a Feed; "
            "give what state_dict() said"
        )
    for name, here in (("seed", seed), ("shuffle", shuffle), ("samples", samples)):
        if state.get(name) != here:
            raise FeedError(
                f"load_state_dict: the state was kept with {name}={state.get(name)}, this feed has "
                f"{name}={here}: the samples would come in another order"
            )
    epoch, taken = state.get("epoch"), state.get("taken")
    if not (_is_count(epoch) and _is_count(taken)) or taken > samples:  # type: ignore[operator]
        raise FeedError(
            f"load_state_dict: epoch={brief_repr(epoch)}, taken={brief_repr(taken)}: damaged"
        )
    return Position(epoch=epoch, taken=taken)  # type: ignore[arg-type]


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
