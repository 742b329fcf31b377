"""Slurm's commands are asked, and what they answer is read; what they complain of is one line."""

import os
from pathlib import Path

from flowos._dataclasses import replace
from flowos.drivers._allocators import Complaint
from flowos.drivers.allocators.slurm import (
    is_up,
    munge_words,
    ping_words,
    read_complaint,
    read_munge,
)
from flowos.engine._ask import ToolAnswer, which
from flowos.engine._resource_manager import PATIENCE_SECONDS, ResourceManager
from flowos.model import Argv, SliceRefused


class _Slurm(ResourceManager):
    def answer(self, words: Argv, seconds: float = PATIENCE_SECONDS) -> ToolAnswer:
        """Raises SliceRefused at once for settings that are not there: commands try for long."""
        file = os.environ.get("SLURM_CONF")
        if file and not Path(file).is_file():
            raise SliceRefused(f"SLURM_CONF={file}: there is no such file")
        return super().answer(words, seconds)


def _complaint(text: str) -> Complaint:
    """What a shell without SLURM_CONF lacks, where Slurm's commands find no settings."""
    found = read_complaint(text)
    if "configuration source" in found.text and not os.environ.get("SLURM_CONF"):
        hint = "SLURM_CONF is not set in this shell: export SLURM_CONF=/PATH/slurm.conf"
        return replace(found, text=f"{found.text}; {hint}")
    return found


_SLURM = _Slurm("Slurm", _complaint, "slurmctld, and munged on this machine, run")

answer, answered = _SLURM.answer, _SLURM.answered

_PING_SECONDS = 3.0
_MUNGE_SECONDS = 6.0
"""It is tried for 2.3 s before a command complains the first time."""


class MungeGone(SliceRefused):
    """No command of Slurm does anything before it is back."""


def answers() -> bool:
    """Whether its controller does; commands that ask for more try for a minute by themselves."""
    try:
        return is_up(answer(ping_words(), _PING_SECONDS).stdout.decode(errors="replace"))
    except SliceRefused:
        return False


def refuse_without_munge() -> None:
    """Raises MungeGone at once, where commands try for a minute by themselves."""
    if which("scontrol") is None:  # what is asked next says so
        return
    said = answer(munge_words(_MUNGE_SECONDS))
    complaint = read_munge(said.says)
    if said.code != 0 and complaint:
        raise MungeGone(f"{complaint}; see that munged on this machine runs")
