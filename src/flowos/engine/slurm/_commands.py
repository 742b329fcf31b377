"""Slurm's commands are asked, and what they answer is read; what they complain of is one line."""

from flowos.drivers.allocators.slurm import is_up, ping_words, read_complaint
from flowos.engine._resource_manager import ResourceManager
from flowos.model import SliceRefused

_SLURM = ResourceManager("Slurm", read_complaint)

answer, answered = _SLURM.answer, _SLURM.answered

_PING_SECONDS = 3.0


def answers() -> bool:
    """Whether its controller does; commands that ask for more try for a minute by themselves."""
    try:
        return is_up(answer(ping_words(), _PING_SECONDS).stdout.decode(errors="replace"))
    except SliceRefused:
        return False
