"""Over which nodes of a slice the ranks of a task are spread."""

from collections.abc import Sequence

from flowos.model import Needs, counted


def spread(needs: Needs, cores: Sequence[int]) -> tuple[tuple[int, ...], int] | str:
    """Which nodes, and how many ranks at most go on each; or why there are none, in words.

    cores: of each node, those first that are to be preferred. The first one is always among them.
    """
    counts = range(1, len(cores) + 1) if needs.nodes is None else (needs.nodes,)
    for count in counts:
        each = -(-needs.ranks // count)
        able = tuple(i for i, has in enumerate(cores) if each * needs.cores <= has)
        if able[:1] == (0,) and count <= min(len(able), needs.ranks):
            return able[:count], each
    if needs.nodes is not None and needs.nodes > len(cores):
        return f"{counted(needs.nodes, 'node')} for its ranks, the slice has {len(cores)}"
    ranks = f" for each of {needs.ranks} ranks" if needs.ranks > 1 else ""
    has = f"{cores[0]}" if len(cores) == 1 else f"{len(cores)} nodes with {cores[0]}"
    return f"{counted(needs.cores, 'core')}{ranks}, the slice has {has}"
