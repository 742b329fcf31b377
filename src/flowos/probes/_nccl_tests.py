"""NVIDIA's nccl-tests, where they are installed: their command lines, and the tables they print.

Source: README.md and doc/PERFORMANCE.md of NVIDIA/nccl-tests, 2.0 to 2.20. A table's columns are
named in a comment above it: `size count type redop root`, without the last two where an old version
has none, then time, algbw, busbw and #wrong (once called error) out of place, and again in place.
"""

from flowos.model import Argv, Exited, Outcome, Reading, Unmeasured

PROGRAMS = {
    "allreduce": "all_reduce_perf",
    "allgather": "all_gather_perf",
    "reducescatter": "reduce_scatter_perf",
}
SWEEPS = {"quick": ("16M", "8"), "normal": ("128M", "2"), "full": ("1G", "2")}
"""The largest size, and by what each one is more than the one before; from 8 bytes on."""

_TOTALS = "# Out of bounds values"
_ROUNDED = 0.006
"""GB/s that a printed bandwidth differs from the exact one, which is of a rounded time too."""


def nccl_tests_words(program: str, effort: str, ranks: int) -> Argv:
    most, factor = SWEEPS[effort]
    return (program, "-b", "8", "-e", most, "-f", factor, "-g", str(ranks), "-c", "1")


def read_nccl_tests(
    outcome: Outcome, collective: str, ranks: int
) -> tuple[Reading, ...] | Unmeasured:
    """Time and bandwidths of each size, out of place; the bandwidths from the time, as theirs have
    two decimals only.
    """
    text = outcome.stdout.decode(errors="replace")
    lines = text.splitlines()
    columns = next((line.split()[1:] for line in lines if line.split()[:2] == ["#", "size"]), [])
    try:
        times = dict(_times(lines, columns))
    except ValueError as error:
        return Unmeasured(reason=f"nccl-tests: {error}")
    if outcome.end != Exited(0):
        said = (*lines, *outcome.stderr.decode(errors="replace").splitlines())
        failure = next((line.strip() for line in said if " failure " in line), "")
        return Unmeasured(reason=f"nccl-tests: {failure or outcome.end}")
    if not times or not any(line.startswith(_TOTALS) and "OK" in line for line in lines):
        return Unmeasured(reason=f"nccl-tests: its output is no whole table: {text[-80:]!r}")
    share = (ranks - 1) / ranks * (2 if collective == "allreduce" else 1)
    return tuple(
        Reading(
            metric=metric,
            unit=unit,
            values=(value,),
            levels=(("collective", collective), ("bytes", str(size))),
        )
        for size, seconds in times.items()
        for metric, unit, value in (
            ("time", "second", seconds),
            ("algorithm_bandwidth", "byte/s", size / seconds),
            ("bus_bandwidth", "byte/s", share * size / seconds),
        )
    )


def _times(lines: list[str], columns: list[str]) -> list[tuple[int, float]]:
    """Bytes and seconds of each row but those of 0 bytes. Raises ValueError if one is not sound."""
    found = []
    for line in lines:
        words = line.split()
        if not words or words[0].startswith("#") or not words[0].isdecimal():
            continue
        if len(words) != len(columns) or "time" not in columns:
            raise ValueError(f"a row that its columns do not explain: {line.strip()!r}")
        at = columns.index("time")
        size, time = int(words[0]), _number(words[at], line)
        wrong = [words[i] for i, name in enumerate(columns) if name == "#wrong"]
        if any(word != "0" for word in wrong):
            raise ValueError(f"wrong values came, of {size} bytes: {line.strip()!r}")
        if size:
            bandwidth = _number(words[at + 1], line)
            if time <= 0 or abs(size / time / 1e3 - bandwidth) > _ROUNDED + 0.02 * bandwidth:
                raise ValueError(f"a row whose time and bandwidth disagree: {line.strip()!r}")
            found.append((size, time * 1e-6))
    return found


def _number(word: str, line: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{word!r} is no number in {line.strip()!r}") from None
