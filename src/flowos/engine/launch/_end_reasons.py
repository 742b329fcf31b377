"""How a launch ended, in words that say more than codes do where an image is concerned."""

from pathlib import Path

from flowos.drivers import Seen
from flowos.engine.launch._capture import Capture
from flowos.model import End, Exited, Killed, Launch, Lost, Outcome, RuntimeFailed

_NAMED_STEPS = 3
_BUS_ERROR = (-7, 128 + 7)
_WORDS_OF_IT = (b"not connected", b"Bus error")
_FLAGS, _PF_EXITING = 5, 0x4
"""Of /proc/PID/stat the place of the flags after the state; include/linux/sched.h."""


def explained(launch: Launch, seen: Seen, end: End) -> End:
    """A runtime's own words, translated, where it did not get as far as flowos-init."""
    if launch.env.image is None or seen.statuses or seen.started:
        return end
    from flowos.drivers import explain  # only a failed launch pays for this import

    reason = explain(launch.env.runtime, seen.stderr.decode(errors="replace"))
    if not isinstance(end, RuntimeFailed) or reason.code == "unknown":
        return end
    remedy = f"; {reason.remedy}" if reason.remedy else ""
    return RuntimeFailed(f"{launch.env.label}: {reason.text}{remedy}")


def may_lack_root(launch: Launch, code: int, stderr: Capture) -> bool:
    """Whether a command ends as one does whose FUSE server has ended: by ENOTCONN, or by SIGBUS as
    its next page is missing. Then it is worth a moment to hear from its node whether that is so.
    """
    if launch.env.image is None or code == 0:
        return False
    return code in _BUS_ERROR or any(words in stderr.value() for words in _WORDS_OF_IT)


def without_root(launch: Launch, end: End, node: str = "") -> End:
    """Of a launch whose FUSE server had ended: only what ended well had not missed it.

    node: where that was, if it was not here.
    """
    if end == Exited(0):
        return end
    on, there = (f" on node {node}", " there") if node else ("", "")
    return RuntimeFailed(
        f"{launch.env.label}: squashfuse, which showed the image{on}, has ended, and so "
        f"'{launch.argv[0]}' lost its root; start it again (dmesg{there} shows whether memory ran "
        "out)"
    )


def lives(folder: Path) -> bool:
    """Whether the command of a launch with this run folder runs still."""
    try:
        command = (folder / "started.0").read_text().split()[1]
        return runs(Path(f"/proc/{command}/stat").read_bytes())
    except (OSError, IndexError):
        return False


def runs(stat: bytes) -> bool:
    """Whether a process with this /proc/PID/stat runs, or is one that the kernel is ending.

    Its files are closed before it becomes a zombie, and what is read from it fails in between.
    """
    state, *rest = stat.rpartition(b")")[2].split()
    return state not in (b"Z", b"X") and not int(rest[_FLAGS]) & _PF_EXITING


def step_words(*steps: str) -> str:
    """Of what is gone, the steps of Slurm that it was; "" is one that is not known."""
    known = sorted({step for step in steps if step}, key=lambda step: (len(step), step))
    if not known:
        return ""
    more = f" and {len(known) - _NAMED_STEPS} more" if len(known) > _NAMED_STEPS else ""
    return f"; step{'s' * (len(known) > 1)} {', '.join(known[:_NAMED_STEPS])}{more}"


def how_ended(outcome: Outcome) -> str:
    """In words, for a process that should have gone on."""
    match outcome.end:
        case Exited(code):
            return f"it exited with code {code}"
        case Killed(signal):
            hint = ", as when memory runs out" if _name(signal) == "SIGKILL" else ""
            return f"it was killed by signal {signal} ({_name(signal)}){hint}"
        case Lost(reason):
            return f"it is gone ({reason})"
        case other:
            return other.reason


def _name(number: int) -> str:
    import signal  # only a process that failed pays for it

    return signal.Signals(number).name if number in set(signal.Signals) else "real time"
