"""How a launch ended, in words that say more than codes do where an image is concerned."""

from pathlib import Path

from flowos.drivers import Seen
from flowos.model import End, Exited, Launch, RuntimeFailed


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


def without_root(launch: Launch, end: End) -> End:
    """Of a launch whose FUSE server had ended: only what ended well had not missed it."""
    if end == Exited(0):
        return end
    return RuntimeFailed(
        f"{launch.env.label}: squashfuse, which showed the image, has ended, and so "
        f"'{launch.argv[0]}' lost its root; start it again (dmesg shows whether memory ran out)"
    )


def lives(folder: Path) -> bool:
    """Whether the command of a launch with this run folder runs still."""
    try:
        command = (folder / "started.0").read_text().split()[1]
        state = Path(f"/proc/{command}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in (b"Z", b"X")
