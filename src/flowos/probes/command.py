"""A command of the user: how long it takes, and how much processor time and memory.

It is started without a shell, as hyperfine -N does. A turn of a round is one run of it, or so many
as take a fraction of a second, so that five rounds there and back are ten runs or three seconds,
whichever is more, as hyperfine has them. Several commands are compared with the first.
"""

import errno
import json
import math
import shlex
from collections.abc import Iterator, Sequence
from statistics import median

from flowos.model import (
    Argv,
    Case,
    Chart,
    Exited,
    Facts,
    Killed,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._base import (
    CANNOT_MEASURE_HERE,
    ENV,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    best_compiler,
    read_answer,
)
from flowos.probes._cores import NO_COMPILER, build_for, remembered
from flowos.probes._env_charts import env_bars

AXIS, WALL, START = "command", "wall", "process_start"
TURN_SECONDS = {"quick": "0.1", "normal": "0.3", "full": "1"}
"""A turn is one run, and more until they take so long."""

MAX_LABEL = 40
_NUMBERS = (
    Headline("Time of a run", WALL),
    Headline("of it user time", "user"),
    Headline("of it system time", "system"),
    Headline("Memory, at most", "max_rss"),
    Headline("Instructions", "instructions"),
    Headline("Cycles", "cycles"),
)
_NO_COUNTERS = "instructions and cycles were not counted: "
_NOT_PERMITTED = "the kernel does not permit it (perf_event_paranoid above 2, or a container)"
_NO_HARDWARE = "this machine shows no such counters, as is usual of virtual ones"


class TimedCommand(Probe):
    """Metrics wall, user, system (second) and max_rss (byte) of each run, by command.

    max_rss is that of the largest process. process_start (second): of `true`, between runs of a
    command that takes less than 5 ms. Where the kernel allows it, instructions and cycles outside
    the kernel.
    """

    info = ProbeInfo(
        name="command",
        title="Your command",
        charts=(
            Chart(
                title="Time of a run",
                kind="bars",
                x=AXIS,
                metrics=(WALL,),
                y_label="second",
                ceilings=False,
                about="From its start to its end, by the clock. The thin line is the middle half.",
            ),
            Chart(
                title="Processor time of a run",
                kind="bars",
                x=AXIS,
                metrics=("user", "system"),
                y_label="second",
                ceilings=False,
                about="Of all its processes that it waited for.",
            ),
            Chart(
                title="Memory of a run",
                kind="bars",
                x=AXIS,
                metrics=("max_rss",),
                y_label="byte",
                ceilings=False,
                about="The most that its largest process had at once.",
            ),
        ),
        rounds=5,
        deciding=(WALL,),
        env_charts=(env_bars("Time of a run", AXIS, WALL, (), "second"),),
        asked=True,
        versus=AXIS,
        warms_up=True,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        if not request.commands:
            return Unmeasured(
                reason="no command was named", remedy="flowos measure -- COMMAND [ARG...]"
            )
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        return tuple(
            Case(
                self.name,
                levels=((AXIS, label),),
                details=(
                    ("argv", shlex.join(argv)),
                    *remembered(compiler),
                    ("seconds", TURN_SECONDS[request.effort]),
                    ("ignore_failure", "yes" * request.ignore_failure),
                ),
            )
            for label, argv in zip(labels(request.commands), request.commands, strict=True)
        )

    def seconds(self, case: Case) -> float:
        """Before anything is known of the command."""
        return float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        ignored = ("--ignore-failure",) if case.detail("ignore_failure") else ()
        argv = ("--seconds", case.detail("seconds"), *ignored, "--")
        return Program(
            argv=(*argv, *shlex.split(case.detail("argv"))),
            build=build_for(case, "command.c", ("-O2",)),
            limit_seconds=math.inf,
            as_caller=True,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        label = f"`{case.level(AXIS)}`"
        if outcome.end == Exited(CANNOT_MEASURE_HERE):
            return Unmeasured(reason=f"{label} {_failure(outcome)}")
        if isinstance(outcome.end, Killed) and outcome.end.by == "limit":
            return Unmeasured(
                reason=f"{label} did not end in the time that measuring may take",
                remedy="give more time, as in --minutes 30",
            )
        return read_answer(outcome)

    def headlines(self, measured: Sequence[Measurement]) -> tuple[Headline, ...]:
        found = list(dict.fromkeys(m.case.level(AXIS) for m in measured))
        if len(found) == 1:
            return _NUMBERS
        return tuple(Headline(label, WALL, ((AXIS, label),)) for label in found)

    def differences(self, base: str, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """The time in each environment, which a ratio does not say."""
        walls = [m for m in measured if m.metric == WALL]
        each = ", ".join(f"{_time(m.median)} in {m.case.level(ENV)}" for m in walls)
        return (f"a run takes {each}; the start of an environment is not in it",) if each else ()

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        if not measured:
            return ()
        turn = f"{measured[0].case.detail('seconds')} s"
        warm = f"a first run of each command ({turn} of runs if it is shorter) is not counted"
        return (*_prices(measured), *_uncounted(measured), warm)


def labels(commands: Sequence[Argv]) -> tuple[str, ...]:
    """A unique and short name for each command line."""
    found: list[str] = []
    for argv in commands:
        words = " ".join(" ".join(map(_quoted, argv)).split())
        words = "".join(c if c.isprintable() else "?" for c in words)
        label = words if len(words) <= MAX_LABEL else f"{words[: MAX_LABEL - 3]}..."
        numbered = (f"{label} #{number}" for number in range(2, len(commands) + 2))
        found.append(next(each for each in (label, *numbered) if each not in found))
    return tuple(found)


def _quoted(word: str) -> str:
    """As a person writes it, where no shell would read more into it."""
    plain = "'" in word and not set(word) & set('"$`\\!')
    return f'"{word}"' if plain else shlex.quote(word)


def _failure(outcome: Outcome) -> str:
    """How it failed, and the last line of what it said."""
    try:
        ((how, number),) = json.loads(outcome.stdout).items()
    except (ValueError, AttributeError):
        how, number = "exit", CANNOT_MEASURE_HERE
    lines = outcome.stderr.decode(errors="replace").strip().splitlines()
    said = f": {lines[-1].strip()}" if lines else ", and said nothing"
    match how:
        case "errno":
            return f"cannot be started: {_why_not(number)}"
        case "signal":
            return f"was ended by signal {number}{said}"
    return f"failed with exit code {number}{said}"


def _why_not(number: int) -> str:
    known = {
        errno.ENOENT: "there is no such command, or not the interpreter that its #! line names",
        errno.EACCES: "it may not be executed, or is a folder",
        errno.ENOEXEC: "it is no program of this machine, or a script without a #! line",
        errno.E2BIG: "arguments and variables are longer than the kernel takes",
    }
    return known.get(number, errno.errorcode.get(number, str(number)))


def _prices(measured: Sequence[Measurement]) -> Iterator[str]:
    """What the start of a process takes, of commands so short that it matters."""
    walls = {m.case: m.median for m in measured if m.metric == WALL}
    starts = {m.case: m.median for m in measured if m.metric == START}
    if starts:
        price = _time(median(starts.values()))
        short = ", ".join(f"{_time(walls[c])} of `{c.level(AXIS)}`" for c in starts if c in walls)
        yield (
            f"to start and end a process takes {price} here (`true`, in the same way); it is in"
            f" the {short} and not subtracted"
        )


def _uncounted(measured: Sequence[Measurement]) -> Iterator[str]:
    for number in dict.fromkeys(m.case.detail("counters") for m in measured):
        if number:
            denied = int(number) in (errno.EACCES, errno.EPERM)
            yield _NO_COUNTERS + (_NOT_PERMITTED if denied else _NO_HARDWARE)


def _time(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
