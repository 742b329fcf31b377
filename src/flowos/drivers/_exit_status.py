"""Determines how a finished launch ended, from what was observed of it."""

import errno
from collections.abc import Callable, Mapping
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import (
    CpuTimes,
    End,
    Exited,
    Killed,
    Launch,
    Lost,
    NotStarted,
    RuntimeFailed,
    Usage,
)

StoppedBy = Literal["", "limit", "request"]

SEARCHED_WITHOUT_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where flowos-init looks for a command if the launch has no PATH."""

_TERM, _KILL = 15, 9
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR})
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Observations: status files by rank, ranks that had started, the launcher's own end.

    code: exit code of the outermost process, or minus the signal that ended it.
    stopped_by: why we requested the end, if we did so before it came.
    hung: every rank had ended, but the runtime had not and was killed.
    """

    statuses: Mapping[int, bytes]
    started: frozenset[int]
    code: int
    stopped_by: StoppedBy
    stderr: bytes
    hung: bool = False


@dataclass(frozen=True, kw_only=True)
class _Rank:
    end: End
    stopped: bool
    ended_seconds: float
    usage: Usage


def classify_end(launch: Launch, seen: Seen) -> tuple[End, Usage]:
    """How the launch ended, and the total usage of all ranks.

    With several ranks, the first that failed counts: the other failures mostly follow from it.
    """
    ranks = {rank: _read(text, launch) for rank, text in sorted(seen.statuses.items())}
    usage = _together([r.usage for r in ranks.values()])
    stopped = [r for r in ranks.values() if r.stopped]
    if stopped and seen.stopped_by:
        return Killed(_signal(stopped[0].end), seen.stopped_by), usage
    first = [r for r in ranks.values() if not r.stopped and r.end not in (Exited(0), Killed(_TERM))]
    if stopped and not first:  # else mpirun has stopped it, as another one had failed
        return RuntimeFailed(f"what had started '{launch.argv[0]}' {_how(seen)} before it"), usage
    bad = first or [r for r in ranks.values() if r.end != Exited(0)]
    if bad:
        never = [r for r in bad if isinstance(r.end, NotStarted)]
        return (never or sorted(bad, key=_ended(launch)))[0].end, usage
    missing = [rank for rank in range(launch.ranks) if rank not in ranks]
    if not missing and (seen.code == 0 or seen.hung):
        return Exited(0), usage
    return _without_answer(launch, seen, missing), usage


def _ended(launch: Launch) -> Callable[[_Rank], float]:
    """When a rank ended: clocks of several nodes have nothing in common, but all began at once."""
    several = len(launch.nodes) > 1
    return lambda rank: rank.usage.wall_seconds if several else rank.ended_seconds


def _without_answer(launch: Launch, seen: Seen, missing: list[int]) -> End:
    if missing and seen.stopped_by:
        return Killed(_KILL, seen.stopped_by)
    said = _last_lines(seen.stderr)
    vanished = [rank for rank in missing if rank in seen.started]
    if vanished and launch.ranks > 1 and seen.code < 0:
        return RuntimeFailed(f"what had started '{launch.argv[0]}' {_how(seen)} before it{said}")
    if vanished:
        which = "" if launch.ranks == 1 else f"rank {vanished[0]} of "
        return Lost(f"{which}'{launch.argv[0]}' vanished: flowos-init was killed{said}")
    if not missing:
        return RuntimeFailed(f"every rank ended well, what had started them {_how(seen)}{said}")
    if len(missing) < launch.ranks:
        return RuntimeFailed(f"rank {missing[0]} of {launch.ranks} was never started{said}")
    return RuntimeFailed(f"what should start '{launch.argv[0]}' {_how(seen)}{said}")


def _how(seen: Seen) -> str:
    return f"ended with {seen.code}" if seen.code >= 0 else f"was ended by signal {-seen.code}"


def _signal(end: End) -> int:
    return end.signal if isinstance(end, Killed) else _TERM


def _together(used: list[Usage]) -> Usage:
    known = [u.own_disk_bytes for u in used if u.own_disk_bytes is not None]
    return Usage(
        wall_seconds=max((u.wall_seconds for u in used), default=0.0),
        user_seconds=sum(u.user_seconds for u in used),
        system_seconds=sum(u.system_seconds for u in used),
        max_rss_bytes=max((u.max_rss_bytes for u in used), default=0),
        cpus=used[0].cpus if used else None,
        memory_stalled_seconds=used[0].memory_stalled_seconds if used else None,
        io_stalled_seconds=used[0].io_stalled_seconds if used else None,
        disk_bytes=used[0].disk_bytes if used else None,
        own_disk_bytes=None if not known or len(known) < len(used) else sum(known),
    )


def _read(text: bytes, launch: Launch) -> _Rank:
    """Parse a status file; flowos-init.c documents the format at its top."""
    first, _, rest = text.decode("ascii", errors="replace").partition("\n")
    try:
        values = {n: float(v) for n, v in (line.split(" ") for line in rest.splitlines())}
        end = _end(first.split(" "), launch)
    except ValueError:
        return _Rank(
            end=Lost(f"unreadable status: {text[:100]!r}"),
            stopped=False,
            ended_seconds=0.0,
            usage=Usage(),
        )
    return _Rank(
        end=end,
        stopped=values.get("stopped", 0.0) != 0.0,
        ended_seconds=values.get("ended_seconds", 0.0),
        usage=Usage(
            wall_seconds=values.get("wall_seconds", 0.0),
            user_seconds=values.get("user_seconds", 0.0),
            system_seconds=values.get("system_seconds", 0.0),
            max_rss_bytes=int(values.get("max_rss_bytes", 0.0)),
            cpus=_cpus(values),
            memory_stalled_seconds=values.get("memory_stalled_seconds"),
            io_stalled_seconds=values.get("io_stalled_seconds"),
            disk_bytes=_count(values, "disk_bytes"),
            own_disk_bytes=_count(values, "own_disk_bytes"),
        ),
    )


def _count(values: Mapping[str, float], name: str) -> int | None:
    return int(values[name]) if name in values else None


def _cpus(values: Mapping[str, float]) -> CpuTimes | None:
    if "cpus_busy_seconds" not in values:
        return None
    return CpuTimes(
        busy=values["cpus_busy_seconds"],
        idle=values.get("cpus_idle_seconds", 0.0),
        steal=values.get("cpus_steal_seconds", 0.0),
    )


def read_progress(status: bytes) -> tuple[int, int]:
    """Of a relaying command (see flowos-init's relay.h): what it began last, of how many runs."""
    lines = status.decode("ascii", errors="replace").splitlines()
    said = dict(words for line in lines if len(words := line.split(" ")) == 2)
    try:
        return int(said.get("begun", 0)), int(said.get("runs", 0))
    except ValueError:
        return 0, 0


def _end(words: list[str], launch: Launch) -> End:
    match words:
        case ["exit", code]:
            return Exited(int(code))
        case ["signal", number]:
            return Killed(int(number))
        case ["error", stage, number]:
            return _not_started(stage, int(number), launch)
        case _:
            raise ValueError(words)


def _not_started(stage: str, number: int, launch: Launch) -> End:
    name = errno.errorcode.get(number, str(number))
    match stage:
        case "exec":
            why = _why_not_executed(number, name, launch)
            return NotStarted(why, _NOT_FOUND if number in _NO_FILE else _NOT_EXECUTABLE)
        case "interpreter":
            return _without_interpreter(number, launch.argv[0])
        case "cwd" if number in _NO_FILE:
            return NotStarted(f"no such folder to start in: {launch.cwd}")
        case "cwd":
            return NotStarted(f"cannot start in folder {launch.cwd}: {name}")
        case "enter":
            return RuntimeFailed(
                f"'{launch.argv[0]}': its rank cannot join the container held for it: {name}"
            )
        case "silent":
            return RuntimeFailed(
                f"'{launch.argv[0]}': its guest said nothing for {number} s and was ended"
            )
        case "died":
            return RuntimeFailed(f"'{launch.argv[0]}': its guest died (qemu ended with {number})")
        case _:
            return RuntimeFailed(f"flowos-init cannot start '{launch.argv[0]}': {stage}: {name}")


def _without_interpreter(number: int, command: str) -> NotStarted:
    if number not in _NO_FILE:
        return NotStarted(
            f"'{command}' may be executed, but not the interpreter that its #! line names",
            _NOT_EXECUTABLE,
        )
    return NotStarted(
        f"'{command}' is there, but not the interpreter that its #! line names (a line that ends "
        "as on Windows names none) or, of a binary, its loader",
        _NOT_FOUND,
    )


def _why_not_executed(number: int, name: str, launch: Launch) -> str:
    command = launch.argv[0]
    if number in _NO_FILE and "/" in command:
        return f"no such command '{command}'"
    if number in _NO_FILE:
        variables = dict(launch.env.variables) | dict(launch.variables)
        return (
            f"no such command '{command}' "
            f"(looked in PATH={variables.get('PATH', SEARCHED_WITHOUT_PATH)})"
        )
    reasons = {
        errno.EACCES: "may not be executed; if it is a program, chmod +x mends it",
        errno.EISDIR: "is a folder: name a program in it",
        errno.ENOEXEC: "is no program of this machine: another architecture, or no #! line",
        errno.E2BIG: "cannot start: arguments and variables are longer than the kernel takes",
        errno.ETXTBSY: "cannot start: the file is still open for writing",
    }
    return f"'{command}' {reasons.get(number, f'cannot be executed: {name}')}"


def _last_lines(stderr: bytes, lines: int = 3) -> str:
    words = [w for w in stderr.decode(errors="replace").splitlines() if w.strip(" -")]
    return ": " + " / ".join(words[-lines:]) if words else ""
