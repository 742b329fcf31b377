"""Slurm's commands are asked, and what they answer is read; what they complain of is one line."""

from collections.abc import Callable
from typing import TypeVar

from flowos.drivers.allocators.slurm import read_complaint
from flowos.engine._ask import ToolAnswer, ask
from flowos.model import Argv, SliceRefused

PATIENCE_SECONDS = 30.0
"""For a controller that is busy, or gone: its commands try for minutes by themselves."""

_T = TypeVar("_T")


def answer(words: Argv) -> ToolAnswer:
    """What a command answers. Raises SliceRefused if it is not there, or there is no answer."""
    try:
        return ask(words, seconds=PATIENCE_SECONDS)
    except FileNotFoundError:
        raise SliceRefused(
            f"no {words[0]} here: this machine is no login node of a Slurm cluster"
        ) from None
    except TimeoutError:
        raise SliceRefused(
            f"Slurm's controller does not answer ({words[0]} waited {PATIENCE_SECONDS:.0f} s)"
        ) from None
    except OSError as error:
        raise SliceRefused(f"{words[0]} cannot be started: {error.strerror}") from None


def answered(words: Argv, read: Callable[[str], _T]) -> _T:
    """What is read of its output. Raises SliceRefused with the complaint if it fails."""
    said = answer(words)
    if said.code != 0:
        complaint = read_complaint(said.says).text or f"exit code {said.code}"
        raise SliceRefused(f"{words[0]}: {complaint}")
    return read(said.stdout.decode(errors="replace"))
