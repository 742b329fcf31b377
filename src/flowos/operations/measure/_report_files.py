"""The files of a report: one for each format."""

from collections.abc import Callable
from pathlib import Path

from flowos.operations._files import write_together
from flowos.report import Report, csv, html, json, markdown, openmetrics

RENDERERS: dict[str, Callable[[Report], str]] = {
    "report.html": html,
    "report.json": json,
    "report.csv": csv,
    "report.md": markdown,
    "report.prom": openmetrics,
}


def written(report: Report, out: Path, notes: list[str]) -> tuple[Path, ...]:
    """Write the report in all formats or none; adds a note if it cannot be written."""
    try:
        return write_together(out, {name: render(report) for name, render in RENDERERS.items()})
    except OSError as error:
        notes.append(
            f"the report cannot be written to {out} ({error.strerror}): give another with --out"
        )
        return ()
