"""Pages of the reference that follow from the code: commands, exit codes, public names, data."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from _escaped import escaped
from _schemas import report_page, store_page

import flowos
from flowos.cli import parser
from flowos.cli._commands import COMMANDS
from flowos.cli._described import options, subparsers
from flowos.cli._exit_codes import codes_page
from flowos.cli._shared import epilog_text

NAMES = {
    "Flows": (
        "What is computed: typed tasks, wired by calling them.",
        "task command cxx opencl cuda hdl r julia bitstream either flow_input flow_output cond loop"
        " gang Task Flow Needs RunResult File In Out",
    ),
    "Slices": (
        "Where it runs: resources that are held, of this machine or of a pool.",
        "slice as_completed attach publish environment Environment Outcome",
    ),
    "Feed": ("With which data.", "Feed Peers decode serve_metrics"),
    "Measure": ("How well.", "measure"),
    "Solve": ("Sparse symmetric positive definite systems.", "solve Solver"),
    "Kernels": ("Tasks on arrays that are ready.", "kernels"),
    "Types of ports": (
        "Next to these, type hints as ordinary functions have them.",
        "array any_ bool_ bytes_ str_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16"
        " float32 float64 complex64 complex128",
    ),
    "Errors": (
        "All derive from `FlowosError`.",
        "FlowosError WiringError ValueRefused TaskFailed TimeLimitExceeded RoundLimitExceeded"
        " NoRetry WorkerLost SliceRefused SliceFreed Cancelled EnvironmentRefused SettingsError"
        " FeedError SampleError SolveError",
    ),
}

_COLUMNS = 98


def write(folder: Path) -> None:
    """Write all pages into an empty folder."""
    folder.mkdir(parents=True)
    for name in COMMANDS:
        (folder / f"flowos-{name}.md").write_text("\n".join(_command(name)) + "\n")
    pages = {"exit-codes": codes_page, "python": _python}
    pages |= {"report-json": report_page, "store": store_page}
    for page, lines in pages.items():
        (folder / f"{page}.md").write_text("\n".join(lines()) + "\n")


def _command(name: str) -> Iterator[str]:
    yield from _parser(subparsers(parser(only=name))[name], 1)


def _parser(of: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    within = subparsers(of)
    yield from (f"{'#' * depth} {of.prog}", "")
    if of.description:
        yield from (escaped(of.description[:1].upper() + of.description[1:]) + ".", "")
    usage = of.format_usage().removeprefix("usage: ").rstrip()
    yield from ("```text", usage, "```", "")
    if not within:
        for given, said in options(of):
            yield from (f"`{given}`", f": {escaped(said)}", "")
    if of.epilog:
        yield from ("```text", epilog_text(of.epilog, _COLUMNS), "```", "")
    for each in within.values():
        yield from _parser(each, depth + 1)


def _python() -> Iterator[str]:
    grouped = [name for _, names in NAMES.values() for name in names.split()]
    left_over = {*flowos.__all__} ^ {*grouped}
    if left_over:
        raise SystemExit(f"docs/_generated.py: NAMES has not, or has too much: {sorted(left_over)}")
    yield from (
        "# Python",
        "",
        "`import flowos as fo`; importing it loads none of its packages. Examples have"
        " `import numpy as np` too; a test runs each.",
        "",
    )
    for title, (what, names) in NAMES.items():
        yield from (f"## {title}", "", what, "")
        for name in names.split():
            yield from ("```{eval-rst}", *_directive(name), "```", "")


def _directive(name: str) -> Iterator[str]:
    value = getattr(flowos, name)
    if isinstance(value, type):
        yield f".. autoclass:: flowos.{name}"
        yield "   :members:"
    elif callable(value):
        yield f".. autofunction:: flowos.{name}"
    elif hasattr(value, "__path__") or type(value).__name__ == "module":
        yield f".. automodule:: {value.__name__}"
        yield "   :members:"
    else:
        yield f".. autodata:: flowos.{name}"
