"""An environment that launches can start in, made so once, so that each costs only its own start.

What is promised: the image has the digest that the environment states, a runtime that works on the
node enters it, what is to be bound is there and has a place inside. If any of that cannot be had,
the refusal is one line that says which and how to mend it. `close` undoes it all, and so does our
end.
"""

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from flowos._dataclasses import replace
from flowos.model import Environment, EnvironmentRefused

if TYPE_CHECKING:
    from flowos.model import Facts  # slow to load, and a bare launch asks for none


class Ready:
    """An environment to launch in, until `close`; `notes` for a person, `facts` of its node."""

    def __init__(
        self,
        env: Environment,
        notes: tuple[str, ...],
        undo: Callable[[], None],
        facts: "Facts | None" = None,
    ) -> None:
        self.env, self.notes, self.facts = env, notes, facts
        self._undo: list[Callable[[], None]] = [undo]

    def close(self) -> None:
        """Give back what was mounted. No launch in it may run any more. Twice is once."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def refuse_kernel(env: Environment) -> None:
    """Raises EnvironmentRefused if the node was to be booted for it: it runs already."""
    if env.kernel:
        raise EnvironmentRefused(
            f"kernel={env.kernel!r:.80}: only a slice of a pool of kind slurm has its nodes booted "
            "into a kernel; here IMAGE@qemu:kernel=NAME boots an image"
        )


def bare_ready(env: Environment) -> Ready:
    """Of one without an image. Raises EnvironmentRefused if a runtime of images is asked for."""
    runtime = "bare" if env.runtime == "auto" else env.runtime
    if runtime != "bare":
        raise EnvironmentRefused(f"runtime {runtime}: it enters images; name one, or use bare")
    return Ready(replace(env, runtime=runtime), (), lambda: None)
