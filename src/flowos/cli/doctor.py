"""`flowos doctor`: what can be measured and used here, and what mends the rest."""

import argparse
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flowos.cli._output import print_json, text_width
from flowos.cli._shared import add_json, top_command
from flowos.model import MeasurementRequest, UsageError

if TYPE_CHECKING:
    from flowos.operations.doctor import Diagnosis
    from flowos.probes.doctor import Check

_WIDTH = 80
_NAME_WIDTH = 21
_TITLES = {"measure": "Measure", "use": "Use", "enter": "Enter images"}


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "doctor", "flowos doctor --scratch /scratch/$USER")
    command.add_argument(
        "--scratch",
        type=Path,
        default=Path("/var/tmp"),
        metavar="DIR",
        help="folder on the storage to be measured (default /var/tmp)",
    )
    command.add_argument(
        "--pool", default="", metavar="NAME", help="check a node of this pool of flowos.toml"
    )
    add_json(command)


def run(args: argparse.Namespace) -> int:
    """0 if measuring is possible, else 1."""
    from flowos.operations.doctor import doctor

    scratch = Path(args.scratch).absolute()
    if not args.pool and not scratch.is_dir():
        raise UsageError(f"--scratch {args.scratch}: no such folder; make it, or name another")
    diagnosis = doctor(MeasurementRequest(scratch=scratch), args.pool)
    if args.json:
        print_json(diagnosis)
    else:
        print("\n".join(lines_of(diagnosis, sys.stdout.encoding, text_width(_WIDTH))))
    return 0 if diagnosis.can_measure else 1


def lines_of(diagnosis: "Diagnosis", encoding: str | None, width: int = _WIDTH) -> Iterator[str]:
    """The answer as lines of at most this many columns, words such as paths left whole."""
    works, fails, arrow = signs(encoding)
    facts = diagnosis.facts
    machine = f"{facts.cpu_model}, {facts.system}, Linux {facts.kernel}"
    yield from _wrapped(machine, f"{facts.host}: ", "  ", width)
    for group, title in _TITLES.items():
        yield ""
        yield title
        for check in diagnosis.checks:
            if check.group == group:
                yield from _lines(check, works if check.works else fails, arrow, width)
    yield ""
    yield "flowos measure can run." if diagnosis.can_measure else "flowos measure cannot run yet."


def signs(encoding: str | None) -> tuple[str, str, str]:
    """Tick, cross and arrow, in plain letters where the terminal takes no others."""
    try:
        "✓✗→".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "ok", "no", "->"
    return "✓", "✗", "→"


def _lines(check: "Check", sign: str, arrow: str, width: int) -> Iterator[str]:
    head = f"  {sign} {check.name:<{_NAME_WIDTH}} "
    indent = " " * (len(sign) + 4 + _NAME_WIDTH)
    if width < _WIDTH:
        indent = "      "
    if len(check.name) > _NAME_WIDTH or width < _WIDTH:
        yield f"  {sign} {check.name}"
        head = indent
    yield from _wrapped(check.says, head, indent, width)
    if check.remedy:
        yield from _wrapped(check.remedy, f"      {arrow} ", "        ", width)


def _wrapped(text: str, head: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]
