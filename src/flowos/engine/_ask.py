"""One question to a small program of this machine: its answer is read, and it is waited for.

What a person asked for is a Launch (see _launching); this is for tools that say what there is, or
do one thing at once.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a program printed, and its exit code; of a signal that ended it, the number below 0."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def says(self) -> str:
        """What it complains of, as text."""
        return self.stderr.decode(errors="replace").strip()


def ask(
    argv: Sequence[str | Path],
    *,
    seconds: float | None,
    cwd: Path | str | None = None,
    variables: Mapping[str, str] | None = None,
) -> ToolAnswer:
    """Run a program without input, in this process's own variables unless others are given.

    Raises OSError if it cannot be started (FileNotFoundError: it is not there), TimeoutError, which
    is one, if it does not end within `seconds`.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            cwd=cwd,
            env=variables,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]}: no answer within {seconds:.0f} s") from error
    return ToolAnswer(done.returncode, done.stdout, done.stderr)
