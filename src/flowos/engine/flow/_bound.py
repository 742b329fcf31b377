"""Tasks that ask for cores get CPUs of their own, and variables that say to libraries how many."""

from flowos.model import Needs, Pairs

_NAMES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def is_bound(needs: Needs) -> bool:
    """Whoever is alone has the node, and sets what it measures."""
    return needs.binds and not needs.alone


def with_threads(variables: Pairs, threads: int) -> Pairs:
    """What a person set stays; OMP_NUM_THREADS of theirs holds for the others too."""
    given = dict(variables)
    if _NAMES[0] in given:
        return variables
    return (*variables, *((name, str(threads)) for name in _NAMES if name not in given))
