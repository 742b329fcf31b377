"""What exit codes say: the help of commands, the page of the reference and pages of `man` have it
from here."""

from collections.abc import Iterator

from flowos.cli._commands import CLOSED_PIPE, FAILED, NOT_KEPT, NOT_STARTED, USAGE

ExitCodes = tuple[tuple[int | str, str], ...]

OF_EVERY_COMMAND: ExitCodes = (
    (0, "it did what it was asked"),
    (FAILED, "it failed; one line on standard error says what, where, and how to mend it"),
    (
        USAGE,
        "it was called wrongly: an unknown option, a value that cannot be (by --set too), a name"
        " (of a run, process, slice, pool, image, kernel, device or task) that nothing has or"
        " several begin with",
    ),
    (NOT_KEPT, "it was done, and shown, but could not be written or kept"),
    (
        "129, 130, 143",
        "ended by SIGHUP, SIGINT (Ctrl-C), SIGTERM; what was measured until then is shown and kept",
    ),
    (CLOSED_PIPE, "the reader of its output closed the pipe, as `head` does"),
)

_INSIDE: ExitCodes = (
    (NOT_STARTED, "FlowOS could not start it: for example, there is no such image"),
    (126, "it is not executable"),
    (127, "it was not found"),
    ("128 + N", "it was ended by signal N"),
    ("other", "its own"),
)
OF_COMMANDS: dict[str, tuple[tuple[str, ExitCodes], ...]] = {
    "measure": (
        (
            "",
            (
                (0, "measured, kept and written"),
                (
                    FAILED,
                    "nothing was measured, a command of yours failed, or nodes of a pool were"
                    " refused or lost",
                ),
                (USAGE, "called wrongly"),
                (
                    NOT_KEPT,
                    "measured and shown, but not kept in the store or not written as a report",
                ),
                (
                    130,
                    "interrupted (143 by SIGTERM, 129 by SIGHUP); what was measured until then is"
                    " shown, kept and written",
                ),
            ),
        ),
        (
            "with --check",
            (
                (0, "no number is worse than the baseline"),
                (1, "a number is worse"),
                (
                    2,
                    "cannot judge: a case failed, or of a probe half of the numbers are marked,"
                    " scatter too much or were not reached; and whatever else fails, as a machine"
                    " of another kind",
                ),
                (NOT_KEPT, "as 0, but not kept or not written"),
            ),
        ),
    ),
    "compare": (
        (
            "",
            (
                (
                    0,
                    "equal or better; and levels that are compared without --base, which are no"
                    " question of better or worse",
                ),
                (
                    1,
                    "worse: a probe of the second run is slower, or with --axis and --base a level"
                    " is, or with --command a command is slower than the first; a number is worse"
                    " than the baseline; a machine is slow; the last change over time was for the"
                    " worse",
                ),
                (
                    2,
                    "cannot judge, as too many numbers are marked, scatter, or failed in the second"
                    " run; and whatever else fails",
                ),
                (130, "with --command: interrupted (143 by SIGTERM, 129 by SIGHUP)"),
            ),
        ),
    ),
    "baseline": (
        (
            "",
            (
                (0, "made and written"),
                (FAILED, "it cannot be made or written"),
                (
                    USAGE,
                    "called wrongly: there are fewer than two such runs, or they are not alike",
                ),
            ),
        ),
    ),
    "exec": (("of the command inside", _INSIDE),),
    "shell": (("of the shell inside", _INSIDE),),
    "run": (("of what an image runs", _INSIDE),),
    "serve": (("", ((130, "its end by Ctrl-C"),)),),
    "notebook": (
        (
            "",
            (
                (0, "ended by Ctrl-C or from its page"),
                (FAILED, "it died, or its nodes were gone"),
            ),
        ),
    ),
    "pools": (("with --check", ((0, "each pool can be used"), (FAILED, "a pool cannot be used"))),),
    "cloud resume": (
        ("with --wait", ((0, "each node got a machine"), (FAILED, "a node got no machine"))),
    ),
    "cloud suspend": (("with --wait", ((0, "no machine runs on"), (FAILED, "a machine runs on"))),),
    "cloud reconcile": (("", ((0, "done"), (FAILED, "a machine runs on that no node owns"))),),
}
"""By the words of a command: those that say more there. Before each group stands where it holds."""

TITLE = "exit codes"


def codes_text(command: str) -> str:
    """For the help of a command; "" where no code says more than with every command."""
    lines = [line for where, rows in OF_COMMANDS.get(command, ()) for line in _lines(where, rows)]
    return "\n".join(lines)


def _lines(where: str, rows: ExitCodes) -> Iterator[str]:
    yield f"{TITLE} {where}".rstrip() + ":"
    column = max(len(str(code)) for code, _ in rows)
    for code, means in rows:
        yield f"  {code!s:<{column}}  {means}"


def codes_page() -> Iterator[str]:
    """The page of the reference, in Markdown."""
    yield from ("# Exit codes", "", *_table(OF_EVERY_COMMAND), "")
    yield from ("These commands have codes that say more.", "")
    for command, groups in OF_COMMANDS.items():
        yield from (f"## flowos {command}", "")
        for where, rows in groups:
            if where:
                yield from (f"{where[0].upper()}{where[1:]}:", "")
            yield from (*_table(rows), "")


def _table(rows: ExitCodes) -> Iterator[str]:
    yield from ("| code | says |", "| --- | --- |")
    yield from (f"| {code} | {means} |" for code, means in rows)
