"""Slurm's commands are asked, and what they answer is read; what they complain of is one line."""

from flowos.drivers.allocators.slurm import read_complaint
from flowos.engine._resource_manager import ResourceManager

_SLURM = ResourceManager("Slurm", read_complaint)

answer, answered = _SLURM.answer, _SLURM.answered
