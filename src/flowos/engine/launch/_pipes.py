"""What connects us with a process that was just started."""

from collections.abc import Callable
from dataclasses import dataclass
from subprocess import Popen


@dataclass(frozen=True, slots=True)
class Pipes:
    """Our ends: the FIFO whose closing ends the launch, and what comes out.

    -1: it does not come out to us, but where our own goes.
    """

    alive: int
    stdout: int = -1
    stderr: int = -1


Spawn = Callable[[], tuple["Popen[bytes]", Pipes]]
