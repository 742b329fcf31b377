"""`--check BASELINE` and `compare BASELINE RUN`: a run judged against a baseline, and shown."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from flowos.cli._output import note, print_folded, print_json
from flowos.model import StoreError, UsageError

if TYPE_CHECKING:
    from flowos.model import Baseline, Run
    from flowos.plan import BaselineCheck, RunsOutcome

EXITS: "dict[RunsOutcome, int]" = {"equal or better": 0, "worse": 1, "cannot judge": 2}


def baseline_to_check(args: argparse.Namespace) -> "Baseline":
    """The baseline that `flowos measure --check` names. Raises UsageError for it, or options that
    it decides."""
    from flowos.operations.baseline import check_place, read_baseline

    given = (
        ("--only", args.only),
        ("--quick", args.quick),
        ("--full", args.full),
        ("--matrix", args.matrix),
        ("--env", args.env),
        ("--binary", args.binary != "same"),
    )
    for option, value in given:
        if value:
            raise UsageError(f"{option}: not with --check, as the baseline says what is measured")
    if args.junit is not None:
        check_place(args.junit)
    found = read_baseline(args.check)
    own = found.scratch
    if own is not None and args.scratch is not None and Path(args.scratch).absolute() != own:
        raise UsageError(f"--scratch {args.scratch}: the baseline is of {str(own)!r:.80}")
    if args.pool is None and found.nodes > 1:
        raise UsageError(f"the baseline is between {found.nodes} nodes: give --pool NAME")
    return found


def show_check(check: "BaselineCheck", baseline: "Baseline", file: Path, *, as_json: bool) -> int:
    """Print the verdicts; the exit code that they are."""
    from flowos.report import check_text

    code = EXITS[check.answer]
    if as_json:
        print_json(
            {
                "answer": check.answer,
                "exit_code": code,
                "run": check.run,
                "cannot_judge": check.why,
                "verdicts": check.numbers,
            }
        )
    else:
        print_folded(check_text(check, baseline, str(file)), end="")
    return code


def wrote_junit(path: Path | None, check: "BaselineCheck", run: "Run", baseline: Path) -> bool:
    """Write it, if one is asked for; whether that is done, and else a line that says why not."""
    from flowos.operations.baseline import write_junit

    if path is None:
        return True
    try:
        write_junit(path, check, run, str(baseline))
    except StoreError as error:
        print(error, file=sys.stderr)
        return False
    note(f"written: {path}")
    return True
