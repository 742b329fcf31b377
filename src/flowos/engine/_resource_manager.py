"""Commands of a resource manager are asked and their answers read; a complaint is one line."""

from collections.abc import Callable
from typing import TypeVar

from flowos._dataclasses import dataclass
from flowos.drivers._allocators import Complaint
from flowos.engine._ask import ToolAnswer, ask
from flowos.model import Argv, SliceRefused

PATIENCE_SECONDS = 30.0
"""For a manager that is busy, or gone: its commands try for minutes by themselves."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ResourceManager:
    """name: as it is called. read_complaint: of its commands' standard error. daemons: what has to
    run for them to be answered, as words."""

    name: str
    read_complaint: Callable[[str], Complaint]
    daemons: str

    def answer(self, words: Argv, seconds: float = PATIENCE_SECONDS) -> ToolAnswer:
        """What a command answers. Raises SliceRefused if it is not there, or there is none."""
        try:
            return ask(words, seconds=seconds)
        except FileNotFoundError:
            raise SliceRefused(
                f"no {words[0]} here: this machine is no login node of a {self.name} cluster"
            ) from None
        except TimeoutError:
            raise SliceRefused(
                f"{self.name} does not answer ({words[0]} waited {seconds:.0f} s); see that "
                f"{self.daemons}"
            ) from None
        except OSError as error:
            raise SliceRefused(f"{words[0]} cannot be started: {error.strerror}") from None

    def answered(self, words: Argv, read: Callable[[str], _T]) -> _T:
        """What is read of its output. Raises SliceRefused with the complaint if it fails."""
        said = self.answer(words)
        if said.code != 0:
            complaint = self.read_complaint(said.says).text or f"exit code {said.code}"
            raise SliceRefused(f"{words[0]}: {complaint}")
        return read(said.stdout.decode(errors="replace"))
