"""perftest of linux-rdma, where it is installed: its command lines, and the tables it prints.

Source: man/perftest.1 and src/perftest_parameters.{c,h} of linux-rdma/perftest, 4.1 to 6.29; Debian
12 has 4.5. A line that begins with `#bytes` names a table's columns, and a line of dashes ends it.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from flowos.model import Argv, Exited, Outcome, Reading, Unmeasured
from flowos.probes._base import read_answer

SCRIPT = "perftest_pair.py"
METRICS = {"ib_write_bw": "bandwidth", "ib_read_bw": "bandwidth", "ib_write_lat": "latency"}
SWEPT_BYTES = (1 << 24) - 2
"""One message of each size that `-a` sends: 2, 4, 8 .. 8 MiB."""

_COLUMN = re.compile(r"#\w+|[\w.%]+(?: \w+)?\[[^\]]*\]")
_LATENCY = "t_typical[usec]"
"""The median, of half a round trip."""
_BANDWIDTH = re.compile(r"BW average\[(.*)\]")
_UNITS = {"MB/sec": 1 << 20, "MiB/sec": 1 << 20, "Gb/sec": 125e6}
"""perftest divides by 2^20 whichever it writes: 24.07 renamed MB."""
_RATE = "MsgRate[Mpps]"
_BW_STEP, _RATE_STEP = 0.01, 1e-6
"""Of the last digit that is printed."""

Row = Mapping[str, float]


def perftest_words(program: str, device: str, port: str, iterations: int) -> Argv:
    """All sizes, without a warning for a clock that is not the highest."""
    return (program, "-d", device, "-i", port, "-a", "-n", str(iterations), "-F")


def read_perftest(outcome: Outcome, program: str) -> tuple[Reading, ...] | Unmeasured:
    """The bandwidth or latency of each size, from what perftest's client printed."""
    if outcome.end != Exited(0):
        return read_answer(outcome, "perftest_pair")
    metric = METRICS[program]
    try:
        rows = tuple(_rows(outcome.stdout.decode(errors="replace").splitlines()))
        of = tuple((int(row["#bytes"]), _value(row, metric)) for row in rows)
    except ValueError as error:
        return Unmeasured(reason=f"{program}: {error}")
    return tuple(
        Reading(
            metric=metric,
            unit="second" if metric == "latency" else "byte/s",
            values=(value,),
            levels=(("bytes", str(size)),),
        )
        for size, value in of
    )


def _rows(lines: Sequence[str]) -> Iterator[Row]:
    """Each row by its columns, between warnings. Raises ValueError if one is not sound."""
    at = next((n for n, line in enumerate(lines) if line.split()[:1] == ["#bytes"]), len(lines))
    columns = _COLUMN.findall(lines[at]) if at < len(lines) else []
    table = lines[at + 1 :]
    end = next((n for n, line in enumerate(table) if line.startswith("-----")), None)
    rows = [words for line in table[:end] if (words := line.split()) and words[0][0].isdigit()]
    if end is None or not rows:
        raise ValueError(f"its output is no whole table: {' '.join(lines)[-80:].strip()!r}")
    for words in rows:
        if len(words) != len(columns):
            raise ValueError(f"a row that its columns do not explain: {' '.join(words)!r}")
        yield {name: _number(word, words) for name, word in zip(columns, words, strict=True)}


def _number(word: str, words: Sequence[str]) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{word!r} is no number in {' '.join(words)!r}")
    return value


def _value(row: Row, metric: str) -> float:
    """Seconds or byte/s. Raises ValueError if it is not above 0, or its column is not there."""
    value = _seconds(row) if metric == "latency" else _bytes_per_second(row)
    if value is None:
        raise ValueError(f"its table has no column for the {metric}: {', '.join(row)}")
    if value <= 0:
        raise ValueError(f"a {metric} of {value:g} with messages of {row['#bytes']:.0f} bytes")
    return value


def _seconds(row: Row) -> float | None:
    return row[_LATENCY] * 1e-6 if _LATENCY in row else None


def _bytes_per_second(row: Row) -> float | None:
    """From the message rate where that has more digits: a slow device's 0.06 MiB/s has one.

    Raises ValueError if the two disagree, as they would in another unit.
    """
    found = (match for name in row if (match := _BANDWIDTH.fullmatch(name)))
    unit, average = next(((_UNITS.get(m[1]), row[m[0]]) for m in found), (None, 0.0))
    if unit is None:
        return None
    printed, size = average * unit, row["#bytes"]
    if _RATE not in row:
        return printed
    by_rate = size * row[_RATE] * 1e6
    if abs(by_rate - printed) > _BW_STEP * unit + size * _RATE_STEP * 1e6 + 0.01 * printed:
        both = f"{printed:.4g} byte/s and {row[_RATE]:g}e6 messages/s"
        raise ValueError(f"{both} of {size:.0f} bytes disagree")
    return by_rate if row[_RATE] / _RATE_STEP > average / _BW_STEP else printed
