"""Which compiler an MPI's wrapper calls, and which pair of MPI and compiler is the best."""

from collections.abc import Iterator, Sequence

from flowos.model import Argv, Compiler, Facts, Measurement, Mpi

VARIABLE = {
    "openmpi": "OMPI_CC",
    "mpich": "MPICH_CC",
    "mvapich": "MPICH_CC",
    "intel": "I_MPI_CC",
}
"""The variable that names the compiler which mpicc calls."""

_KEYS = (("latency", "8"), ("bandwidth", "1048576"))


def compilers_for(mpi: Mpi, facts: Facts) -> tuple[Compiler, ...]:
    """All of C, if its wrapper has a variable for that, and there are several."""
    found = tuple(c for c in facts.compilers if c.language == "c")
    return found if mpi.family in VARIABLE and len(found) > 1 else ()


def wrapper_words(family: str, wrapper: str, compiler: str) -> tuple[str, Argv]:
    """The command that compiles, and its first words: of the wrapper with this compiler."""
    if not compiler:
        return wrapper, ()
    return "env", (f"{VARIABLE[family]}={compiler}", wrapper)


def best_pairs(measured: Sequence[Measurement]) -> Iterator[str]:
    """For each key number the best MPI and compiler, and how much the others lose; of those that
    can be trusted.
    """
    for metric, size in _KEYS:
        found = {
            _pair(m): m.value
            for m in measured
            if m.metric == metric and m.case.level("bytes") == size and m.value > 0
            if not m.trust.marks
        }
        if len(found) > 1:
            yield _best(metric, size, found)


def _pair(m: Measurement) -> str:
    compiler = m.case.level("compiler")
    return f"{m.case.level('mpi')} and {compiler}" if compiler else m.case.level("mpi")


def _best(metric: str, size: str, found: dict[str, float]) -> str:
    is_time = metric == "latency"
    first, *others = sorted(found, key=found.__getitem__, reverse=not is_time)
    value = f"{found[first] * 1e6:.3g} us" if is_time else f"{found[first] / 1e9:.3g} GB/s"
    ratios = ((o, found[o] / found[first]) for o in others)
    said = ", ".join(f"{o} {r:.2f}" for o, r in ratios)
    return f"best {metric} of {size} bytes: {value} by {first}; the others' is of that: {said}"
