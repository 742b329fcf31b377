"""The log of a slice in a terminal: a line for each task."""

from flowos.model import SliceLog
from flowos.report._timeline import TaskTimes, times_by_task
from flowos.report._wrap import safe


def log_text(log: SliceLog) -> str:
    """Tasks by their time; "" if there are none."""
    return "".join(f"{safe(_line(each))}\n" for each in times_by_task(log.tasks))


def _line(times: TaskTimes) -> str:
    counts = (("failed", times.failed), ("repeated", times.repeated), ("found", times.cached))
    return "  ".join(
        (
            f"{len(times.seconds):8} {'run ' if len(times.seconds) == 1 else 'runs'}",
            f"{times.total:10.3f} s",
            f"longest {times.quantile(1.0):.3f} s",
            f"{times.bytes_in / 1e6:.3f} MB in",
            f"{times.bytes_out / 1e6:.3f} MB out",
            times.task,
            *(f"{count} {what}" for what, count in counts if count),
        )
    )
