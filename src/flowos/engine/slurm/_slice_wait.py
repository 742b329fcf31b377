"""Why the job of a slice waits, as Slurm says now."""

from flowos.drivers.allocators.slurm import job_name
from flowos.drivers.allocators.slurm_why import (
    idle_words,
    in_words,
    read_idle,
    read_starts,
    sooner,
    starts_words,
)
from flowos.engine.slurm._commands import answered
from flowos.model import Ask


def slurm_wait(slice: str, ask: Ask) -> tuple[str, ...]:
    """Lines: the reason, when it is expected to start, what would start sooner.

    () if no job of it waits. Raises SliceRefused if Slurm does not answer.
    """
    starts = answered(starts_words(job_name(slice)), read_starts)
    lines: list[str] = []
    for each in starts[:1]:
        at = "not known yet" if each.at is None else f"{each.at:%Y-%m-%d %H:%M:%S}, as of now"
        lines = [f"job {each.job} waits: {in_words(each.reason)}", f"expected start: {at}"]
        idle = answered(idle_words(), read_idle)
        lines += [f"may start sooner: {hint}" for hint in sooner(ask, each.partition, idle)]
    return tuple(lines)
