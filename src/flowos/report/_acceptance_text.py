"""Baselines, and runs that are checked against one, for a terminal."""

from collections.abc import Iterator, Sequence
from statistics import median

from flowos.model import Baseline, BaselineNumber, Case, UnjudgedNumber, counted
from flowos.plan import MIN_RUNS, BaselineCheck, CheckAnswer, NumberCheck, tolerance_with
from flowos.report._units import number, share
from flowos.report._words import case_text
from flowos.report._wrap import safe, wrapped

_ANSWERS: tuple[CheckAnswer, ...] = ("pass", "better", "not measured", "cannot judge", "worse")
"""What matters most is last, where it is seen in a terminal."""

_MORE_RUNS = 10


def baseline_text(baseline: Baseline) -> str:
    """Its tolerances by probe, and what more runs would make of them."""
    return "\n".join(map(safe, _baseline(baseline))) + "\n"


def check_text(check: BaselineCheck, baseline: Baseline, of: str) -> str:
    """Each number against its baseline, then the answer. of: name of the baseline."""
    return "\n".join(map(safe, _check(check, baseline, of))) + "\n"


def what_text(case: Case, metric: str) -> str:
    """The case and the metric, in words."""
    return f"{case_text(case)}: {metric.replace('_', ' ')}"


def lines_of_unjudged(numbers: Sequence[UnjudgedNumber]) -> Iterator[str]:
    """Which numbers are left out, of which none has a ratio."""
    if numbers:
        are = "number is" if len(numbers) == 1 else "numbers are"
        named = "; ".join(what_text(n.case, n.metric) for n in numbers)
        yield from wrapped(
            f"{len(numbers)} {are} not above 0 in a run, and not judged: {named}", "  ", "    "
        )


def limits_text(of: BaselineNumber) -> str:
    """From which to which number it passes."""
    low, high = (number(value, of.unit, of.metric) for value in of.limits)
    return f"{low} to {high}"


def rows_text(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table whose last column is wrapped."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)][:-1]
    for *cells, last in (names, *rows):
        head = "  ".join(["", *map(str.ljust, cells, widths), ""])
        yield from wrapped(last, head, " " * len(head)) or [head.rstrip()]


def _baseline(baseline: Baseline) -> Iterator[str]:
    runs, machines = len(baseline.runs), len(baseline.machines)
    of = f"{counted(runs, 'run')} of {counted(machines, 'machine')}"
    yield f"baseline of {baseline.kind}: {of}, {counted(len(baseline.numbers), 'number')}"
    yield from wrapped(
        f"Of checks of a machine like {'this' if machines == 1 else 'these'}"
        f" {share(baseline.error)} at most say that any of its numbers is worse.",
        "  ",
        "  ",
    )
    if machines == 1:
        yield from wrapped(
            "How far machines of this kind differ is not known from one: take runs of several"
            " to check others with it.",
            "  ",
            "  ",
        )
    yield ""
    more = max(_MORE_RUNS, 2 * machines if machines > 1 else 2 * runs)
    unit = "machines" if machines > 1 else "runs"
    names = ("numbers", "tolerance (lowest to highest)", f"{more} {unit} would give", "probe")
    yield from rows_text(names, [_probe(baseline, probe, more) for probe in _probes(baseline)])
    yield from _too_wide(baseline)
    yield from lines_of_unjudged(baseline.unjudged)


def _probes(baseline: Baseline) -> Sequence[str]:
    return list(dict.fromkeys(n.probe for n in baseline.numbers))


def _probe(baseline: Baseline, probe: str, more: int) -> tuple[str, ...]:
    ours = [n for n in baseline.numbers if n.probe == probe]
    widths = [n.tolerance for n in ours]
    error = baseline.error / len(baseline.numbers)
    would = median(tolerance_with(n, more, error) for n in ours)
    span = f"{_wide(median(widths))} ({_wide(min(widths))} to {_wide(max(widths))})"
    return str(len(ours)), span, _wide(would), probe


def _wide(tolerance: float) -> str:
    """A share; above 1000 % it means nothing."""
    return share(tolerance) if tolerance < 10 else "over 1000%"


def _too_wide(baseline: Baseline) -> Iterator[str]:
    limit = baseline.max_tolerance
    wide = [n for n in baseline.numbers if n.tolerance > limit]
    if not wide:
        return
    yield ""
    yield from wrapped(
        f"{len(wide)} of {counted(len(baseline.numbers), 'number')} have a tolerance above"
        f" {share(limit)}: within it a check cannot judge them."
        " More runs make it narrower, and so do fewer numbers (--only).",
        "  ",
        "  ",
    )
    if len(baseline.runs) == MIN_RUNS:
        yield "  The spread between two runs says little: give five or more."


def _check(check: BaselineCheck, baseline: Baseline, of: str) -> Iterator[str]:
    runs = f"{counted(len(baseline.runs), 'run')} of {counted(len(baseline.machines), 'machine')}"
    yield f"run {check.run} against {of} ({runs}, made {baseline.made[:10]})"
    yield ""
    rows = sorted(check.numbers, key=lambda row: _ANSWERS.index(row.answer))
    named = _varied(baseline)
    table = [_row(row, named[row.number.probe]) for row in rows]
    yield from rows_text(("value", "baseline", "tolerance", "verdict", "what"), table)
    yield ""
    counts = [(sum(row.answer == answer for row in rows), answer) for answer in _ANSWERS]
    said = ", ".join(f"{count} {answer}" for count, answer in counts if count)
    yield from wrapped(f"{check.answer}: of {counted(len(rows), 'number')} {said}")
    for why in check.why:
        yield from wrapped(why, "  ", "    ")
    yield from lines_of_unjudged(baseline.unjudged)


def _varied(baseline: Baseline) -> dict[str, set[str]]:
    """Axes on which the numbers of each probe differ: the others name nothing."""
    found: dict[str, set[str]] = {}
    for probe in _probes(baseline):
        levels = [set(n.levels) for n in baseline.numbers if n.probe == probe]
        common = levels[0].intersection(*levels)
        found[probe] = {axis for axis, _ in levels[0].union(*levels) - common}
    return found


def _row(row: NumberCheck, named: set[str]) -> tuple[str, ...]:
    of = row.number
    value = "-" if row.value is None else number(row.value, of.unit, of.metric)
    base = number(of.median, of.unit, of.metric)
    levels = tuple(pair for pair in of.levels if pair[0] in named)
    what = what_text(Case(of.probe, levels), of.metric)
    return value, base, _wide(of.tolerance), row.answer, f"{what} ({row.why})" if row.why else what
