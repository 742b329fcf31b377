"""Runs side by side for a terminal."""

import math
from collections.abc import Iterator

from flowos.model import counted
from flowos.plan import UNPAIRED
from flowos.report._side_by_side import HeadlineCell, HeadlineRow, SideBySide, headline_rows
from flowos.report._units import digits
from flowos.report._words import UNKNOWN, early_of, rule_of, share_text, value_of
from flowos.report._wrap import safe, wrapped

NOTHING_IN_COMMON = "No headline is in two of them."


def side_by_side_text(shown: SideBySide) -> str:
    """The runs, what differs between them, and each headline in all of them."""
    rows = headline_rows(shown)
    parts = (_runs(shown), _differences(shown), _rows(rows), wrapped(rule_of_all(shown)))
    return "\n".join(safe(line) for part in parts for line in part).rstrip() + "\n"


def rule_of_all(shown: SideBySide) -> str:
    rules = dict.fromkeys(rule_of(run.report.run) for run in shown.runs)
    return max(rules, key=len)


def counts_of(shown: SideBySide) -> str:
    """Such as 3 runs of 2 machines."""
    runs, machines = len(shown.runs), len(shown.machines)
    return f"{counted(runs, 'run')} of {counted(machines, 'machine')}"


def judged_of(shown: SideBySide) -> Iterator[str]:
    """How far their differences can be judged, one sentence each."""
    others = shown.runs[1:]
    apart: dict[tuple[str, ...], list[str]] = {}
    for run in others:
        apart.setdefault(run.unlike, []).append(run.label.partition(":")[0])
    if apart.pop((), None):
        yield f"{UNPAIRED[0].upper()}{UNPAIRED[1:]}."
    for unlike, places in apart.items():
        yield (
            f"Not judged against the first: {', '.join(places)}, as they differ in"
            f" {', '.join(unlike)}; a ratio says how they compare, and not whether one is slow."
        )


def ratio_words(cell: HeadlineCell) -> str:
    """Such as 0.968 of the first, slower; "" for the first itself."""
    if not math.isfinite(cell.ratio):
        return ""
    ratio = f"{cell.ratio:.3f}" if cell.ratio < 10 else digits(cell.ratio)
    return ", ".join(word for word in (f"{ratio} of the first", cell.answer) if word)


def _runs(shown: SideBySide) -> Iterator[str]:
    yield f"{counts_of(shown)} side by side"
    for run in shown.runs:
        of = run.report.run
        source = f", from {run.source}" if run.source else ""
        early = "; it ended early" if early_of(of) else ""
        words = f"run {of.id} of {of.facts.cpu_model}, {of.request.effort}{source}{early}"
        yield from wrapped(f"{run.label}: {words}", "  ", "     ")
    yield ""


def _differences(shown: SideBySide) -> Iterator[str]:
    if shown.differences:
        yield "They differ in"
        for name, values in shown.differences:
            yield from wrapped(f"{name}: {' | '.join(v or 'none' for v in values)}", "  ", "    ")
    for sentence in judged_of(shown):
        yield from wrapped(sentence)
    yield ""


def _rows(rows: tuple[HeadlineRow, ...]) -> Iterator[str]:
    if all(len(row.measured) < 2 for row in rows):
        yield NOTHING_IN_COMMON
        yield ""
    for row in rows:
        yield from wrapped(row.label)
        width = max(len(cell.run.label) for cell in row.cells)
        for cell in row.cells:
            head = f"  {cell.run.label.ljust(width)}  "
            yield from wrapped(_words(cell), head, "      ")
        yield ""


def _words(cell: HeadlineCell) -> str:
    if cell.measured is None:
        return f"-  ({cell.why})"
    m = cell.measured
    share = share_text(m, "measured")
    words = (
        value_of(m),
        "" if share == UNKNOWN else share,
        ratio_words(cell),
        "" if m.trust.good else f"NOT TRUSTED: {m.trust.marks[0]}",
    )
    why = f" ({cell.why})" if cell.answer == "inconclusive" and m.trust.good else ""
    return "; ".join(word for word in words if word) + why
